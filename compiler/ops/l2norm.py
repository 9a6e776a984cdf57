"""l2norm: rows divided by their length."""

from __future__ import annotations

import numpy as np

from compiler import exact
from compiler.ops import Error, Op, define, sample
from compiler.ops.errors import TINY, depth, of_factor
from compiler.ops.rules import Array, Reals, count, positive, width
from compiler.types import Type


def _infer(x: Type, eps: float) -> Type:
    width("l2norm", x)
    positive("l2norm", "eps", eps)
    return x


def _meaning(x: Reals, eps: float) -> Reals:
    length = np.sqrt(np.sum(x**2, axis=-1, keepdims=True))
    return x / np.where(length < eps, eps, length)


def _exact(x: Array, eps: float) -> Array:
    """x * (1 / max(sqrt(tree_sum(x * x)), eps)); NaN wins the max."""
    f32 = np.float32
    length = exact.maximum(np.sqrt(exact.tree_sum(x * x)), f32(eps))
    return x * (f32(1) / length)[..., None]


def _bound(x: Reals, eps: float) -> Reals:
    squares = np.sum(x**2, axis=-1, keepdims=True)
    n = x.shape[-1]
    relative = of_factor(squares, n, eps**2 / n, (depth(n) + 1) / 2 + 3)
    return relative * np.abs(_meaning(x, eps)) + TINY


define(
    Op(
        "l2norm",
        "x, eps:real",
        infer=_infer,
        meaning=_meaning,
        exact=_exact,
        doc="x / max(sqrt(sum(x^2)), eps) over the last axis",
        truths=(
            "l2norm([nan, 1.0], eps=1e-6) = [nan, nan]",
            "l2norm([inf, 1.0], eps=1e-6) = [nan, 0.0]",
            "l2norm([-0.0, 0.0], eps=1e-6) = [-0.0, 0.0]",
        ),
        error=Error("gamma((ceil(log2 n) + 1) / 2 + 3) * |result|", _bound),
        samples=(
            sample("x: f32[1, 1]", "l2norm(x, 1e-6)"),
            sample("x: f32[3, 37]", "l2norm(x, 1e-6)"),
            sample("x: f32[4, 64]", "l2norm(x, 1e-6)"),
            sample("x: f32[2, 3, 8] = 0.0", "l2norm(x, 1e-3)"),
        ),
        flops=lambda ins, _: 3 * count(ins[0]),
        traits=frozenset({"row"}),
    )
)
