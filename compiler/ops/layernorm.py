"""layernorm: rows less their mean, divided by their standard deviation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler import exact
from compiler.ops import Error, Op, define, sample
from compiler.ops.errors import TINY, U, depth, factor_roundings, gamma
from compiler.ops.rules import Array, Reals, count, need, positive, width
from compiler.types import Type


def _infer(x: Type, w: Type | None, b: Type | None, eps: float) -> Type:
    n = width("layernorm", x)
    positive("layernorm", "eps", eps, zero=True)
    for part in (w, b):
        need(part is None or part == Type("f32", (n,)),
             "layernorm needs w[n] and b[n] for x[..., n]", x, w, b)  # fmt: skip
    return x


def _meaning(x: Reals, w: Reals | None, b: Reals | None, eps: float) -> Reals:
    y = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + eps)
    y = y if w is None else y * w
    return y if b is None else y + b


def _exact(x: Array, w: Array | None, b: Array | None, eps: float) -> Array:
    """d = x - tree_sum(x) / n; r = 1 / sqrt(tree_sum(d * d) / n + eps); ((d * r) * w) + b."""
    f32 = np.float32
    n = f32(x.shape[-1])
    d = x - exact.tree_sum(x)[..., None] / n
    r = f32(1) / np.sqrt(exact.tree_sum(d * d)[..., None] / n + f32(eps))
    y = d * r
    y = y if w is None else y * w
    return y if b is None else y + b


def _bound(x: Reals, w: Reals | None, b: Reals | None, eps: float) -> Reals:
    """The mean is off by e, the same for the whole row, so that the variance is off by e^2."""
    n = x.shape[-1]
    e = gamma(depth(n) + 1) * np.mean(np.abs(x), axis=-1, keepdims=True)
    spread = x.var(axis=-1, keepdims=True) + eps + TINY
    d = np.abs(x - x.mean(axis=-1, keepdims=True))
    shift = np.minimum((e**2 / spread + n * TINY / spread) / 2, 1)
    relative = gamma(factor_roundings(n, 3) + 2 + (w is not None)) + shift
    off = (e * (1 + relative) + d * relative) / np.sqrt(spread) + TINY
    off = off if w is None else off * np.abs(w)
    return off if b is None else off + U * (np.abs(_meaning(x, w, b, eps)) + off)


def _flops(ins: Sequence[Type], outs: Sequence[Type]) -> int:
    del outs
    return (len(ins) + 4) * count(ins[0])


define(
    Op(
        "layernorm",
        "x, w?, b?, eps:real",
        infer=_infer,
        meaning=_meaning,
        exact=_exact,
        doc="(x - mean(x)) / sqrt(var(x) + eps) over the last axis, times w[n], plus b[n]",
        truths=(
            "layernorm([nan, 1.0], eps=1e-6) = [nan, nan]",
            "layernorm([inf, 1.0], eps=1e-6) = [nan, nan]",
            "layernorm([-0.0, -0.0], eps=1e-6) = [0.0, 0.0]",
        ),
        error=Error(
            "e r + |result| (gamma((ceil(log2 n) + 5) / 2 + 5) + (e r)^2 / 2) without b, of which "
            "there is a rounding more; r = |w| / sqrt(var + eps), e = gamma(ceil(log2 n) + 1) * "
            "mean |x|",
            _bound,
        ),
        samples=(
            sample("x: f32[1, 1]; w: f32[1] = 2.0; b: f32[1] = 0.5", "layernorm(x, w, b, 1e-5)"),
            sample("x: f32[3, 37]; w: f32[37]; b: f32[37]", "layernorm(x, w, b, 1e-5)"),
            sample("x: f32[4, 64]", "layernorm(x, eps=1e-6)"),
            sample("x: f32[2, 3, 80]; w: f32[80]", "layernorm(x, w, eps=1e-5)"),
        ),
        flops=_flops,
        traits=frozenset({"row"}),
    )
)
