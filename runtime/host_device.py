"""The host target in process: a program's device part as a library of g++, launched by ctypes.

The twin of device.Cuda, for where there is no GPU: it checks what a GPU would be told. A kernel
that breaks the model's rules ends the process (status 70), so callers run it in one of its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from compiler.diagnostics import TOOLCHAIN, UserError
from runtime import toolchain
from runtime.device import POISON, SIZES, pointers, size_table

# The driver below the device part is left out, as for NVRTC.
FLAGS = ("-shared", "-fPIC", "-D__CUDACC_RTC__", "-Wno-unused-function")
LAUNCHER = """
template <class... P, size_t... I>
int start_packed(void (*kernel)(P...), const cudaLaunchConfig_t& config, void** at,
                 std::index_sequence<I...>) {
    return cudaLaunchKernelEx(&config, kernel, *static_cast<P*>(at[I])...);
}
template <class... P> int launch_packed(void (*kernel)(P...), const unsigned* shape, void** at) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(shape[0], shape[1], shape[2]);
    config.blockDim = dim3(shape[3]);
    config.dynamicSmemBytes = shape[4];
    if (shape[4] > 48 * 1024) {
        const auto limit = cudaFuncAttributeMaxDynamicSharedMemorySize;
        if (const int error = cudaFuncSetAttribute(kernel, limit, int(shape[4]))) return error;
    }
    return start_packed(kernel, config, at, std::index_sequence_for<P...>());
}
extern "C" void monocu_seed(unsigned seed) { monocu_host_seed(seed); }
extern "C" int monocu_launch(int kernel, const unsigned* shape, void** at) {
    switch (kernel) {
%s
    }
    return 98;
}
"""


class HostModule:
    """A library of kernels."""

    def __init__(self, path: str, kernels: Sequence[str], sizes: Sequence[str]) -> None:
        self.library = ctypes.CDLL(path)
        self._numbers = {kernel: number for number, kernel in enumerate(kernels)}
        table = (ctypes.c_uint * len(sizes)).in_dll(self.library, SIZES) if sizes else ()
        self.sizes: Mapping[str, int] = dict(zip(sizes, table, strict=True))

    def launch(
        self, kernel: str, grid: Sequence[int], threads: int, shared: int, params: Sequence[Any]
    ) -> None:
        shape = (ctypes.c_uint * 5)(*grid, threads, shared)
        error = self.library.monocu_launch(self._numbers[kernel], shape, pointers(params))
        if error:
            raise UserError(f"launching {kernel} fails with status {error}", TOOLCHAIN)


class HostDevice:
    """The CPU in a GPU's place; `seed`: the order of threads (0: in order)."""

    def __init__(self, seed: int = 0, extra: Sequence[str] = ("-O1",)) -> None:
        self.name = f"host, seed {seed},"
        self.seed, self._extra = seed, tuple(extra)
        self._held: dict[int, Any] = {}

    def load(self, text: str, kernels: Sequence[str], sizes: Sequence[str]) -> HostModule:
        cases = "\n".join(
            f"        case {number}: return launch_packed({kernel}, shape, at);"
            for number, kernel in enumerate(kernels)
        )
        whole = text + size_table(sizes) + LAUNCHER % cases
        path = toolchain.build(whole, "host", extra=(*self._extra, *FLAGS))
        module = HostModule(str(path), kernels, sizes)
        module.library.monocu_seed(self.seed)
        return module

    def allocate(self, nbytes: int) -> int:
        """256-byte aligned, as a GPU's are."""
        held = ctypes.create_string_buffer(bytes([POISON]) * (nbytes + 256), nbytes + 256)
        at = -(-ctypes.addressof(held) // 256) * 256
        self._held[at] = held
        return at

    def free(self, at: int) -> None:
        del self._held[at]

    def upload(self, at: int, data: bytes) -> None:
        ctypes.memmove(at, data, len(data))

    def download(self, at: int, nbytes: int) -> bytes:
        return ctypes.string_at(at, nbytes)
