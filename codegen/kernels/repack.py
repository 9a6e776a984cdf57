"""Inputs of op programs that a kernel reads as weights: row-major bytes into tiles, by a launch of
its own."""

from __future__ import annotations

from codegen.expr import STRUCTS
from codegen.kernel import Arg, Grid, Kernel, Launch, Param, Refusal
from compiler.formats import FORMATS
from compiler.graph import Value
from compiler.types import size

THREADS = 128


def repack_input(value: Value) -> Launch:
    """The launch that makes the tiles of an input matrix [..., N, K]; its written argument is the
    tiles' buffer."""
    t = value.type
    if t.dtype not in FORMATS or t.rank < 2 or t.is_dynamic:
        raise Refusal(f"a matrix is one of {', '.join(FORMATS)} of two or more fixed axes, got {t}")
    *outer, n, k = t.shape
    rows = size((*outer, n))
    assert isinstance(k, int)
    segments = -(-k // 512) * 4
    kernel = Kernel(
        "repack.cu.j2",
        "repack_input",
        ("class F", "int M", "int N", "int K"),
        (Param("const uint8_t*", "raw"), Param("uint8_t*", "tiles")),
        (),
    )
    return Launch(
        kernel,
        (STRUCTS[t.dtype], str(rows), str(n), str(k)),
        (Arg("value", value), Arg("value", value, writes=True)),
        Grid(str(-(-rows * segments // THREADS))),
        str(THREADS),
    )
