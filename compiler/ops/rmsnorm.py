"""rmsnorm and its factor: rows divided by the root of their mean square."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler import exact
from compiler.ops import Error, Op, define, sample
from compiler.ops.errors import TINY, factor_roundings, of_factor
from compiler.ops.rules import Array, Reals, count, need, positive, width
from compiler.types import Type


def _infer(x: Type, w: Type | None, eps: float) -> Type:
    n = width("rmsnorm", x)
    positive("rmsnorm", "eps", eps, zero=True)
    need(w is None or w == Type("f32", (n,)), "rmsnorm needs w[n] for x[..., n]", x, w)
    return x


def _meaning(x: Reals, w: Reals | None, eps: float) -> Reals:
    y = x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + eps)
    return y if w is None else y * w


def _exact(x: Array, w: Array | None, eps: float) -> Array:
    """(x * r) * w, r as in rms_factor."""
    y = x * _factor(x, eps)
    return y if w is None else y * w


def _infer_factor(x: Type, eps: float) -> Type:
    width("rms_factor", x)
    positive("rms_factor", "eps", eps, zero=True)
    return x.with_shape(*x.shape[:-1], 1)


def _factor_meaning(x: Reals, eps: float) -> Reals:
    return 1.0 / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + eps)


def _factor(x: Array, eps: float) -> Array:
    """1 / sqrt(tree_sum(x * x) / n + eps), each step rounded to f32."""
    f32 = np.float32
    mean = exact.tree_sum(x * x)[..., None] / f32(x.shape[-1])
    return f32(1) / np.sqrt(mean + f32(eps))


def _factor_bound(x: Reals, eps: float, more: int = 0) -> Reals:
    n = x.shape[-1]
    squares = np.sum(x**2, axis=-1, keepdims=True)
    relative = of_factor(squares, n, eps, factor_roundings(n, 1) + more)
    return relative * _factor_meaning(x, eps)


def _bound(x: Reals, w: Reals | None, eps: float) -> Reals:
    off = np.abs(x) * _factor_bound(x, eps, 1 + (w is not None))
    return (off if w is None else off * np.abs(w)) + 2 * TINY


def _flops(ins: Sequence[Type], outs: Sequence[Type]) -> int:
    del outs
    return (len(ins) + 2) * count(ins[0])


define(
    Op(
        "rmsnorm",
        "x, w?, eps:real",
        infer=_infer,
        meaning=_meaning,
        exact=_exact,
        doc="x / sqrt(mean(x^2) + eps) over the last axis, times w[n]",
        truths=(
            "rmsnorm([nan, 1.0], eps=1e-6) = [nan, nan]",
            "rmsnorm([inf, 1.0], eps=1e-6) = [nan, 0.0]",
            "rmsnorm([-0.0, 0.0], eps=1e-6) = [-0.0, 0.0]",
            "rmsnorm([0.0, 0.0], eps=0.0) = [nan, nan]",
            "rmsnorm([1e20, 1.0], eps=1e-6) = [0.0, 0.0]",
        ),
        error=Error("gamma((ceil(log2 n) + 3) / 2 + 4) * |result|", _bound),
        samples=(
            sample("x: f32[1, 1]; w: f32[1] = 2.0", "rmsnorm(x, w, 1e-6)"),
            sample("x: f32[3, 37]; w: f32[37]", "rmsnorm(x, w, 1e-5)"),
            sample("x: f32[4, 64]", "rmsnorm(x, eps=1e-6)"),
            sample("x: f32[2, 3, 80]; w: f32[80]", "rmsnorm(x, w, 1e-5)"),
        ),
        flops=_flops,
        traits=frozenset({"row"}),
    )
)

define(
    Op(
        "rms_factor",
        "x, eps:real",
        infer=_infer_factor,
        meaning=_factor_meaning,
        exact=_factor,
        doc="1 / sqrt(mean(x^2) + eps) over the last axis, which becomes 1",
        truths=(
            "rms_factor([nan, 1.0], eps=1e-6) = [nan]",
            "rms_factor([inf, 1.0], eps=1e-6) = [0.0]",
            "rms_factor([-0.0], eps=0.0) = [inf]",
        ),
        error=Error("gamma((ceil(log2 n) + 3) / 2 + 2) * result", _factor_bound),
        samples=(
            sample("x: f32[1, 1]", "rms_factor(x, eps=1e-6)"),
            sample("x: f32[3, 37]", "rms_factor(x, eps=1e-5)"),
            sample("x: f32[4, 64]", "rms_factor(x, eps=1e-6)"),
        ),
        flops=lambda ins, _: 2 * count(ins[0]),
        traits=frozenset({"row", "internal"}),
    )
)
