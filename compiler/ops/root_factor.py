"""A norm's factor in two steps: sums of squares of each 32, and the root of their mean; made by
lower-numerics.

root_factor(square_sums(x), n=n, eps=eps) is rms_factor(x, eps) bit for bit: the adjacent-first tree
over n values is the tree over their groups of 32, each summed by its own tree. So a producer leaves
the sums group by group, and each reader folds n / 32 of them.
"""

from __future__ import annotations

import numpy as np

from compiler import exact
from compiler.ops import Error, Op, define, sample
from compiler.ops.errors import TINY, depth, factor_roundings, gamma, of_factor
from compiler.ops.rules import Array, Reals, count, need, positive, width
from compiler.types import GROUP, Type


def _infer_sums(x: Type) -> Type:
    return x.with_shape(*x.shape[:-1], -(-width("square_sums", x) // GROUP))


def _groups(x: Array, nothing: float) -> Array:
    """x[..., n] as [..., ceil(n / 32), 32], filled up with `nothing`."""
    n = x.shape[-1]
    missing = -n % GROUP
    filled = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)], constant_values=nothing)
    return filled.reshape(*x.shape[:-1], -1, GROUP)


def _sums_meaning(x: Reals) -> Reals:
    return np.sum(_groups(x * x, 0.0), axis=-1)


def _sums(x: Array) -> Array:
    """tree_sum of the rounded squares of each 32, the last group filled up with -0.0."""
    return exact.tree_sum(_groups(x * x, -0.0))


def _infer_factor(sums: Type, n: int, eps: float) -> Type:
    groups = width("root_factor", sums)
    need(
        n > 0 and -(-n // GROUP) == groups, f"root_factor needs sums of ceil({n} / 32) groups", sums
    )
    positive("root_factor", "eps", eps, zero=True)
    return sums.with_shape(*sums.shape[:-1], 1)


def _factor_meaning(sums: Reals, n: int, eps: float) -> Reals:
    return 1.0 / np.sqrt(np.sum(sums, axis=-1, keepdims=True) / n + eps)


def _factor(sums: Array, n: int, eps: float) -> Array:
    """1 / sqrt(tree_sum(sums) / n + eps), each step rounded to f32."""
    f32 = np.float32
    mean = exact.tree_sum(sums)[..., None] / f32(n)
    with np.errstate(all="ignore"):  # sums that are none, below 0, give NaN
        return f32(1) / np.sqrt(mean + f32(eps))


def _sums_bound(x: Reals) -> Reals:
    return gamma(depth(GROUP) + 1) * _sums_meaning(x) + GROUP * TINY


def _factor_bound(sums: Reals, n: int, eps: float) -> Reals:
    whole = np.sum(sums, axis=-1, keepdims=True)
    count = factor_roundings(sums.shape[-1], 0)
    off = of_factor(whole, n, eps, count) * _factor_meaning(sums, n, eps)
    return np.where(sums.min(axis=-1, keepdims=True) < 0, np.inf, off)


define(
    Op(
        "square_sums",
        "x",
        infer=_infer_sums,
        meaning=_sums_meaning,
        exact=_sums,
        doc="the sum of squares of each 32 over the last axis",
        truths=(
            "square_sums([-0.0, 0.0]) = [0.0]",
            "square_sums([inf, -inf]) = [inf]",
            "square_sums([nan, inf]) = [nan]",
        ),
        error=Error("gamma(6) * result", _sums_bound),
        samples=(
            sample("x: f32[1, 1]", "square_sums(x)"),
            sample("x: f32[3, 37]", "square_sums(x)"),
            sample("x: f32[4, 576]", "square_sums(x)"),
        ),
        flops=lambda ins, _: 2 * count(ins[0]),
        traits=frozenset({"row", "internal"}),
    )
)

define(
    Op(
        "root_factor",
        "sums, n:int, eps:real",
        infer=_infer_factor,
        meaning=_factor_meaning,
        exact=_factor,
        doc="1 / sqrt(sum(sums) / n + eps) over the last axis, which becomes 1",
        truths=(
            "root_factor([-0.0], n=1, eps=0.0) = [inf]",
            "root_factor([inf], n=1, eps=0.0) = [0.0]",
            "root_factor([nan], n=1, eps=0.0) = [nan]",
            "root_factor([-1.0], n=1, eps=0.0) = [nan]",
        ),
        error=Error(
            "gamma((ceil(log2 groups) + 2) / 2 + 2) * result, of sums of 0 or more", _factor_bound
        ),
        samples=(
            sample("x: f32[1, 1]", "root_factor(x, n=1, eps=1e-6)"),
            sample("x: f32[3, 2]", "root_factor(x, n=37, eps=1e-5)"),
            sample("x: f32[4, 32]", "root_factor(x, n=1024, eps=1e-6)"),
        ),
        flops=lambda ins, _: count(ins[0]) + 3,
        traits=frozenset({"row", "internal"}),
    )
)
