"""choose: the next token of each row of logits."""

from __future__ import annotations

import numpy as np

from compiler.ops import Op, define, sample
from compiler.ops.errors import CHOICE
from compiler.ops.rules import Array, count, width
from compiler.types import Type


def _infer(logits: Type) -> Type:
    width("choose", logits)
    return Type("i32", logits.shape[:-1])


def _meaning(logits: Array) -> Array:
    best = np.isnan(logits) | (logits == np.max(logits, axis=-1, keepdims=True))
    n = logits.shape[-1]
    return np.where(best, np.arange(n), n).min(axis=-1).astype(np.int32)


def _exact(logits: Array) -> Array:
    """The lowest index of the greatest: NaN is the greatest of all, +0 equals -0."""
    return np.asarray(np.argmax(logits, axis=-1)).astype(np.int32)


define(
    Op(
        "choose",
        "logits",
        infer=_infer,
        meaning=_meaning,
        exact=_exact,
        doc="the token of the greatest logit of each row, the lowest on ties: i32[...]",
        truths=(
            "choose([1.0, nan, inf, nan]) = 1",
            "choose([-0.0, 0.0]) = 0",
            "choose([-inf, -inf]) = 0",
        ),
        error=CHOICE,
        samples=(
            sample("x: f32[1, 1]", "choose(x)"),
            sample("x: f32[3, 37]", "choose(x)"),
            sample("x: f32[4, 4096]", "choose(x)"),
        ),
        flops=lambda ins, _: count(ins[0]),
        traits=frozenset({"row"}),
    )
)
