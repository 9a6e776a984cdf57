"""combine: the weighted sum of a row's experts."""

from __future__ import annotations

import numpy as np

from compiler import exact
from compiler.ops import Error, Op, define, sample
from compiler.ops.errors import TINY, gamma
from compiler.ops.rules import Array, Reals, count, need, width
from compiler.types import Type


def _infer(y: Type, weight: Type) -> Type:
    width("combine", y)
    need(y.rank == 3 and weight == Type("f32", y.shape[:2]),
         "combine needs y[T, P, N] and f32 weight[T, P]", y, weight)  # fmt: skip
    return y.with_shape(y.shape[0], y.shape[2])


def _meaning(y: Reals, weight: Reals) -> Reals:
    return np.einsum("tpn,tp->tn", y, weight)


def _exact(y: Array, weight: Array) -> Array:
    """t = w_0 * y_0, then t = fma(w_p, y_p, t) in the order of the picks."""
    t = weight[:, :1] * y[:, 0]
    for p in range(1, y.shape[1]):
        t = exact.fma(weight[:, p : p + 1], y[:, p], t)
    return t


def _bound(y: Reals, weight: Reals) -> Reals:
    count = y.shape[1]
    return gamma(count) * _meaning(np.abs(y), np.abs(weight)) + count * TINY


define(
    Op(
        "combine",
        "y, weight",
        infer=_infer,
        meaning=_meaning,
        exact=_exact,
        doc="the sum over picks of weight[T, P] times y[T, P, N], in the picks' order: f32[T, N]",
        truths=(
            "combine([[[nan], [1.0]]], [[0.0, 1.0]]) = [[nan]]",
            "combine([[[inf], [1.0]]], [[0.0, 1.0]]) = [[nan]]",
            "combine([[[-0.0], [-0.0]]], [[1.0, 1.0]]) = [[-0.0]]",
        ),
        error=Error("gamma(P) * sum |weight y|", _bound),
        samples=(
            sample("y: f32[1, 1, 1]; w: f32[1, 1] = 0.5", "combine(y, w)"),
            sample("y: f32[3, 2, 37]; w: f32[3, 2]", "combine(y, w)"),
            sample("y: f32[4, 8, 64]; w: f32[4, 8]", "combine(y, w)"),
        ),
        flops=lambda ins, _: 2 * count(ins[0]),
    )
)
