"""codegen/lib's math and quantize helpers, built by g++, against their NumPy twins: every bit.

`-m nvcc` compiles them for a GPU too, without a warning.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler import exact
from tests.awkward import EDGES, SPECIAL, differing, pairs, random_floats

LIB = Path(__file__).parents[1] / "codegen/lib"
TEXT = "\n".join((LIB / name).read_text() for name in ("math.cuh", "quantize.cuh"))
ONE = ("round_even", "exp32", "log32", "tanh32", "erf32")
TWO = ("max_of", "min_of")
TWIN = {
    "round_even": exact.rint,
    "exp32": exact.exp,
    "log32": exact.log,
    "tanh32": exact.tanh,
    "erf32": exact.erf,
    "max_of": exact.maximum,
    "min_of": exact.minimum,
}
LOOPS = """
extern "C" void all_sincos64(const double* x, float* s, float* c, long n) {
  for (long i = 0; i < n; i++) sincos64(x[i], s + i, c + i);
}
extern "C" void all_half_to_float(const unsigned short* x, float* y, long n) {
  for (long i = 0; i < n; i++) y[i] = half_to_float(x[i]);
}
extern "C" void all_float_to_half(const float* x, unsigned short* y, long n) {
  for (long i = 0; i < n; i++) y[i] = float_to_half(x[i]);
}
extern "C" void all_bfloat_to_float(const unsigned short* x, float* y, long n) {
  for (long i = 0; i < n; i++) y[i] = bfloat_to_float(x[i]);
}
extern "C" void all_float_to_bfloat(const float* x, unsigned short* y, long n) {
  for (long i = 0; i < n; i++) y[i] = float_to_bfloat(x[i]);
}
extern "C" void all_quantize(
    const float* x, signed char* w, float* s, float* y, long n) {
  for (long g = 0; g < n; g++) quantize_group(x + 32 * g, w + 32 * g, s + g, y + g);
}
extern "C" void all_quantize2(
    const float* x, signed char* w, signed char* l, float* s, float* y, long n) {
  for (long g = 0; g < n; g++) quantize_group2(x + 32 * g, w + 32 * g, l + 32 * g, s + g, y + g);
}
"""


def loop(name: str, operands: str) -> str:
    takes = ", ".join(f"const float* {n}" for n in operands)
    given = ", ".join(f"{n}[i]" for n in operands)
    return (
        f'extern "C" void all_{name}({takes}, float* out, long n) '
        f"{{ for (long i = 0; i < n; i++) out[i] = {name}({given}); }}\n"
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("lib_math")
    loops = "".join([loop(n, "a") for n in ONE] + [loop(n, "ab") for n in TWO])
    source = f"#include <cmath>\n#define __device__\n{TEXT}\n{loops}{LOOPS}"
    (folder / "lib.cu").write_text(source)
    flags = ("-O2", "-ffp-contract=off", "-march=x86-64-v3", "-Wall", "-Wextra", "-Werror")
    command = [
        "g++",
        "-x",
        "c++",
        "-std=c++17",
        *flags,
        "-shared",
        "-fPIC",
        "lib.cu",
        "-o",
        "lib.so",
    ]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "lib.so"))


def call(library: ctypes.CDLL, name: str, count: int, *arrays: NDArray[np.generic]) -> None:
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
    library[f"all_{name}"](*pointers, ctypes.c_long(count))


def awkward(count: int = 400_000) -> NDArray[np.float32]:
    """Edges, random bits, and the range in which the functions are not constant."""
    plain = np.random.default_rng(4).standard_normal(count).astype(np.float32)
    return np.concatenate([EDGES, random_floats(count), plain, plain * 30])


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_value(library: ctypes.CDLL, name: str) -> None:
    x = awkward()
    got = np.empty_like(x)
    call(library, name, len(x), x, got)
    assert differing(got, TWIN[name](x)) == 0


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_values(library: ctypes.CDLL, name: str) -> None:
    a, b = pairs(SPECIAL)
    got = np.empty_like(a)
    call(library, name, len(a), a, b, got)
    assert differing(got, TWIN[name](a, b)) == 0


def test_sincos(library: ctypes.CDLL) -> None:
    rng = np.random.default_rng(5)
    powers = 2.0 ** rng.uniform(-30, 28, 500_000)
    multiples = np.arange(-20_000, 20_000) * (np.pi / 4)
    with np.errstate(invalid="ignore"):  # a NaN that signals
        x = np.concatenate([powers, -powers, multiples, EDGES.astype(np.float64)])
    s, c = np.empty((2, len(x)), np.float32)
    call(library, "sincos64", len(x), x, s, c)
    want_s, want_c = exact.sincos(x)
    assert differing(s, want_s) == 0 and differing(c, want_c) == 0


def test_every_half_and_every_bfloat(library: ctypes.CDLL) -> None:
    x = np.arange(65536, dtype=np.uint16)
    got = np.empty(65536, np.float32)
    call(library, "half_to_float", 65536, x, got)
    with np.errstate(invalid="ignore"):
        assert differing(got, x.view(np.float16).astype(np.float32)) == 0
    call(library, "bfloat_to_float", 65536, x, got)
    assert differing(got, (x.astype(np.uint32) << np.uint32(16)).view(np.float32)) == 0


def test_rounding_to_halves_and_bfloats(library: ctypes.CDLL) -> None:
    with np.errstate(invalid="ignore"):
        halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    bits = halves.view(np.uint32)
    near = [(bits + np.uint32(d)).view(np.float32) for d in (0, 0xFFF, 0x1000, 0x1001, 0x8000)]
    x = np.concatenate([awkward(), *near])
    got = np.empty(len(x), np.uint16)
    call(library, "float_to_half", len(x), x, got)
    want = exact.to_f16(x)
    assert ((got == want.view(np.uint16)) | (np.isnan(x) & np.isnan(got.view(np.float16)))).all()
    call(library, "float_to_bfloat", len(x), x, got)
    assert np.array_equal(got, exact.bf16_bits(x))


def groups() -> NDArray[np.float32]:
    """Groups of 32 whose scale runs through everything, tiny to inf and NaN."""
    rng = np.random.default_rng(6)
    plain = rng.standard_normal((3000, 32)) * 2.0 ** rng.integers(-150, 127, (3000, 1))
    halves = rng.integers(-254, 255, (1000, 32)) / 2  # ratios on a tie
    halves[:, 0] = 127
    mixed = rng.choice(SPECIAL, (2000, 32))
    finite = np.where(np.isfinite(mixed), mixed, 0)
    parts = [plain, halves, mixed, finite, random_floats(32 * 500).reshape(-1, 32)]
    with np.errstate(over="ignore", invalid="ignore"):
        return np.concatenate([p.astype(np.float32) for p in parts])


def test_quantize(library: ctypes.CDLL) -> None:
    x = groups()
    n = len(x)
    words, low = np.empty((2, n, 32), np.int8)
    scales, sums = np.empty((2, n, 1), np.float32)
    call(library, "quantize", n, x, words, scales, sums)
    want = exact.quantize(x)
    assert np.array_equal(words, want.words)
    assert differing(scales, want.scales) == 0 and differing(sums, want.sums) == 0
    call(library, "quantize2", n, x, words, low, scales, sums)
    want = exact.quantize2(x)
    assert want.low is not None
    assert np.array_equal(words, want.words) and np.array_equal(low, want.low)
    assert differing(scales, want.scales) == 0 and differing(sums, want.sums) == 0


def test_items_are_cut_by_blank_lines() -> None:
    """What the renderer relies on: an item is a comment and one definition, no blank line."""
    for item in re.split(r"\n\n", TEXT.strip("\n")):
        assert item.startswith("//") and item.count("\n}") == 1, item


@pytest.mark.nvcc
def test_nvcc_takes_them_without_a_warning(tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("needs nvcc")
    (tmp_path / "lib.cu").write_text(TEXT)
    flags = ("-std=c++17", "-fmad=false", "-arch=sm_90a", "-Werror", "all-warnings", "-ptx")
    subprocess.run([nvcc, *flags, "lib.cu", "-o", "lib.ptx"], cwd=tmp_path, check=True)
