"""Ops that move or rename elements: reshape, heads, transpose, slice, concat. None computes."""

from __future__ import annotations

import numpy as np

from compiler.ops import Op, OpError, define, sample
from compiler.ops.rules import Array, axis_of, dims, moved, need, static
from compiler.types import DYNAMIC, Dim, Type, size


def _plain(op: str, *types: Type) -> Type:
    for t in types:
        need(t.is_number, f"{op} needs plain elements", t)
    return static(op, *types)


def _infer_reshape(x: Type, shape: tuple[Dim, ...]) -> Type:
    _plain("reshape", x)
    for dim in shape:
        if (isinstance(dim, str) and dim not in DYNAMIC) or (isinstance(dim, int) and dim < 1):
            raise OpError(f"reshape needs axes of 1 or more, T or R, got {dims(shape)}")
    need(x.shape[:1] == shape[:1] if x.is_dynamic or Type("f32", shape).is_dynamic else True,
         f"reshape to {dims(shape)} needs x with the same T or R as its first axis", x)  # fmt: skip
    need(size(shape) == size(x.shape), f"reshape to {dims(shape)} needs as many elements", x)
    return static("reshape", x.with_shape(*shape))


def _reshape(x: Array, shape: tuple[Dim, ...]) -> Array:
    return x.reshape(tuple(-1 if isinstance(d, str) else d for d in shape))


def _infer_heads(x: Type, count: int) -> Type:
    _plain("heads", x)
    last = x.shape[-1] if x.rank else 0
    need(isinstance(last, int) and count > 0 and last > 0 and last % count == 0,
         f"heads needs a last axis that {count} divides", x)  # fmt: skip
    return x.with_shape(*x.shape[:-1], count, int(last) // count)


def _heads(x: Array, count: int) -> Array:
    return x.reshape(*x.shape[:-1], count, x.shape[-1] // count)


def _infer_transpose(x: Type, i: int, j: int) -> Type:
    _plain("transpose", x)
    shape = list(x.shape)
    a, b = axis_of("transpose", x, i), axis_of("transpose", x, j)
    shape[a], shape[b] = shape[b], shape[a]
    return static("transpose", x.with_shape(*shape))


def _transpose(x: Array, i: int, j: int) -> Array:
    return np.ascontiguousarray(np.swapaxes(x, i, j))


def _infer_slice(x: Type, axis: int, start: int, stop: int) -> Type:
    _plain("slice", x)
    at = axis_of("slice", x, axis)
    length = x.shape[at]
    need(isinstance(length, int), f"slice of axis {axis} needs an axis of a fixed size", x)
    need(0 <= start < stop <= int(length), f"slice {start}..{stop} of axis {axis} needs "
         "0 <= start < stop <= the axis's size", x)  # fmt: skip
    return x.with_shape(*x.shape[:at], stop - start, *x.shape[at + 1 :])


def _slice(x: Array, axis: int, start: int, stop: int) -> Array:
    return np.ascontiguousarray(np.moveaxis(np.moveaxis(x, axis, 0)[start:stop], 0, axis))


def _infer_concat(xs: tuple[Type, ...], axis: int) -> Type:
    first = _plain("concat", *xs)
    at = axis_of("concat", first, axis)
    whole = f"concat along axis {axis} needs the same dtype and the same other axes"
    for t in xs:
        rest = t.rank == first.rank and t.with_shape(*t.shape[:at], *t.shape[at + 1 :])
        need(rest == first.with_shape(*first.shape[:at], *first.shape[at + 1 :]), whole, *xs)
        need(t.shape[at] not in DYNAMIC, f"concat needs a fixed size of axis {axis}", *xs)
    return first.with_shape(
        *first.shape[:at], sum(int(t.shape[at]) for t in xs), *first.shape[at + 1 :]
    )


def _concat(xs: tuple[Array, ...], axis: int) -> Array:
    return np.concatenate(xs, axis=axis)


define(
    Op(
        "reshape",
        "x, shape:ints...",
        infer=_infer_reshape,
        meaning=_reshape,
        exact=_reshape,
        doc="the same elements in the same order, in another shape",
        samples=(
            sample("x: f32[1, 6]", "reshape(x, 6, 1)"),
            sample("x: f32[6, 35]", "reshape(x, 2, 3, 35)"),
            sample("x: i32[4, 64]", "reshape(x, 256)"),
        ),
        flops=lambda _, __: 0,
        bytes=lambda _, __: 0,
        traits=frozenset({"view"}),
    )
)

define(
    Op(
        "heads",
        "x, count:int",
        infer=_infer_heads,
        meaning=_heads,
        exact=_heads,
        doc="the last axis split into count heads: [..., H * HD] as [..., H, HD]",
        samples=(
            sample("x: f32[1, 6]", "heads(x, 1)"),
            sample("x: f32[3, 15]", "heads(x, 5)"),
            sample("x: f32[4, 64]", "heads(x, 2)"),
        ),
        flops=lambda _, __: 0,
        bytes=lambda _, __: 0,
        traits=frozenset({"view"}),
    )
)

define(
    Op(
        "transpose",
        "x, i:int=-2, j:int=-1",
        infer=_infer_transpose,
        meaning=_transpose,
        exact=_transpose,
        doc="two axes of x exchanged, by default the last two",
        samples=(
            sample("x: f32[1, 7]", "transpose(x)"),
            sample("x: f32[3, 37]", "transpose(x)"),
            sample("x: f32[64, 32]", "transpose(x)"),
            sample("x: i32[2, 3, 5]", "transpose(x, 0, 2)"),
            sample("x: f32[2, 3, 4, 5]", "transpose(x, 1, 2)"),
        ),
        flops=lambda _, __: 0,
    )
)

define(
    Op(
        "slice",
        "x, axis:int, start:int, stop:int",
        infer=_infer_slice,
        meaning=_slice,
        exact=_slice,
        doc="elements start to stop - 1 of one axis",
        samples=(
            sample("x: f32[1, 5]", "slice(x, axis=1, start=4, stop=5)"),
            sample("x: f32[3, 37]", "slice(x, axis=-1, start=5, stop=20)"),
            sample("x: f32[4, 64]", "slice(x, axis=1, start=32, stop=64)"),
            sample("x: i32[5, 2, 3]", "slice(x, axis=0, start=1, stop=4)"),
        ),
        flops=lambda _, __: 0,
        bytes=moved,
    )
)

define(
    Op(
        "concat",
        "xs..., axis:int=-1",
        infer=_infer_concat,
        meaning=_concat,
        exact=_concat,
        doc="values one after another along an axis, by default the last",
        samples=(
            sample("a: f32[1, 1]; b: f32[1, 2] = 5.0", "concat(a, b)"),
            sample("a: f32[3, 5]; b: f32[3, 32] = 1.0; c: f32[3, 6]", "concat(a, b, c)"),
            sample("a: f32[4, 64]; b: f32[4, 64] = 2.0", "concat(a, b)"),
            sample("a: i32[2, 2, 3]; b: i32[2, 1, 3] = 9", "concat(a, b, axis=1)"),
        ),
        flops=lambda _, __: 0,
    )
)
