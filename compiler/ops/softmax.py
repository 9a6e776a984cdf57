"""softmax over the last axis."""

from __future__ import annotations

import numpy as np

from compiler import exact
from compiler.ops import Error, Op, define, sample
from compiler.ops.errors import EXP, TINY, U, depth, gamma
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


def _bound(x: Reals) -> Reals:
    top = x.max(axis=-1, keepdims=True)
    with np.errstate(over="ignore"):
        each = np.expm1(U * np.minimum(top - x, 200.0) + gamma(EXP))
    y = _meaning(x)
    whole = np.sum(y * each, axis=-1, keepdims=True)
    return y * (each + whole + gamma(depth(x.shape[-1]) + 1)) * (1 + 2.0**-15) + 2 * TINY


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
        error=Error(
            "y (t + sum y t + gamma(ceil(log2 n) + 1)), t = u (1.74 + max - x) being what an exp "
            "is off",
            _bound,
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
