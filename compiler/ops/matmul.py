"""matmul: products of matrices of activations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler import exact
from compiler.ops import Error, Op, define, sample
from compiler.ops.errors import TINY, frame_roundings, gamma
from compiler.ops.rules import Array, need, static
from compiler.types import INTEGERS, Type, size


def _infer(a: Type, b: Type) -> Type:
    need(a.dtype == b.dtype and a.dtype in ("f32", *INTEGERS) and min(a.rank, b.rank) >= 2,
         "matmul needs a[..., M, K] and b[..., K, N], both f32, i32 or i64", a, b)  # fmt: skip
    static("matmul", a, b)
    k = b.shape[-2]
    need(
        isinstance(k, int) and a.shape[-1] == k, "matmul needs b[..., K, N] for a[..., M, K]", a, b
    )
    need(b.rank == 2 or a.shape[:-2] == b.shape[:-2],
         "matmul needs the same leading axes, or b of two axes", a, b)  # fmt: skip
    return Type(a.dtype, (*a.shape[:-1], b.shape[-1]))


def _meaning(a: Array, b: Array) -> Array:
    return np.einsum("...mk,...kn->...mn", a, b)


def _exact(a: Array, b: Array) -> Array:
    """The order of linear, each column of b being a weight's row; integers wrap."""
    return exact.matmul(a, b)


def _bound(a: Array, b: Array) -> Any:
    if a.dtype.kind == "i":
        return np.float64(0)
    count = frame_roundings(a.shape[-1])
    return gamma(count) * _meaning(np.abs(a), np.abs(b)) + count * TINY


def _flops(ins: Sequence[Type], outs: Sequence[Type]) -> int:
    return 2 * size(outs[0].shape) * int(ins[0].shape[-1])


define(
    Op(
        "matmul",
        "a, b",
        infer=_infer,
        meaning=_meaning,
        exact=_exact,
        doc="a[..., M, K] times b[..., K, N], leading axes equal or b of two axes: [..., M, N]",
        truths=(
            "matmul([[0.0, 1.0]], [[nan, inf], [1.0, 1.0]]) = [[nan, nan]]",
            "matmul([[-0.0, -0.0]], [[1.0], [1.0]]) = [[-0.0]]",
        ),
        error=Error("gamma(min(K, 128) + ceil(K / 128) - 1) * sum |a b|; of integers none", _bound),
        samples=(
            sample("a: f32[1, 1]; b: f32[1, 1]", "matmul(a, b)"),
            sample("a: f32[3, 37]; b: f32[37, 5]", "matmul(a, b)"),
            sample("a: f32[64, 160]; b: f32[160, 32]", "matmul(a, b)"),
            sample("a: f32[2, 3, 130]; b: f32[2, 130, 9]", "matmul(a, b)"),
            sample("a: f32[2, 3, 4, 8]; b: f32[8, 6]", "matmul(a, b)"),
            sample("a: i32[3, 5]; b: i32[5, 2]", "matmul(a, b)"),
            sample("a: i64[2, 9]; b: i64[9, 4]", "matmul(a, b)"),
        ),
        flops=_flops,
    )
)
