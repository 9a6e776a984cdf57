"""What op records share: checks of infer rules, and operands as real numbers for meanings."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.formats import decode
from compiler.ops import OpError
from compiler.types import (
    ACTIVATIONS,
    BLOCKS,
    DYNAMIC,
    FLOATS,
    GROUP,
    Dim,
    Type,
    nbytes,
    size,
    whole,
)
from compiler.values import Quantized, Weight, weight_of

Array = NDArray[Any]
Reals = NDArray[np.float64]


def need(ok: bool, what: str, *given: Type | None) -> None:
    """OpError `what, got f32[4, 8] and f32[7]` unless `ok`; absent operands are left out."""
    if not ok:
        raise OpError(f"{what}, got {' and '.join(str(t) for t in given if t is not None)}")


def static(op: str, *types: Type) -> Type:
    """The first of `types`; OpError where T or R is another axis than the first of one of them."""
    for t in types:
        need(not any(d in DYNAMIC for d in t.shape[1:]), f"{op} needs T or R as the first axis", t)
    return types[0]


def positive(op: str, name: str, value: float, zero: bool = False) -> None:
    """OpError unless the attribute is finite and above 0, or 0 where that is allowed."""
    if not (isfinite(value) and (value > 0 or (zero and value == 0))):
        raise OpError(f"{op} needs {name} above 0, got {value}")


def axis_of(op: str, x: Type, axis: int) -> int:
    """`axis` of x counted from 0, negative ones from the end; OpError where x has no such axis."""
    if not -x.rank <= axis < x.rank:
        raise OpError(f"{op} needs an axis of x, got axis={axis} of {x}")
    return axis % x.rank


def width(op: str, x: Type, dtypes: tuple[str, ...] = ("f32",)) -> int:
    """The last axis of x, a constant; OpError where x is another dtype or has no such axis."""
    need(x.dtype in dtypes, f"{op} needs {' or '.join(dtypes)}", x)
    need(x.rank > 0 and isinstance(x.shape[-1], int), f"{op} needs a last axis of a fixed size", x)
    static(op, x)
    return int(x.shape[-1])


def same_rows(op: str, x: Type, rows: Type) -> None:
    """OpError unless x has one entry on its first axis for each row."""
    need(rows.dtype == "rows" and rows.rank == 1, f"{op} needs rows[n] as its rows", rows)
    need(x.shape[:1] == rows.shape, f"{op} needs x[n, ...] for rows[n]", x, rows)


def check_projection(op: str, x: Type, w: Type, *others: Type) -> None:
    """OpError unless w [..., N, K] of a weight's dtype can meet x [..., K]."""
    width(op, x, ("f32", *ACTIVATIONS))
    need(w.dtype in (*FLOATS, *BLOCKS), f"{op} needs w of a weight format", w)
    need(w.rank > 1 and not w.is_dynamic and w.shape[-1] == x.shape[-1],
         f"{op} needs w[..., N, K] for x[..., K]", x, w, *others)  # fmt: skip
    need(x.dtype == "f32" or w.dtype in BLOCKS,
         f"{op} needs a block format as w for quantized x", x, w)  # fmt: skip
    need(int(w.shape[-1]) % whole(w.dtype) == 0,
         f"{op} needs K to be a multiple of {whole(w.dtype)} for {w.dtype}", x, w)  # fmt: skip


def block_formats(least: int) -> list[tuple[str, int]]:
    """Each format in blocks, for samples, with the shortest row of `least` weights or more."""
    return [(f, -(-least // whole(f)) * whole(f)) for f in BLOCKS]


def count(*types: Type) -> int:
    """Elements of all `types`, a dynamic axis counting one."""
    return sum(size(t.shape) for t in types)


def moved(ins: object, outs: Sequence[Type]) -> int:
    """Bytes of an op that reads as much as it writes."""
    del ins
    return 2 * sum(map(nbytes, outs))


def dims(shape: tuple[Dim, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def real(x: Any) -> Reals:
    """A value as float64: an array, a weight (unrounded), quantized activations."""
    if isinstance(x, Weight):
        return _real_weight(x)
    if isinstance(x, Quantized):
        words = x.words.astype(np.float64)
        if x.low is not None:
            words += x.low / 128.0
        return words * np.repeat(x.scales.astype(np.float64), GROUP, axis=-1)
    return np.asarray(x, np.float64)


def _real_weight(w: Weight) -> Reals:
    if not w.format.quantized:
        return w.values().astype(np.float64)
    levels, d, m = decode(w.format, w.rows)
    out = levels.reshape(*d.shape, GROUP) * d.astype(np.float64)[..., None]
    if m is not None:
        out += m.astype(np.float64)[..., None]
    return out.reshape(w.shape)


def as_weight(w: Array | Weight) -> Weight:
    """A weight operand that is a plain value (an input, a computed matrix) as a f32 weight."""
    return w if isinstance(w, Weight) else weight_of(w)
