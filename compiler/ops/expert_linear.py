"""expert_linear: each row's projection by the experts that it picked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compiler import exact
from compiler.diagnostics import UserError
from compiler.ops import Error, Op, define, sample
from compiler.ops.errors import DOT, dot
from compiler.ops.rules import (
    Array,
    Reals,
    as_weight,
    block_formats,
    check_projection,
    need,
    real,
)
from compiler.types import Type, nbytes, size
from compiler.values import Quantized, Weight


def _infer(x: Type, w: Type, index: Type) -> Type:
    check_projection("expert_linear", x, w)
    need(w.rank == 3, "expert_linear needs w[E, N, K]", w)
    need(index.dtype == "i32" and index.rank == 2 and isinstance(index.shape[-1], int),
         "expert_linear needs picks of i32[T, P]", index)  # fmt: skip
    need(x.shape[:-1] in (index.shape, index.shape[:1]),
         "expert_linear needs x[T, K] or x[T, P, K] for picks [T, P]", x, index)  # fmt: skip
    return Type("f32", (*index.shape, w.shape[1]))


def _rows(x: Any, picked: tuple[Array, ...]) -> Any:
    """x's rows of picks (t, p): of x [T, K] row t, of x [T, P, K] row t, p."""
    at = picked if len(x.shape) == 3 else picked[:1]
    if not isinstance(x, Quantized):
        return x[at]
    low = None if x.low is None else x.low[at]
    return Quantized(x.words[at], low, x.scales[at], x.sums[at])


def _each(
    x: Any, w: Any, index: Array, project: Callable[[Any, Weight], Array], dtype: type
) -> Array:
    """project(rows of x, expert) for each expert that is picked, put in place: [T, P, N]."""
    experts = as_weight(w)
    out = np.zeros((*index.shape, experts.shape[1]), dtype)
    for e in np.unique(index).tolist():
        if not 0 <= e < experts.shape[0]:
            raise UserError(f"expert_linear needs picks of 0..{experts.shape[0] - 1}, got {e}")
        picked = np.nonzero(index == e)
        out[picked] = project(_rows(x, picked), experts.entry(e))
    return out


def _meaning(x: Any, w: Any, index: Array) -> Reals:
    return _each(real(x), w, index, lambda rows, e: real(rows) @ real(e).T, np.float64)


def _exact(x: Array | Quantized, w: Array | Weight, index: Array) -> Array:
    """Each pick as linear: the expert's whole dot, whatever else the row picked."""
    return _each(x, w, index, exact.weight_dot, np.float32)


def _bound(x: Any, w: Any, index: Array) -> Reals:
    return _each(x, w, index, dot, np.float64)


def _bytes(ins: Sequence[Type], outs: Sequence[Type]) -> int:
    """At most: every pick another expert."""
    x, w, index = ins
    picks = min(size(index.shape), int(w.shape[0]))
    return nbytes(w.with_shape(picks, *w.shape[1:])) + nbytes(x) + nbytes(index) + nbytes(outs[0])


def _samples() -> tuple[str, ...]:
    picks = "i: i32[3, 2] = [[0, 3], [3, 1], [2, 3]]"
    call = "expert_linear(x, w, i)"
    return (
        sample("x: f32[1, 1]; w: f32[1, 1, 1]; i: i32[1, 1] = [[0]]", call),
        sample(f"x: f32[3, 37]; w: f32[4, 5, 37]; {picks}", call),
        sample(f"x: f32[3, 2, 64]; w: f32[4, 32, 64]; {picks}", call),
        *(
            sample(f"x: f32[3, {k}]; w: {f}[4, 9, {k}]; {picks}", call)
            for f, k in block_formats(160)
        ),
        sample(f"x: f32[3, 2, 96]; w: q8_0[4, 9, 96]; {picks}",
               "expert_linear(quantize(x), w, i)"),
        sample(f"x: f32[3, 96]; w: q4_1[4, 9, 96]; {picks}",
               "expert_linear(quantize(x, words=2), w, i)"),
    )  # fmt: skip


define(
    Op(
        "expert_linear",
        "x, w, index",
        infer=_infer,
        meaning=_meaning,
        exact=_exact,
        doc="x[T, K] or x[T, P, K] times w[E, N, K] of the experts index[T, P]: f32[T, P, N]",
        truths=(
            "expert_linear([[1.0, -0.0]], [[[nan, inf]], [[-0.0, 1.0]]], [[1, 1]]) = "
            "[[[-0.0], [-0.0]]]",
            "expert_linear([[0.0]], [[[inf]], [[nan]]], [[0, 1]]) = [[[nan], [nan]]]",
        ),
        error=Error(DOT, _bound),
        samples=_samples(),
        flops=lambda ins, outs: 2 * size(outs[0].shape) * int(ins[1].shape[-1]),
        bytes=_bytes,
        traits=frozenset({"weight"}),
    )
)
