"""Projections of many rows on tensor cores: bits of the single-row kernel and of plain loops.

The harness is tests/cxx/linear_mma.cu; a case is a line of C++ that the binary also prints. Here it
runs on the host target; benchmarks/gpu_mma.py runs it on a GPU.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from codegen import library
from codegen.expr import STRUCTS
from codegen.render import environment
from compiler.formats import FORMATS
from runtime import toolchain

HARNESS = (Path(__file__).parent / "cxx/linear_mma.cu").read_text()
SMALL, WIDE = "DotTile<64, 64, 16, 32, 3, {}>", "DotTile<128, 128, 32, 64, 4, {}>"
Case = tuple[str, str, int, int, str, int, int, bool]
# (weights, activations, outputs, inputs, tile, weights side by side, rows, awkward)
CASES: tuple[Case, ...] = (
    ("Q8_0", "Q8", 96, 576, SMALL, 1, 17, False),
    ("Q8_0", "Q8", 200, 1184, WIDE, 1, 65, True),
    ("Q8_0", "Q8x2", 96, 192, WIDE, 2, 70, True),
    ("Q4_1", "Q8", 72, 544, SMALL, 1, 63, True),
    ("Q4_1", "Q8x2", 9, 128, SMALL, 1, 129, True),
    ("Q4_0", "Q8", 100, 1024, SMALL, 2, 9, True),
    ("Q4_0", "Q8x2", 33, 32, SMALL, 1, 64, True),
    ("Q4_K", "Q8", 72, 768, SMALL, 1, 63, True),
    ("Q4_K", "Q8x2", 200, 256, WIDE, 2, 65, True),
    ("Q5_K", "Q8", 200, 256, WIDE, 1, 65, True),
    ("Q5_K", "Q8x2", 33, 768, SMALL, 2, 9, True),
    ("Q6_K", "Q8", 72, 768, SMALL, 2, 63, True),
    ("Q6_K", "Q8", 200, 512, WIDE, 2, 65, True),
    ("Q6_K", "Q8x2", 33, 256, SMALL, 1, 17, True),
)


def program(cases: tuple[Case, ...], helpers: dict[str, str] | None = None) -> str:
    """The harness with a main; `helpers` replaces parts of the library's text."""
    calls = "\n".join(
        f"  bad += compare<{w}, {x}, {n}, {k}, {tile.format(weights)}>"
        f'("{w} {x} {n} x {k}", {rows}, {str(awkward).lower()});'
        for w, x, n, k, tile, weights, rows, awkward in cases
    )
    main = f"int main() {{\n  size_t bad = 0;\n{calls}\n  return bad ? 1 : 0;\n}}\n"
    formats = [FORMATS[name] for name in STRUCTS]
    head = environment().get_template("formats.cu.j2").render(formats=formats, struct=STRUCTS)
    lib = "\n\n".join(library.needed(HARNESS + main))
    for old, new in (helpers or {}).items():
        assert old in lib
        lib = lib.replace(old, new)
    return "\n".join(["#include <cstdint>", head, lib, HARNESS, main])


def run(binary: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environ}
    return subprocess.run([binary], capture_output=True, text=True, env=env, timeout=60)


@pytest.fixture(scope="module")
def built() -> Path:
    return toolchain.build(program(CASES))


@pytest.mark.parametrize("seed", ["0", "7"])
def test_all_rows_have_the_bits_of_one_row(built: Path, seed: str) -> None:
    done = run(built, MONOCU_HOST_SEED=seed)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("!= single row 0, single row != loops 0") == len(CASES)


FAULTS = {
    "a copy not waited for": {"wait_copies<DEPTH - 2>": "wait_copies<DEPTH - 1>"},
    "no barrier": {"__syncthreads();  // this segment has landed": "// this segment has landed"},
    "another segment's scales": {"wide[segment % 2], at_lane": "wide[(segment + 1) % 2], at_lane"},
    "a swizzle of one side": {"(piece ^ row % 8) * 16": "piece * 16"},
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_shows(name: str) -> None:
    done = run(toolchain.build(program(CASES[:1], FAULTS[name]), extra=("-O0",)))
    assert done.returncode == 1, done.stdout + done.stderr
    assert not re.search("many rows != single row 0", done.stdout)


@pytest.mark.nvcc
@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
def test_registers_hold_a_tile() -> None:
    binary = toolchain.build(program(CASES[1:2]), "cuda", lineinfo=False)
    kernels = [r for r in toolchain.resource_usage(binary) if "many_rows" in r.kernel]
    assert len(kernels) == 2
    for r in kernels:
        assert r.spill_stores <= 64, f"{r.kernel} for {r.arch}: {r.registers} registers, {r}"
