"""GPUs of this machine, asked of the driver library by ctypes: needs no cuda-python, no nvcc."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache

MAJOR, MINOR, SMS = 75, 76, 16  # CUdevice_attribute numbers


@dataclass(frozen=True)
class Gpu:
    """A CUDA device: name, "sm_90", multiprocessors."""

    name: str
    arch: str
    sms: int

    @property
    def build_arch(self) -> str:
        """What nvcc is asked for; Hopper's own instructions need its `a`."""
        return "sm_90a" if self.arch == "sm_90" else self.arch

    def __str__(self) -> str:
        return f"{self.name}, {self.arch}, {self.sms} SMs"


@cache
def driver_version() -> str:
    """As `nvidia-smi` says it, asked of its library; "" where there is none."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return ""
    text = ctypes.create_string_buffer(80)
    failed = library.nvmlInit_v2() or library.nvmlSystemGetDriverVersion(text, len(text))
    return "" if failed else text.value.decode()


@cache
def gpus() -> tuple[Gpu, ...]:
    """The devices in the driver's order; none where there is no driver or it fails."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ()
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return ()
    return tuple(_gpu(driver, index) for index in range(count.value))


def _gpu(driver: ctypes.CDLL, index: int) -> Gpu:
    name = ctypes.create_string_buffer(100)
    driver.cuDeviceGetName(name, len(name), index)

    def attribute(number: int) -> int:
        value = ctypes.c_int()
        driver.cuDeviceGetAttribute(ctypes.byref(value), number, index)
        return value.value

    return Gpu(name.value.decode(), f"sm_{attribute(MAJOR)}{attribute(MINOR)}", attribute(SMS))
