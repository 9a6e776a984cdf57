"""linear: a projection by a weight stored [out, in]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler import exact
from compiler.ops import Error, Op, define, sample
from compiler.ops.errors import DOT, U, dot
from compiler.ops.rules import (
    Array,
    Reals,
    as_weight,
    block_formats,
    check_projection,
    need,
    real,
)
from compiler.types import Type, size
from compiler.values import Quantized, Weight


def _infer(x: Type, w: Type, b: Type | None) -> Type:
    check_projection("linear", x, w)
    need(w.rank == 2, "linear needs w[N, K] for x[..., K]", x, w)
    need(b is None or b == Type("f32", w.shape[:1]), "linear needs b of f32[N] for w[N, K]", w, b)
    return Type("f32", (*x.shape[:-1], w.shape[0]))


def _meaning(x: Any, w: Any, b: Array | None) -> Reals:
    y = real(x) @ real(w).T
    return y if b is None else y + b


def _exact(x: Array | Quantized, w: Array | Weight, b: Array | None) -> Array:
    """compiler.exact.weight_dot: segments of 128; the bias is one more f32 sum."""
    y = exact.weight_dot(x, as_weight(w))
    return y if b is None else y + b


def _bound(x: Any, w: Any, b: Array | None) -> Reals:
    off = dot(x, w)
    return off if b is None else off + U * (np.abs(_meaning(x, w, b)) + off)


def _flops(ins: Sequence[Type], outs: Sequence[Type]) -> int:
    return 2 * size(outs[0].shape) * int(ins[1].shape[-1]) + (
        size(outs[0].shape) if len(ins) == 3 else 0
    )


def _samples() -> tuple[str, ...]:
    return (
        sample("x: f32[1, 1]; w: f32[1, 1]", "linear(x, w)"),
        sample("x: f32[3, 37]; w: f32[5, 37]; b: f32[5]", "linear(x, w, b)"),
        sample("x: f32[4, 256]; w: f32[64, 256]", "linear(x, w)"),
        sample("x: f32[2, 2, 160]; w: f16[9, 160]", "linear(x, w)"),
        sample("x: f32[130]; w: bf16[33, 130]", "linear(x, w)"),
        *(sample(f"x: f32[2, {k}]; w: {f}[9, {k}]", "linear(x, w)") for f, k in block_formats(160)),
        *(
            sample(f"x: f32[3, {k}]; w: {f}[40, {k}]", f"linear(quantize(x, words={words}), w)")
            for words, least in ((1, 32), (2, 288))
            for f, k in block_formats(least)
        ),
    )


define(
    Op(
        "linear",
        "x, w, b?",
        infer=_infer,
        meaning=_meaning,
        exact=_exact,
        doc="x[..., K] times w[N, K] of any weight format, transposed, plus b[N]: f32[..., N]",
        truths=(
            "linear([0.0, 1.0], [[nan, 1.0], [inf, 1.0]]) = [nan, nan]",
            "linear([-0.0, -0.0], [[1.0, 1.0]]) = [-0.0]",
            "linear([inf, 1.0], [[1.0, -inf], [-1.0, 1.0]]) = [nan, -inf]",
        ),
        error=Error(DOT + "; a rounding more for b", _bound),
        samples=_samples(),
        flops=_flops,
        traits=frozenset({"weight"}),
    )
)
