"""top_k: the k greatest of a row, in order."""

from __future__ import annotations

import numpy as np

from compiler.ops import Op, define, sample
from compiler.ops.errors import CHOICE
from compiler.ops.rules import Array, count, need, width
from compiler.types import Type


def _infer(x: Type, k: int) -> tuple[Type, Type]:
    n = width("top_k", x)
    need(1 <= k <= n, f"top_k needs k of 1..n for x[..., n], got k={k}; x", x)
    shape = (*x.shape[:-1], k)
    return Type("f32", shape), Type("i32", shape)


def _meaning(x: Array, k: int) -> tuple[Array, Array]:
    """k times the greatest of what is left."""
    flat = x.reshape(-1, x.shape[-1])
    picks = [sorted(range(len(row)), key=lambda i: _order(row[i]), reverse=True) for row in flat]
    # a stable sort in reverse keeps equal ones in order
    index = np.array([p[:k] for p in picks], np.int32).reshape(*x.shape[:-1], k)
    return np.take_along_axis(x, index, axis=-1), index


def _order(v: float) -> tuple[bool, float]:
    return (bool(np.isnan(v)), 0.0 if np.isnan(v) else float(v))


def _exact(x: Array, k: int) -> tuple[Array, Array]:
    """NaN is the greatest of all, +0 equals -0, equal ones by the lowest index."""
    key = np.where(np.isnan(x), np.float32(-np.inf), -x)
    index = np.lexsort((key, ~np.isnan(x)), axis=-1)[..., :k].astype(np.int32)
    return np.take_along_axis(x, index, axis=-1), index


define(
    Op(
        "top_k",
        "x, k:int",
        infer=_infer,
        meaning=_meaning,
        exact=_exact,
        doc="the k greatest of x[..., n], greatest first: f32[..., k] and indices i32[..., k]",
        truths=(
            "top_k([1.0, nan, inf, nan], k=3) = [nan, nan, inf], [1, 3, 2]",
            "top_k([-0.0, 0.0, -inf], k=2) = [-0.0, 0.0], [0, 1]",
        ),
        error=CHOICE,
        samples=(
            sample("x: f32[1, 1]", "v, i = top_k(x, 1)", "v, i"),
            sample("x: f32[3, 37]", "v, i = top_k(x, 5)", "v, i"),
            sample("x: f32[4, 128]", "v, i = top_k(x, 8)", "v, i"),
            sample("x: f32[2, 3]", "v, i = top_k(x, 3)", "i, v"),
        ),
        flops=lambda ins, _: count(ins[0]),
        traits=frozenset({"row"}),
    )
)
