"""layernorm: rows less their mean, divided by their standard deviation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler import exact
from compiler.ops import Op, define, sample
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
