"""The compilers: what a build's key covers, what a user reads when a compiler is missing or
complains, an interrupt that leaves nothing, and the emitted layer under nvcc and NVRTC."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compiler.diagnostics import TOOLCHAIN, UserError
from runtime import cache, nvrtc, toolchain
from tests.test_host import LAYER, PROGRAM, ROOT

NOTHING = "int main() { return 0; }\n"
FAKE = """#!/bin/sh
[ "$1" = --version ] && echo "fake 1.0" && exit 0
echo "$@" > "$FAKE_LOG"
env > "$FAKE_LOG.env"
echo $$ > "$FAKE_LOG.pid"
[ -n "$FAKE_SLEEP" ] && sleep 60
[ -n "$FAKE_FAULT" ] && seq 1 50 && exit 3
for last; do :; done
echo "#!/bin/sh" > "$last"
"""
EVERYTHING = """
struct Smem { int v[32]; };
__global__ void everything(const int4* w, int* out, const unsigned* flag, float* y) {
    grid_dependency_wait();
    grid_dependency_trigger();
    auto& s = shared<Smem>();
    s.v[threadIdx.x] = dot16(load_stream(w), w[1], dp4a(1, 2, 3));
    __syncthreads();
    UNROLL
    for (int i = 0; i < 4; i++) atomicAdd(out, __shfl_xor_sync(~0u, s.v[threadIdx.x], i));
    wait_until(flag, 3);
    y[0] = y[1] * y[2] + y[3];
}
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that notes its arguments and environment; the file it notes them in."""
    path, log = tmp_path / "fake-g++", tmp_path / "log"
    path.write_text(FAKE)
    path.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("MONOCU_CXX", str(path))
    monkeypatch.setenv("FAKE_LOG", str(log))
    return log


def test_same_build_same_binary(fake: Path) -> None:
    first = toolchain.build(NOTHING)
    fake.unlink()
    assert toolchain.build(NOTHING) == first
    assert not fake.exists(), "the compiler ran again"


def test_the_key_covers_what_a_binary_depends_on(fake: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.cu"
    file.write_text(NOTHING)
    builds = [toolchain.build(NOTHING), toolchain.build(NOTHING + "\n"), toolchain.build(file)]
    builds += [toolchain.build(NOTHING, sanitize=True), toolchain.build(NOTHING, extra=["-g"])]
    compiler = Path(os.environ["MONOCU_CXX"])
    compiler.write_text(FAKE + "# a byte more\n")
    builds.append(toolchain.build(NOTHING))
    assert len(set(builds)) == len(builds)


def test_the_key_covers_the_host_target_s_headers(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "HOST_HEADERS", tmp_path)
    builds = [toolchain.build(NOTHING)]
    for text in ("// one\n", "// another\n"):
        (tmp_path / "warp.h").write_text(text)
        builds.append(toolchain.build(NOTHING))
    assert len(set(builds)) == 3


def test_flags_keep_the_arithmetic_and_the_warnings(fake: Path) -> None:
    toolchain.build(NOTHING, extra=["-DX"])
    words = fake.read_text().split()
    assert {"-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-pthread", "-DX"} <= set(words)
    assert "-ffast-math" not in words
    for archs in (("sm_80",), ("sm_80", "sm_90a")):
        flags = toolchain.nvcc_flags(archs)
        assert "-fmad=false" in flags and "all-warnings" in flags
    assert "-gencode=arch=compute_90a,code=sm_90a" in flags


def test_hidden_flags_do_not_reach_the_compiler(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "--use_fast_math")
    monkeypatch.setenv("CPATH", "/elsewhere")
    toolchain.build(NOTHING)
    seen = Path(f"{fake}.env").read_text()
    assert "use_fast_math" not in seen and "/elsewhere" not in seen


def test_a_complaint_shows_command_and_first_lines(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FAULT", "1")
    with pytest.raises(UserError) as caught:
        toolchain.build(NOTHING)
    assert caught.value.code == TOOLCHAIN
    message = str(caught.value)
    assert "the compiler failed with status 3:" in message and "fake-g++ -x c++" in message
    assert "\n    30\n" in message and "\n    31\n" not in message and "20 more lines" in message
    assert not list(cache.root().glob("*.tmp"))


def test_an_error_names_the_users_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "mine.cu"
    file.write_text("int main() {\n    return missing;\n}\n")
    with pytest.raises(UserError, match=rf"{file}:2:\d+: error: 'missing'"):
        toolchain.build(file)
    with pytest.raises(UserError, match=r"failed.cu:2:\d+: error: 'missing'"):
        toolchain.build(file.read_text())
    assert (cache.root() / "failed.cu").read_text() == file.read_text()


def test_interrupt_ends_the_compiler_and_leaves_nothing(fake: Path) -> None:
    code = f"from runtime import toolchain; toolchain.build({NOTHING!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "FAKE_SLEEP": "1"},
        stderr=subprocess.DEVNULL,
    )
    pid_file = Path(f"{fake}.pid")
    for _ in range(500):
        if pid_file.exists() and pid_file.read_text():
            break
        time.sleep(0.02)
    compiler = int(pid_file.read_text())
    process.send_signal(signal.SIGINT)
    assert process.wait(20) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(compiler, 0)
    assert not list(cache.root().glob("*.tmp"))


def test_a_missing_compiler_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONOCU_CXX", "no-such-compiler")
    with pytest.raises(UserError, match=r"'no-such-compiler' is not on PATH \(MONOCU_CXX\)"):
        toolchain.build(NOTHING)
    monkeypatch.setenv("MONOCU_NVCC", "/no/such/nvcc")
    with pytest.raises(UserError, match="MONOCU_NVCC names no program"):
        toolchain.build(NOTHING, "cuda")
    assert toolchain.report()["g++"].startswith("none: ")


def test_nvcc_is_found_in_the_pypi_packages(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "nvidia" / "cu13"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "nvcc").write_bytes(Path(os.environ["MONOCU_CXX"]).read_bytes())
    (home / "bin" / "nvcc").chmod(0o755)
    monkeypatch.setattr(toolchain.shutil, "which", lambda _name: None)
    monkeypatch.setattr(toolchain, "pypi_homes", lambda: [home])
    found = toolchain.find_nvcc()
    assert (found.path, found.flags) == (home / "bin" / "nvcc", ("-L", str(home / "lib")))
    monkeypatch.setattr(toolchain, "pypi_homes", lambda: [])
    with pytest.raises(UserError, match="pip install 'monocu"):
        toolchain.find_nvcc()


@pytest.mark.parametrize("arch", ["90", "sm_9", "sm_90;rm", "compute_90"])
def test_an_arch_is_checked(arch: str) -> None:
    with pytest.raises(UserError, match="spelled like sm_90a"):
        toolchain.nvcc_flags([arch])


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(UserError, match="host or cuda, given 'rocm'"):
        toolchain.build(NOTHING, "rocm")


def nvcc_missing() -> str:
    try:
        toolchain.find_nvcc()
    except UserError as error:
        return str(error)
    return ""


@pytest.mark.nvcc
@pytest.mark.skipif(bool(nvcc_missing()), reason=nvcc_missing() or "nvcc is there")
def test_the_layer_and_the_host_cases_compile_for_gpus() -> None:
    binary = toolchain.build(PROGRAM + EVERYTHING, "cuda")
    usage = [use for use in toolchain.resource_usage(binary) if "everything" in use.kernel]
    assert [use.arch for use in usage] == ["sm_80", "sm_90a"]
    assert all(0 < use.registers < 128 and use.spill_stores == 0 for use in usage)


@pytest.mark.nvrtc
@pytest.mark.skipif(bool(nvrtc.missing()), reason=nvrtc.missing() or "NVRTC is there")
@pytest.mark.parametrize("arch", toolchain.ARCHS)
def test_the_layer_compiles_in_process(arch: str) -> None:
    assert nvrtc.compile_text(LAYER + EVERYTHING, arch)[:4] == b"\x7fELF"
    with pytest.raises(UserError, match="NVRTC refuses the program"):
        nvrtc.compile_text("__global__ void k() { missing(); }", arch)


def test_resource_usage_reads_ptxas(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(
        "ptxas info    : Compiling entry function '_Z1kPi' for 'sm_90a'\n"
        "ptxas info    : Function properties for _Z1kPi\n"
        "    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 1 barriers, 2048 bytes smem\n"
    )
    expected = [toolchain.Resources("_Z1kPi", "sm_90a", 40, 12, 8, 16, 2048)]
    assert toolchain.resource_usage(tmp_path / "program") == expected
