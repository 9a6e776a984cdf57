"""softmax over the last axis."""

from __future__ import annotations

import numpy as np

from compiler import exact
from compiler.ops import Op, define, sample
from compiler.ops.rules import Array, Reals, count, width
from compiler.types import Type


def _infer(x: Type) -> Type:
    width("softmax", x)
    return x


def _meaning(x: Reals) -> Reals:
    top = x.max(axis=-1, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(top), 0.0, top))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0.0, 1.0, total)


def _exact(x: Array) -> Array:
    """e = exp(x - max); e / tree_sum(e). A row of nothing but -inf gives 0."""
    top = exact.row_max(x)[..., None]
    e = exact.exp(x - top)
    y = e / exact.tree_sum(e)[..., None]
    return np.where(np.isneginf(top), np.float32(0), y)


define(
    Op(
        "softmax",
        "x",
        infer=_infer,
        meaning=_meaning,
        exact=_exact,
        doc="exp(x - max) / sum of it over the last axis; rows of -inf alone give 0",
        truths=(
            "softmax([-inf, -inf]) = [0.0, 0.0]",
            "softmax([0.0, -inf]) = [1.0, 0.0]",
            "softmax([-0.0, 0.0]) = [0.5, 0.5]",
            "softmax([inf, 0.0]) = [nan, nan]",
            "softmax([nan, 0.0]) = [nan, nan]",
        ),
        samples=(
            sample("x: f32[1, 1]", "softmax(x)"),
            sample("x: f32[3, 37]", "softmax(x)"),
            sample("x: f32[4, 64]", "softmax(x)"),
            sample("x: f32[2, 3, 130]", "softmax(x)"),
        ),
        flops=lambda ins, _: 4 * count(ins[0]),
        traits=frozenset({"row"}),
    )
)
