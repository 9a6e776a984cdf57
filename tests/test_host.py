"""The host target against CUDA's rules: one program of many cases, plain and under sanitizers, with
its threads in order and shuffled; what it must refuse ends with status 70 and the kernel's name."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from compiler.diagnostics import TOOLCHAIN
from runtime import toolchain
from runtime.gpu import gpus

ROOT = Path(__file__).parent.parent
LAYER = (ROOT / "codegen/lib/device.cuh").read_text()
PROGRAM = "\n".join(
    [
        LAYER,
        *(
            ROOT.joinpath(f"tests/cxx/host_{part}.cu").read_text()
            for part in ("kernels", "runtime")
        ),
    ]
)
CASES = (
    *("reduce", "counts", "shuffles", "halves", "atomics", "relay", "pieces", "graph"),
    *("capture_refuses", "errors", "device", "arithmetic"),
)
HOST_CASES = ("poison", "race", "warp_call", "order")
FAULTS = (
    "deadlock: 20 threads at __syncthreads, 44 ended",
    "deadlock: 32 threads at __syncwarp, 32 ended",
    "threads meet at different barriers: __syncthreads and __syncthreads_or",
    "lanes of one warp meet in different collectives",
    "__syncwarp: the calling lane is not in its mask",
    "a shuffle reads a lane that is not in its mask",
    "wait_until: the flag never got its value",
    "uses 1024 bytes of shared memory, launched with 0",
    "launches a kernel",
    "a thread's stack of 65536 bytes overflowed",
    "deadlock: 32 threads at __syncthreads, 31 threads at __syncwarp, 1 ended",
)


@pytest.fixture(scope="module")
def plain() -> Path:
    return toolchain.build(PROGRAM)


@pytest.fixture(scope="module")
def sanitized() -> Path:
    return toolchain.build(PROGRAM, sanitize=True)


def run(program: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment}
    return subprocess.run([program, *words], capture_output=True, text=True, env=env, timeout=60)


def passes(program: Path, case: str, **environment: str) -> None:
    done = run(program, case, **environment)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", ["0", "1", "77"])
def test_case(plain: Path, case: str, seed: str) -> None:
    passes(plain, case, MONOCU_HOST_SEED=seed)


@pytest.mark.gpu
@pytest.mark.skipif(not gpus(), reason="needs a CUDA device: the host's rules against a GPU's")
def test_all_cases_on_a_gpu() -> None:
    passes(toolchain.build(PROGRAM, "cuda", [gpus()[0].build_arch]), "all")


@pytest.mark.parametrize("case", HOST_CASES)
def test_host_case(plain: Path, case: str) -> None:
    passes(plain, case, MONOCU_HOST_THREADS="1" if case == "order" else "2")


@pytest.mark.parametrize("threads", ["1", "5"])
def test_all_cases_whatever_the_cpu_threads(plain: Path, threads: str) -> None:
    for case in (*CASES, *HOST_CASES[:-1]):
        passes(plain, case, MONOCU_HOST_THREADS=threads)


def test_all_cases_under_sanitizers(sanitized: Path) -> None:
    passes(sanitized, "all", MONOCU_HOST_THREADS="1")
    passes(sanitized, "relay", MONOCU_HOST_SEED="5")


@pytest.mark.parametrize(("number", "message"), list(enumerate(FAULTS)))
def test_fault_is_refused(plain: Path, number: int, message: str) -> None:
    done = run(plain, "fault", str(number), MONOCU_HOST_TIMEOUT="1")
    assert done.returncode == 70
    assert "kernel fault(int, unsigned int*): " in done.stderr
    assert message in done.stderr


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ("0", "heap-buffer-overflow"),
        ("1", "heap-buffer-overflow"),
        ("2", "signed integer overflow"),
    ],
)
def test_sanitizers_see_into_kernels(sanitized: Path, number: str, message: str) -> None:
    done = run(sanitized, "outside", number)
    assert done.returncode not in (0, 70)
    assert message in done.stderr


@pytest.mark.parametrize("flag", ["-ffp-contract=fast", "-ffast-math"])
def test_a_build_of_other_arithmetic_is_refused(flag: str) -> None:
    if flag == "-ffp-contract=fast" and "-march=x86-64-v3" not in toolchain.host_arch_flags():
        pytest.skip("this CPU has no fma to contract to")
    program = toolchain.build(
        f"{LAYER}\nint main() {{ verify_arithmetic(nullptr); }}", extra=[flag]
    )
    done = run(program)
    assert done.returncode == TOOLCHAIN
    assert "-fmad=false (nvcc) or -ffp-contract=off (g++)" in done.stderr


def test_a_refused_launch_names_its_kernel() -> None:
    kernel = "__global__ void too_wide(int* x) { *x = 1; }"
    main = "int main() { launch(nullptr, too_wide, Shape{dim3(1), dim3(2000), 0}, (int*)nullptr); }"
    done = run(toolchain.build(f"{LAYER}\n{kernel}\n{main}"))
    assert done.returncode == TOOLCHAIN
    assert "too_wide" in done.stderr and "invalid configuration argument" in done.stderr
