"""The CUDA text of elementwise ops, built by g++, against their exact arithmetic: every bit."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler.fuzz.special import edges_of
from compiler.ops import Op, bound, load
from tests.awkward import EDGES, SPECIAL, differing, pairs, random_floats

LIB = Path(__file__).parents[1] / "codegen/lib"
OPS = [op for op in load().values() if op.expression]
CTYPES = {"f32": "float", "i32": "int", "i64": "long long"}
NUMPY = {"f32": np.float32, "i32": np.int32, "i64": np.int64}
CASES = [(op, d) for op in OPS for d in NUMPY if (d if d == "f32" else "int") in op.expression]
each_case = pytest.mark.parametrize(("op", "dtype"), CASES, ids=lambda v: getattr(v, "name", v))


def loop(name: str, text: str, operands: int, source: str, target: str) -> str:
    """A C function `name` that computes `text` for every element."""
    names = "ab"[:operands]
    takes = ", ".join(f"const {source}* {n}s" for n in names)
    reads = " ".join(f"const {source} {n} = {n}s[i];" for n in names)
    return (
        f'extern "C" void {name}({takes}, {target}* out, long count) {{\n'
        f"  for (long i = 0; i < count; i++) {{ {reads} out[i] = {text.format(*names)}; }}\n}}\n"
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("elementwise")
    parts = ["#include <cmath>\n#define __device__\n"]
    parts += [(LIB / name).read_text() for name in ("math.cuh", "elementwise.cuh")]
    for op, d in CASES:
        assert op.expression is not None
        text = op.expression["f32" if d == "f32" else "int"]
        parts.append(loop(f"{op.name}_{d}", text, len(op.params), CTYPES[d], CTYPES[d]))
    parts.append(loop("to_int", "float_to_int({0})", 1, "float", "int"))
    parts.append(loop("to_long", "float_to_long({0})", 1, "float", "long long"))
    (folder / "ops.cpp").write_text("\n".join(parts))
    flags = ("-O2", "-ffp-contract=off", "-fno-strict-aliasing", "-Wall", "-Wextra", "-Werror")
    command = ["g++", "-std=c++17", *flags, "-shared", "-fPIC", "-o", "ops.so", "ops.cpp"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "ops.so"))


def call(
    library: ctypes.CDLL, name: str, operands: list[np.ndarray], dtype: type[np.generic]
) -> NDArray[np.generic]:
    out = np.empty(operands[0].shape, dtype)
    pointers = [ctypes.c_void_p(np.ascontiguousarray(v).ctypes.data) for v in (*operands, out)]
    library[name](*pointers, ctypes.c_long(out.size))
    return out


def operands_of(count: int, dtype: str) -> list[np.ndarray]:
    if dtype == "f32":
        special = pairs(SPECIAL) if count == 2 else (EDGES,)
        random = random_floats(50000, 1), random_floats(50000, 2)
        near = np.random.default_rng(3).standard_normal((2, 50000)).astype(np.float32) * 4
        return [np.concatenate([special[i], random[i], near[i]]) for i in range(count)]
    limit, kind = np.iinfo(NUMPY[dtype]), NUMPY[dtype]
    rng = np.random.default_rng(4)
    random = rng.integers(limit.min, limit.max, (2, 20000), dtype=kind)
    both = pairs(edges_of(dtype))
    return [np.concatenate([both[i], random[i]]) for i in range(count)]


@each_case
def test_the_text_computes_the_bits(library: ctypes.CDLL, op: Op, dtype: str) -> None:
    operands = operands_of(len(op.params), dtype)
    want = op.exact(**bound(op, operands, {}))
    got = call(library, f"{op.name}_{dtype}", operands, NUMPY[dtype])
    if dtype == "f32":
        assert differing(got, want) == 0
    else:
        assert np.array_equal(got, want)


@pytest.mark.parametrize(("name", "dtype"), [("to_int", "i32"), ("to_long", "i64")])
def test_reals_become_integers_toward_zero(library: ctypes.CDLL, name: str, dtype: str) -> None:
    values = operands_of(1, "f32")[0]
    with np.errstate(all="ignore"):
        values = np.concatenate([values, values * np.float32(1e9), values * np.float32(1e18)])
        want = load()["cast"].exact(x=values, dtype=dtype)
    assert np.array_equal(call(library, name, [values], NUMPY[dtype]), want)
    known = np.array([np.nan, np.inf, -np.inf, 2.9, -2.9, -0.0], np.float32)
    limit = np.iinfo(NUMPY[dtype])
    assert load()["cast"].exact(x=known, dtype=dtype).tolist() == [
        *(0, limit.max, limit.min, 2, -2, 0)
    ]
