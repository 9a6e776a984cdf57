"""Kernels run in process: memory, modules and launches of one machine, a GPU through cuda-python.

`Cuda` compiles a program's device part by NVRTC and launches what it is told to; `HostDevice`
(host_device.py) is its twin by g++. A launch is plain data: a kernel with its template arguments, a
shape, arguments as places in allocations. Importing this module needs neither GPU nor NVRTC;
`missing` says what lacks.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from compiler.diagnostics import TOOLCHAIN, UserError
from runtime import nvrtc
from runtime.gpu import gpus

STATIC_SHARED = 48 * 1024  # bytes that a kernel may have without asking
SIZES = "monocu_sizes"  # the table of sizeof(...) that a module exports
POISON = 0xA5  # what fresh memory is filled with, so that what nobody wrote shows


@dataclass(frozen=True)
class Place:
    """A pointer argument: `offset` bytes into an allocation; a cache's offset counts a position."""

    space: str  # "weights", "buffers", "cache", "step"
    offset: int = 0


@dataclass(frozen=True)
class Number:
    """An argument by value."""

    value: int | float
    ctype: str  # "float", "int", "long long"


Argument = tuple[Place, ...] | Number  # a struct of pointers, mostly of one


@dataclass(frozen=True)
class Task:
    """One launch; `shared`: bytes, or an expression of C++ that has a sizeof in it."""

    kernel: str
    grid: tuple[int, int, int]
    threads: int
    shared: int | str
    args: tuple[Argument, ...]


class Module(Protocol):
    """A program's kernels, loaded; sizes: the values of the expressions that were asked for."""

    @property
    def sizes(self) -> Mapping[str, int]: ...

    def launch(
        self, kernel: str, grid: Sequence[int], threads: int, shared: int, params: Sequence[Any]
    ) -> None:
        """Queues a launch; `params` are ctypes objects, one an argument."""
        ...


class Machine(Protocol):
    """Where kernels run. Work is done in the order in which it is asked for."""

    @property
    def name(self) -> str: ...

    def load(self, text: str, kernels: Sequence[str], sizes: Sequence[str]) -> Module: ...

    def allocate(self, nbytes: int) -> int:
        """The address of fresh memory, poisoned."""
        ...

    def free(self, at: int) -> None: ...

    def upload(self, at: int, data: bytes) -> None: ...

    def download(self, at: int, nbytes: int) -> bytes: ...


CTYPES = {"float": ctypes.c_float, "int": ctypes.c_int, "long long": ctypes.c_longlong}


def packed(argument: Argument, spaces: Mapping[str, int], positions: int) -> Any:
    """An argument as a kernel takes it; `spaces`: addresses of the allocations."""
    if isinstance(argument, Number):
        return CTYPES[argument.ctype](argument.value)
    addresses = [
        spaces[p.space] + p.offset * (positions if p.space == "cache" else 1) for p in argument
    ]
    return (ctypes.c_void_p * len(addresses))(*addresses)


def run(
    module: Module, tasks: Sequence[Task], spaces: Mapping[str, int], positions: int = 0
) -> None:
    """Queues the tasks in order."""
    for task in tasks:
        params = [packed(a, spaces, positions) for a in task.args]
        shared = module.sizes[task.shared] if isinstance(task.shared, str) else task.shared
        module.launch(task.kernel, task.grid, task.threads, shared, params)


def pointers(params: Sequence[Any]) -> Any:
    """The void** by which launches take their parameters."""
    return (ctypes.c_void_p * len(params))(*(ctypes.addressof(p) for p in params))


def missing() -> str:
    """Why no GPU runs kernels in process, "" where one does."""
    if not gpus():
        return "no CUDA device is here"
    try:
        driver()
    except ImportError as error:
        return f"cuda-python is not installed ({error}); pip install 'monocu[cuda]'"
    return nvrtc.missing()


def driver() -> Any:
    """The module `cuda.bindings.driver`, of which cuda-python has no stubs."""
    return importlib.import_module("cuda.bindings.driver")


def done(answer: tuple[Any, ...]) -> Any:
    """The result of a driver call; its failure is a UserError with the error's name."""
    status, *rest = answer
    if int(status):
        raise UserError(f"a CUDA call fails: {getattr(status, 'name', status)}", TOOLCHAIN)
    return rest[0] if len(rest) == 1 else tuple(rest) if rest else None


class CudaModule:
    """A cubin on the device."""

    def __init__(self, cubin: bytes, names: Mapping[str, str], sizes: Sequence[str]) -> None:
        self._driver = driver()
        self._module = done(self._driver.cuModuleLoadData(cubin))
        self._names = names
        self._functions: dict[str, Any] = {}
        self._shared: dict[str, int] = {}
        self.sizes = dict(zip(sizes, self._table(len(sizes)), strict=True))

    def _table(self, count: int) -> list[int]:
        if not count:
            return []
        at, _ = done(self._driver.cuModuleGetGlobal(self._module, SIZES.encode()))
        values = np.zeros(count, np.uint32)
        done(self._driver.cuMemcpyDtoH(values.ctypes.data, at, values.nbytes))
        return values.tolist()

    def _function(self, kernel: str, shared: int) -> Any:
        if kernel not in self._functions:
            name = self._names[kernel].encode()
            self._functions[kernel] = done(self._driver.cuModuleGetFunction(self._module, name))
        if shared > max(STATIC_SHARED, self._shared.get(kernel, 0)):
            limit = self._driver.CUfunction_attribute
            kind = limit.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            done(self._driver.cuFuncSetAttribute(self._functions[kernel], kind, shared))
            self._shared[kernel] = shared
        return self._functions[kernel]

    def launch(
        self, kernel: str, grid: Sequence[int], threads: int, shared: int, params: Sequence[Any]
    ) -> None:
        table = pointers(params)
        function = self._function(kernel, shared)
        shape = (*grid, threads, 1, 1, shared)
        done(self._driver.cuLaunchKernel(function, *shape, 0, ctypes.addressof(table), 0))

    def unload(self) -> None:
        done(self._driver.cuModuleUnload(self._module))


class Cuda:
    """A GPU of this machine, the first. UserError where there is none that runs kernels in process.

    extra: flags of NVRTC.
    """

    def __init__(self, number: int = 0, extra: Sequence[str] = ()) -> None:
        why = missing()
        if why:
            raise UserError(f"a GPU is needed: {why}", TOOLCHAIN)
        self._driver, self._extra = driver(), tuple(extra)
        done(self._driver.cuInit(0))
        device = done(self._driver.cuDeviceGet(number))
        done(self._driver.cuCtxSetCurrent(done(self._driver.cuDevicePrimaryCtxRetain(device))))
        self.arch = gpus()[number].build_arch
        self.name = f"cuda {self.arch}"

    def load(self, text: str, kernels: Sequence[str], sizes: Sequence[str]) -> CudaModule:
        whole = text + size_table(sizes)
        cubin, names = nvrtc.compile_kernels(whole, self.arch, kernels, self._extra)
        return CudaModule(cubin, names, sizes)

    def allocate(self, nbytes: int) -> int:
        at = done(self._driver.cuMemAlloc(max(nbytes, 1)))
        done(self._driver.cuMemsetD8(at, POISON, max(nbytes, 1)))
        return int(at)

    def free(self, at: int) -> None:
        done(self._driver.cuMemFree(at))

    def upload(self, at: int, data: bytes) -> None:
        held = np.frombuffer(data, np.uint8)
        if held.size:
            done(self._driver.cuMemcpyHtoD(at, held.ctypes.data, held.nbytes))

    def download(self, at: int, nbytes: int) -> bytes:
        held = np.zeros(nbytes, np.uint8)
        done(self._driver.cuCtxSynchronize())
        if nbytes:
            done(self._driver.cuMemcpyDtoH(held.ctypes.data, at, nbytes))
        return held.tobytes()


def size_table(sizes: Sequence[str]) -> str:
    """Text that exports the values of C++ expressions: what sizeof says only a compiler knows."""
    if not sizes:
        return ""
    values = ", ".join(f"unsigned({text})" for text in sizes)
    return f'\nextern "C" __device__ const unsigned {SIZES}[] = {{{values}}};\n'
