"""The compilers g++ and nvcc: finding them, and building a .cu into a binary, kept in the cache.
Contract: a compiler's complaint is a UserError (4) with its first lines and the command."""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from compiler import knobs
from compiler.diagnostics import TOOLCHAIN, UserError, cause
from runtime import cache, nvrtc

HOST_HEADERS = Path(__file__).parent / "host"
ARCHS = ("sm_80", "sm_90a")
SHOWN_LINES = 30  # of a compiler's output
BINARY, SOURCE, LOG, SECONDS = "program", "program.cu", "log.txt", "seconds.txt"

# Without contraction a * b + c is two roundings, as in every other place of the arithmetic.
HOST_FLAGS = (
    *(
        "-x",
        "c++",
        "-std=c++17",
        "-ffp-contract=off",
        "-fno-strict-aliasing",
        "-Wall",
        "-Wextra",
        "-Werror",
    ),
    *("-pthread", "-rdynamic", "-I", str(HOST_HEADERS), "-include", "cuda_host.h"),
)
# Instrumented code makes g++ warn of variables that are always set.
SANITIZE_FLAGS = (
    *("-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    "-Wno-maybe-uninitialized",
)
NVCC_FLAGS = ("-std=c++17", "-O3", "-fmad=false", "-Werror", "all-warnings", "-Xptxas", "-v")
X86_64_V3 = {"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "abm"}


@dataclass(frozen=True)
class Resources:
    """What ptxas says of a kernel: mangled name, arch, registers a thread; the rest in bytes."""

    kernel: str
    arch: str
    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int


@dataclass(frozen=True)
class Compiler:
    """A compiler: its command, a line on its version, what identifies it in a cache key, and the
    flags that its installation needs."""

    path: Path
    version: str
    identity: str
    flags: tuple[str, ...] = ()


def find_host() -> Compiler:
    """g++, or what MONOCU_CXX names."""
    found = shutil.which(knobs.CXX.value)
    if not found:
        raise UserError(
            f"the host target needs g++: {knobs.CXX.value!r} is not on PATH (MONOCU_CXX)",
            TOOLCHAIN,
        )
    return identified(Path(found))


def find_nvcc() -> Compiler:
    """nvcc: MONOCU_NVCC, else of PATH, else of the PyPI packages of the extra `cuda`."""
    if knobs.NVCC.value and not shutil.which(knobs.NVCC.value):
        raise UserError(f"MONOCU_NVCC names no program: {knobs.NVCC.value!r}", TOOLCHAIN)
    found = shutil.which(knobs.NVCC.value or "nvcc")
    if found:
        return identified(Path(found))
    for home in pypi_homes():
        if (home / "bin" / "nvcc").is_file():
            return identified(home / "bin" / "nvcc", "-L", str(home / "lib"))
    raise UserError(
        "the cuda target needs nvcc: none by MONOCU_NVCC, on PATH or in the extra `cuda` "
        "(pip install 'monocu[cuda]')",
        TOOLCHAIN,
    )


def pypi_homes() -> list[Path]:
    """Where NVIDIA's PyPI packages put a toolkit: nvidia/cu13 in site-packages."""
    spec = importlib.util.find_spec("nvidia")
    places = spec.submodule_search_locations if spec else None
    return [Path(place) / "cu13" for place in places or ()]


def identified(path: Path, *flags: str) -> Compiler:
    """A compiler, with what identifies it; a wrapper's hash alone says nothing of what it runs."""
    said = version_text(path, path.stat().st_mtime_ns)
    lines = [line for line in said.splitlines() if line.strip()]
    version = next((line for line in lines if "release" in line), lines[0])
    real = path.resolve()
    return Compiler(path, version, "\n".join([str(real), cache.file_digest(real), said]), flags)


@functools.cache
def version_text(path: Path, _modified: int) -> str:
    """What `--version` prints, asked once as long as the file stays the same."""
    ran = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    if ran.returncode or not ran.stdout.strip():
        said = ran.stderr.strip()[:200] or f"exit code {ran.returncode}, and it says nothing"
        raise UserError(f"a compiler is needed, {path} --version fails: {said}", TOOLCHAIN)
    return ran.stdout


def host_arch_flags() -> tuple[str, ...]:
    """A fixed level of the architecture where the CPU has it: binaries that also run elsewhere."""
    if platform.machine() != "x86_64":
        return ("-mcpu=native",)
    # Returns that leave a fiber by another road than they came must not meet a shadow stack.
    plain = ("-fcf-protection=none",)
    try:
        flags = set(
            re.findall(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.M)[0].split()
        )
    except (OSError, IndexError):
        return plain
    return ("-march=x86-64-v3", *plain) if flags >= X86_64_V3 else plain


def host_flags(sanitize: bool = False) -> tuple[str, ...]:
    """g++'s flags for the host target."""
    return (*HOST_FLAGS, *(SANITIZE_FLAGS if sanitize else ("-O2",)), *host_arch_flags())


def nvcc_flags(archs: Sequence[str] = ARCHS, lineinfo: bool = True) -> tuple[str, ...]:
    """nvcc's flags for machine code of each arch ("sm_80", "sm_90a", ...)."""
    for arch in archs:
        if not re.fullmatch(r"sm_[0-9]{2,3}[af]?", arch):
            raise UserError(f"an architecture is spelled like sm_90a, given {arch!r}")
        if int(arch.strip("sm_af")) < 80:
            raise UserError(f"an architecture of sm_80 or newer is needed, {arch} was given")
    codes = (f"-gencode=arch={arch.replace('sm_', 'compute_')},code={arch}" for arch in archs)
    return (*NVCC_FLAGS, *(("-lineinfo",) if lineinfo else ()), *codes)


def build(
    source: Path | str,
    target: str = "host",
    archs: Sequence[str] = ARCHS,
    sanitize: bool = False,
    lineinfo: bool = True,
    extra: Sequence[str] = (),
) -> Path:
    """The binary of a .cu (a path, or its text), built now or found in the cache.

    `archs` and `lineinfo` are nvcc's, `sanitize` (ASan and UBSan) is g++'s; `extra` flags come
    last. Errors: UserError (4). The compiler's output stays beside the binary (log.txt).
    """
    text, shown = (source, "") if isinstance(source, str) else (read_source(source), str(source))
    if target == "host":
        compiler, flags = find_host(), host_flags(sanitize)
        headers = [part.read_bytes() for part in sorted(HOST_HEADERS.glob("*.h"))]
    elif target == "cuda":
        compiler, headers = find_nvcc(), list[bytes]()
        flags = (*nvcc_flags(archs, lineinfo), *compiler.flags)
    else:
        raise UserError(f"a target is host or cuda, given {target!r}", TOOLCHAIN)
    flags = (*flags, *extra)
    key = cache.digest([text, shown, compiler.identity, *flags, "headers", *headers])

    def make(folder: Path, final: Path) -> None:
        place = shown or str(final / SOURCE)
        (folder / SOURCE).write_text(f"#line 1 {quoted(place)}\n{text}")
        start = time.perf_counter()
        try:
            run_compiler([str(compiler.path), *flags, SOURCE, "-o", BINARY], folder)
        except UserError as error:
            if shown:
                raise
            kept = cache.root() / "failed.cu"
            kept.write_text(text)
            raise UserError(str(error).replace(place, str(kept)), TOOLCHAIN) from None
        (folder / SECONDS).write_text(f"{time.perf_counter() - start:.3f}\n")

    return cache.entry(key, make) / BINARY


def build_seconds(binary: Path) -> float:
    """What the compiler took for a binary that `build` made, now or when it came into the cache."""
    return float((binary.parent / SECONDS).read_text())


def read_source(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {cause(error)}") from None


def quoted(path: str) -> str:
    """A path as a C string."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def environment() -> dict[str, str]:
    """Ours, without the variables by which nvcc and g++ take flags that no cache key sees."""
    hidden = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "CPATH", "CPLUS_INCLUDE_PATH")
    return {k: v for k, v in os.environ.items() if k not in hidden} | {"LC_ALL": "C"}


def run_compiler(command: Sequence[str], folder: Path) -> None:
    """Runs it in the folder, keeps its output there; interrupted, ends all that it started."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output = process.communicate()[0].decode(errors="replace")
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    if process.returncode:
        raise UserError(complaint(command, output, process.returncode), TOOLCHAIN)
    (folder / LOG).write_text(output)


def complaint(command: Sequence[str], output: str, code: int) -> str:
    """A failed compiler run, for a person: what ran, and the first lines of what it said."""
    lines = output.splitlines()
    said = "\n".join(f"    {line}" for line in lines[:SHOWN_LINES])
    more = f"\n    ... {len(lines) - SHOWN_LINES} more lines" if len(lines) > SHOWN_LINES else ""
    return f"the compiler failed with status {code}:\n    {shlex.join(command)}\n{said}{more}"


def resource_usage(binary: Path) -> list[Resources]:
    """Each kernel of each arch of a binary that `build` made with nvcc, from its -Xptxas -v."""
    pattern = re.compile(
        r"Compiling entry function '(\S+)' for '(\S+)'.*?"
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads.*?"
        r"Used (\d+) registers([^\n]*)",
        re.S,
    )
    log = (binary.parent / LOG).read_text()
    found: list[Resources] = []
    for kernel, arch, stack, stores, loads, registers, rest in pattern.findall(log):
        shared = re.search(r"(\d+) bytes smem", rest)
        numbers = (int(registers), int(stores), int(loads), int(stack))
        found.append(Resources(kernel, arch, *numbers, int(shared[1]) if shared else 0))
    return found


def report() -> dict[str, str]:
    """For `monocu doctor`: each compiler's version and place, or why there is none."""
    compilers = {"g++": described(find_host), "nvcc": described(find_nvcc)}
    return compilers | {"nvrtc": nvrtc.describe()}


def described(find: Callable[[], Compiler]) -> str:
    """A compiler in words."""
    try:
        found = find()
    except UserError as error:
        return f"none: {error}"
    return f"{found.version} ({found.path})"
