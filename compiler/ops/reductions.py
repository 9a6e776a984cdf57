"""Reductions that drop an axis: sum, mean, max, argmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compiler import exact
from compiler.ops import Error, Op, define, sample
from compiler.ops.errors import CHOICE, TINY, depth, gamma
from compiler.ops.rules import Array, axis_of, count, need, static
from compiler.types import INTEGERS, Type

Rule = Callable[..., Type]


def _infer(name: str, dtypes: tuple[str, ...], result: str | None = None) -> Rule:
    def infer(x: Type, axis: int) -> Type:
        need(x.dtype in dtypes, f"{name} needs {' or '.join(dtypes)}", x)
        static(name, x)
        at = axis_of(name, x, axis)
        need(isinstance(x.shape[at], int), f"{name} needs an axis of a fixed size", x)
        return Type(result or x.dtype, (*x.shape[:at], *x.shape[at + 1 :]))

    return infer


def _sum(x: Array, axis: int) -> Array:
    """Reals by the adjacent-first tree; integers wrap, so their order does not matter."""
    if x.dtype.kind != "f":
        return np.sum(x, axis=axis, dtype=x.dtype)
    return exact.tree_sum(np.moveaxis(x, axis, -1))


def _mean(x: Array, axis: int) -> Array:
    """tree_sum(x) / n"""
    return _sum(x, axis) / np.float32(x.shape[axis])


def _max(x: Array, axis: int) -> Array:
    """NaN wins, +0 is above -0."""
    if x.dtype.kind != "f":
        return np.max(x, axis=axis)
    return exact.row_max(np.moveaxis(x, axis, -1))


def _argmax(x: Array, axis: int) -> Array:
    """The lowest index of the greatest: NaN is the greatest of all, +0 equals -0."""
    return np.asarray(np.argmax(x, axis=axis)).astype(np.int32)


def _argmax_meaning(x: Array, axis: int) -> Array:
    moved = np.moveaxis(x, axis, -1)
    top = np.isnan(moved) | (moved == np.max(moved, axis=-1, keepdims=True))
    return np.where(top, np.arange(moved.shape[-1]), moved.shape[-1]).min(axis=-1).astype(np.int32)


def _sum_bound(x: Array, axis: int) -> Any:
    if x.dtype.kind != "f":
        return np.float64(0)
    return gamma(depth(x.shape[axis])) * np.sum(np.abs(x), axis=axis)


def _mean_bound(x: Array, axis: int) -> Any:
    return gamma(depth(x.shape[axis]) + 1) * np.mean(np.abs(x), axis=axis) + TINY


def _samples(name: str, integers: bool = True) -> tuple[str, ...]:
    whole = ("x: i32[3, 37]", "x: i64[2, 5]") if integers else ()
    return (
        sample("x: f32[1, 1]", f"{name}(x)"),
        sample("x: f32[3, 37]", f"{name}(x)"),
        sample("x: f32[4, 64]", f"{name}(x)"),
        sample("x: f32[3, 5, 7]", f"{name}(x, axis=1)"),
        sample("x: f32[9]", f"{name}(x, axis=0)"),
        *(sample(text, f"{name}(x)") for text in whole),
    )


_NUMBERS = ("f32", *INTEGERS)

define(
    Op(
        "sum",
        "x, axis:int=-1",
        infer=_infer("sum", _NUMBERS),
        meaning=lambda x, axis: np.sum(x, axis=axis, dtype=x.dtype),
        exact=_sum,
        doc="the sum over an axis, by default the last; integers wrap",
        truths=(
            "sum([-0.0, -0.0]) = -0.0",
            "sum([inf, 1.0]) = inf",
            "sum([inf, 1.0, -inf]) = nan",
            "sum([nan, 1.0]) = nan",
        ),
        error=Error("gamma(ceil(log2 n)) * sum |x|; of integers none", _sum_bound),
        samples=_samples("sum"),
        flops=lambda ins, _: count(ins[0]),
        traits=frozenset({"row"}),
    )
)

define(
    Op(
        "mean",
        "x, axis:int=-1",
        infer=_infer("mean", ("f32",)),
        meaning=lambda x, axis: np.mean(x, axis=axis),
        exact=_mean,
        doc="the mean over an axis, by default the last",
        truths=(
            "mean([-0.0, -0.0]) = -0.0",
            "mean([inf, -inf]) = nan",
            "mean([nan, 1.0]) = nan",
            "mean([3e38, 3e38]) = inf",
        ),
        error=Error("gamma(ceil(log2 n) + 1) * mean |x|", _mean_bound),
        samples=_samples("mean", integers=False),
        flops=lambda ins, _: count(ins[0]),
        traits=frozenset({"row"}),
    )
)

define(
    Op(
        "max",
        "x, axis:int=-1",
        infer=_infer("max", _NUMBERS),
        meaning=lambda x, axis: np.max(x, axis=axis),
        exact=_max,
        doc="the greatest over an axis, by default the last; NaN wins",
        truths=(
            "max([nan, inf]) = nan",
            "max([-0.0, 0.0]) = 0.0",
            "max([-inf, -inf]) = -inf",
        ),
        error=CHOICE,
        samples=_samples("max"),
        flops=lambda ins, _: count(ins[0]),
        traits=frozenset({"row"}),
    )
)

define(
    Op(
        "argmax",
        "x, axis:int=-1",
        infer=_infer("argmax", _NUMBERS, "i32"),
        meaning=_argmax_meaning,
        exact=_argmax,
        doc="the lowest index of the greatest over an axis, by default the last, as i32",
        truths=(
            "argmax([1.0, nan, inf, nan]) = 1",
            "argmax([-0.0, 0.0]) = 0",
            "argmax([-inf, -inf]) = 0",
        ),
        error=CHOICE,
        samples=_samples("argmax"),
        flops=lambda ins, _: count(ins[0]),
        traits=frozenset({"row"}),
    )
)
