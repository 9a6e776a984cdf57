"""choose in two steps: a key for each 32 values, and the index of a row's greatest key; made by
lower-numerics.

choose_key(choice_keys(x)) is choose(x): a key is a value's place among all f32 above the lowest of
the indices that have it, so that the greatest key is of the first of the greatest values. A
projection leaves the keys group by group, and 32 times fewer numbers are searched behind it.
"""

from __future__ import annotations

import numpy as np

from compiler.ops import Op, define, sample
from compiler.ops.errors import CHOICE
from compiler.ops.rules import Array, count, width
from compiler.types import GROUP, Type

LAST = 2**32 - 1  # what index 0 adds to a key


def _infer_keys(x: Type) -> Type:
    return Type("i64", (*x.shape[:-1], -(-width("choice_keys", x) // GROUP)))


def _keys(x: Array) -> Array:
    """The greatest of each 32: (place << 32) + 2^32 - 1 - index.

    A place is the value's bits as a signed number: NaN is the greatest of all, +0 equals -0.
    """
    bits = np.asarray(x, np.float32).view(np.int32)
    place = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
    place = np.where(np.isnan(x), 0x7FFFFFFF, place).astype(np.int64)
    keys = place * 2**32 + (LAST - np.arange(x.shape[-1]))
    missing = -x.shape[-1] % GROUP
    nothing = np.iinfo(np.int64).min
    keys = np.pad(keys, [(0, 0)] * (x.ndim - 1) + [(0, missing)], constant_values=nothing)
    return np.max(keys.reshape(*x.shape[:-1], -1, GROUP), axis=-1)


def _infer_index(keys: Type) -> Type:
    width("choose_key", keys, ("i64",))
    return Type("i32", keys.shape[:-1])


def _index(keys: Array) -> Array:
    """The index in the lower half of the greatest key."""
    return (LAST - (np.max(keys, axis=-1) & LAST)).astype(np.uint32).view(np.int32)


define(
    Op(
        "choice_keys",
        "x",
        infer=_infer_keys,
        meaning=_keys,
        exact=_keys,
        doc="the greatest of each 32 over the last axis and its index, as one number: i64",
        truths=(
            "choice_keys([inf, nan]) = [9223372036854775806]",
            "choice_keys([-0.0, 0.0]) = [4294967295]",
        ),
        error=CHOICE,
        samples=(
            sample("x: f32[1, 1]", "choice_keys(x)"),
            sample("x: f32[3, 37]", "choice_keys(x)"),
            sample("x: f32[4, 4096]", "choice_keys(x)"),
        ),
        flops=lambda ins, _: count(ins[0]),
        traits=frozenset({"row", "internal"}),
    )
)

define(
    Op(
        "choose_key",
        "keys",
        infer=_infer_index,
        meaning=_index,
        exact=_index,
        doc="the index that the greatest of a row's choice_keys names: i32[...]",
        error=CHOICE,
        samples=(
            sample("x: f32[1, 1]", "choose_key(choice_keys(x))"),
            sample("x: f32[3, 37]", "choose_key(choice_keys(x))"),
            sample("x: f32[4, 4096]", "choose_key(choice_keys(x))"),
        ),
        flops=lambda ins, _: count(ins[0]),
        traits=frozenset({"row", "internal"}),
    )
)
