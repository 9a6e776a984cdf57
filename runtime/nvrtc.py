"""NVRTC through cuda-python: a .cu's device part to machine code, in process and without a GPU.
Contract: importing this module needs neither cuda-python nor NVRTC; `missing` says what lacks."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any

from compiler.diagnostics import TOOLCHAIN, UserError

# NVRTC has no directory of headers; this is what a program's device part takes from <cstdint>.
CSTDINT = b"""
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t;
typedef unsigned long uint64_t; typedef unsigned long uintptr_t;
"""
FLAGS = ("-std=c++17", "-fmad=false", "-lineinfo")  # it has no -Werror; nvcc does

QUICK = ("--Ofast-compile=max",)


def binding() -> Any:
    """The module `cuda.bindings.nvrtc`, of which cuda-python has no stubs."""
    return importlib.import_module("cuda.bindings.nvrtc")


def missing() -> str:
    """Why NVRTC cannot be used, "" where it can."""
    try:
        error, *_ = binding().nvrtcVersion()
    except ImportError as error:
        return f"cuda-python is not installed ({error}); pip install 'monocu[cuda]'"
    except RuntimeError as error:
        return f"the NVRTC library is not installed ({brief(error)}); pip install 'monocu[cuda]'"
    return "" if int(error) == 0 else f"nvrtcVersion fails with status {int(error)}"


def brief(error: Exception) -> str:
    """An exception's text on one line."""
    return " ".join(str(error).split())[:200]


def describe() -> str:
    """NVRTC in words, for `monocu doctor`."""
    why = missing()
    if why:
        return f"none: {why}"
    _, major, minor = binding().nvrtcVersion()
    return f"{major}.{minor}"


def compile_text(text: str, arch: str = "sm_90a", extra: Sequence[str] = ()) -> bytes:
    """The cubin of the text's kernels for one arch. Errors: UserError (4) with NVRTC's log."""
    return compile_kernels(text, arch, (), extra)[0]


@cache
def quick_flags() -> tuple[str, ...]:
    """Flags that halve the time of a compilation, for fuzzing; none where NVRTC knows none."""
    try:
        compile_text("", extra=QUICK)
    except UserError:
        return ()
    return QUICK


def compile_kernels(
    text: str, arch: str, kernels: Sequence[str], extra: Sequence[str] = ()
) -> tuple[bytes, dict[str, str]]:
    """The cubin, and under which names it has these kernels, spelled `softmax<64, 32>`."""
    why = missing()
    if why:
        raise UserError(f"NVRTC is needed: {why}", TOOLCHAIN)
    nvrtc = binding()
    headers = (1, [CSTDINT], [b"cstdint"])
    program = done(nvrtc.nvrtcCreateProgram(text.encode(), b"program.cu", *headers))
    flags = [flag.encode() for flag in (*FLAGS, f"-arch={arch}", *extra)]
    try:
        for kernel in kernels:
            done(nvrtc.nvrtcAddNameExpression(program, kernel.encode()))
        (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
        if int(status):
            raise UserError(f"NVRTC refuses the program:\n{log_of(nvrtc, program)}", TOOLCHAIN)
        cubin = bytearray(done(nvrtc.nvrtcGetCUBINSize(program)))
        done(nvrtc.nvrtcGetCUBIN(program, cubin))
        lowered = (done(nvrtc.nvrtcGetLoweredName(program, k.encode())) for k in kernels)
        names = dict(zip(kernels, (name.decode() for name in lowered), strict=True))
        return bytes(cubin), names
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def log_of(nvrtc: Any, program: Any) -> str:
    """The compile log's first lines."""
    log = bytearray(done(nvrtc.nvrtcGetProgramLogSize(program)))
    done(nvrtc.nvrtcGetProgramLog(program, log))
    lines = log.rstrip(b"\0").decode(errors="replace").splitlines()
    return "\n".join(f"    {line}" for line in lines[:30])


def done(answer: tuple[Any, ...]) -> Any:
    """The result of an NVRTC call; its failure is a UserError."""
    status, *rest = answer
    if int(status):
        raise UserError(f"an NVRTC call fails with status {int(status)}", TOOLCHAIN)
    return rest[0] if rest else None
