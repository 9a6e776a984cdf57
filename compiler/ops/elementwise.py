"""Elementwise ops, one row of a table each: meaning, exact arithmetic and CUDA text of one element.

A CUDA expression's operands are atoms: names, or literals (a negative one in parentheses). It does
the operations of `exact` in the same order; those of several steps are functions of
codegen/lib/elementwise.cuh. Integers wrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler import exact
from compiler.ops import Op, define, sample
from compiler.ops.rules import Reals, need, static
from compiler.types import INTEGERS, Type, broadcast, size

Array = NDArray[Any]
F32 = np.float32


@dataclass(frozen=True)
class Row:
    """One elementwise op; `cuda` by dtype group, "f32" and for ops that take integers "int"."""

    name: str
    arity: int
    doc: str
    meaning: Callable[..., Any]
    exact: Callable[..., Any]
    cuda: Mapping[str, str]
    truth: str  # of special values: operands = result
    steps: int = 1  # floating-point operations an element, a function call counting one

    @property
    def dtypes(self) -> tuple[str, ...]:
        return ("f32", *INTEGERS) if "int" in self.cuda else ("f32",)


def _sigmoid(x: Reals) -> Reals:
    """1 / (1 + e^-x), without overflow on either side."""
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1.0 + e)


def _erf(x: Reals) -> Reals:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _gelu_tanh(x: Array) -> Array:
    inner = F32(math.sqrt(2 / math.pi)) * (x + F32(0.044715) * (x * x * x))
    return F32(0.5) * x * (F32(1) + exact.tanh(inner))


def _gelu_erf(x: Array) -> Array:
    return F32(0.5) * x * (F32(1) + exact.erf(x * F32(math.sqrt(0.5))))


def _softplus(x: Array) -> Array:
    return exact.maximum(x, F32(0)) + exact.log(F32(1) + exact.exp(-np.abs(x)))


TABLE = (
    Row("add", 2, "a + b; integers wrap", lambda a, b: a + b, lambda a, b: a + b,
        {"f32": "{0} + {1}", "int": "add_wrap({0}, {1})"},
        "[-0.0, -0.0, inf, nan], [0.0, -0.0, -inf, 1.0] = [0.0, -0.0, nan, nan]"),
    Row("sub", 2, "a - b; integers wrap", lambda a, b: a - b, lambda a, b: a - b,
        {"f32": "{0} - {1}", "int": "sub_wrap({0}, {1})"},
        "[-0.0, 0.0, inf, nan], [0.0, 0.0, inf, 1.0] = [-0.0, 0.0, nan, nan]"),
    Row("mul", 2, "a * b; integers wrap", lambda a, b: a * b, lambda a, b: a * b,
        {"f32": "{0} * {1}", "int": "mul_wrap({0}, {1})"},
        "[-0.0, 0.0, inf, nan], [1.0, inf, -1.0, 0.0] = [-0.0, nan, -inf, nan]"),
    Row("div", 2, "a / b, of reals", lambda a, b: a / b, lambda a, b: a / b,
        {"f32": "{0} / {1}"},
        "[1.0, 1.0, 0.0, inf, -0.0, nan], [0.0, -0.0, 0.0, inf, 2.0, 1.0] = "
        "[inf, -inf, nan, nan, -0.0, nan]"),
    Row("minimum", 2, "the lesser of two; NaN if either is, -0 below +0", np.minimum,
        exact.minimum, {"f32": "min_of({0}, {1})"},
        "[0.0, -0.0, inf, nan, 1.0], [-0.0, 0.0, 1.0, -inf, nan] = [-0.0, -0.0, 1.0, nan, nan]"),
    Row("maximum", 2, "the greater of two; NaN if either is, +0 above -0", np.maximum,
        exact.maximum, {"f32": "max_of({0}, {1})"},
        "[0.0, -0.0, inf, nan, 1.0], [-0.0, 0.0, 1.0, inf, nan] = [0.0, 0.0, inf, nan, nan]"),
    Row("neg", 1, "-x; integers wrap", lambda x: -x, lambda x: -x,
        {"f32": "-{0}", "int": "neg_wrap({0})"}, "[0.0, -0.0, inf, nan] = [-0.0, 0.0, -inf, nan]"),
    Row("exp", 1, "e to the x", np.exp, exact.exp, {"f32": "exp32({0})"},
        "[-0.0, 89.0, inf, -103.9, -104.0, -inf, nan] = [1.0, inf, inf, 1e-45, 0.0, 0.0, nan]"),
    Row("log", 1, "natural logarithm", np.log, exact.log, {"f32": "log32({0})"},
        "[0.0, -0.0, inf, -1.0, -inf, nan] = [-inf, -inf, inf, nan, nan, nan]"),
    Row("tanh", 1, "hyperbolic tangent", np.tanh, exact.tanh, {"f32": "tanh32({0})"},
        "[0.0, -0.0, inf, -inf, nan] = [0.0, -0.0, 1.0, -1.0, nan]"),
    Row("silu", 1, "x * sigmoid(x)", lambda x: x * _sigmoid(x),
        lambda x: x / (F32(1) + exact.exp(-x)), {"f32": "{0} / (1.0f + exp32(-{0}))"},
        "[0.0, -0.0, inf, -200.0, -inf, nan] = [0.0, -0.0, inf, -0.0, nan, nan]", 4),
    Row("sigmoid", 1, "1 / (1 + exp(-x))", _sigmoid,
        lambda x: F32(1) / (F32(1) + exact.exp(-x)), {"f32": "1.0f / (1.0f + exp32(-{0}))"},
        "[0.0, -0.0, inf, -inf, nan] = [0.5, 0.5, 1.0, 0.0, nan]", 4),
    Row("gelu_tanh", 1, "gelu by its tanh approximation",
        lambda x: x * _sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)),
        _gelu_tanh, {"f32": "gelu_tanh32({0})"},
        "[0.0, -0.0, inf, -200.0, -inf, nan] = [0.0, -0.0, inf, -0.0, nan, nan]", 9),
    Row("gelu_erf", 1, "x times the normal distribution's integral up to x",
        lambda x: x * (1.0 + _erf(x / math.sqrt(2.0))) / 2.0,
        _gelu_erf, {"f32": "gelu_erf32({0})"},
        "[0.0, -0.0, inf, -200.0, -inf, nan] = [0.0, -0.0, inf, -0.0, nan, nan]", 5),
    Row("relu", 1, "max(x, 0); NaN stays NaN, -0 becomes 0", lambda x: np.where(x < 0, 0.0, x),
        lambda x: exact.maximum(x, F32(0)), {"f32": "relu32({0})"},
        "[0.0, -0.0, inf, -inf, nan] = [0.0, 0.0, inf, 0.0, nan]"),
    Row("softplus", 1, "log(1 + exp(x))", lambda x: np.logaddexp(0.0, x),
        _softplus, {"f32": "softplus32({0})"},
        "[0.0, -0.0, inf, -inf, nan] = [0.6931472, 0.6931472, inf, 0.0, nan]", 6),
)  # fmt: skip


def _infer_one(row: Row) -> Callable[..., Type]:
    def infer(x: Type) -> Type:
        need(x.dtype in row.dtypes, f"{row.name} needs {' or '.join(row.dtypes)}", x)
        return static(row.name, x)

    return infer


def _infer_two(row: Row) -> Callable[..., Type]:
    def infer(a: Type, b: Type) -> Type:
        hint = "" if "int" in row.cuda else " (cast integers first)"
        need(a.dtype == b.dtype and a.dtype in row.dtypes,
             f"{row.name} needs two of {', '.join(row.dtypes)}{hint}", a, b)  # fmt: skip
        shape = broadcast(a, b)
        need(shape is not None, f"{row.name} needs axes that are equal, 1 or missing on the left",
             a, b)  # fmt: skip
        return static(row.name, Type(a.dtype, shape or ()))

    return infer


def _samples(row: Row) -> tuple[str, ...]:
    if row.arity == 1:
        shapes = ("1, 1", "3, 37", "4, 64")
        whole = ("i32[2, 9]", "i64[5]") if "int" in row.cuda else ()
        return tuple(
            sample(f"x: {t}", f"{row.name}(x)") for t in (*(f"f32[{s}]" for s in shapes), *whole)
        )
    call = f"{row.name}(a, b)"
    return (
        sample("a: f32[1, 5]; b: f32[1, 5] = 2.5", call),
        sample("a: f32[3, 37]; b: f32[37] = 0.5", call),
        sample("a: f32[4, 64]; b: f32[4, 64] = 3.0", call),
        sample("a: f32[2, 1, 33]; b: f32[5, 33] = -1.5", call),
        *_integer_samples(row, call),
    )


def _integer_samples(row: Row, call: str) -> tuple[str, ...]:
    if "int" not in row.cuda:
        return ()
    largest = "a: i32[3] = [2147483647, -2147483648, 7]; b: i32[3] = [3, -5, 0]"
    return (sample(largest, call), sample("a: i64[2, 9]; b: i64[2, 1]", call))


def _as(kind: type[np.generic] | None, f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` over arrays: as they are, or as `kind` unless they hold integers."""

    def call(**operands: Array) -> Array:
        values = [np.asarray(v) for v in operands.values()]
        if kind is not None and values[0].dtype.kind == "f":
            values = [v.astype(kind) for v in values]
        with np.errstate(all="ignore"):
            return np.asarray(f(*values))

    return call


def _record(row: Row) -> Op:
    call, _, result = row.truth.partition(" = ")
    return Op(
        row.name,
        "x" if row.arity == 1 else "a, b",
        infer=_infer_one(row) if row.arity == 1 else _infer_two(row),
        meaning=_as(np.float64, row.meaning),
        exact=_as(None, row.exact),
        doc=row.doc,
        samples=_samples(row),
        flops=lambda _, outs: row.steps * sum(size(t.shape) for t in outs),
        expression=row.cuda,
        traits=frozenset({"elementwise"}),
        truths=(f"{row.name}({call}) = {result}",),
    )


for _row in TABLE:
    define(_record(_row))
