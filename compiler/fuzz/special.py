"""Special float32 values, and the edges of the functions' branches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float32]


def floats_of(*bits: int) -> Floats:
    return np.array(bits, np.uint32).view(np.float32)


# Both signs of each are SPECIAL.
_MAGNITUDES = floats_of(
    *(0x00000000, 0x00000001, 0x007FFFFF, 0x00800000),  # 0, subnormals, smallest normal
    *(0x33000000, 0x33800000),  # 2^-25, half of f16's smallest; 2^-24
    *(0x38800000, 0x387FFFFF),  # f16's smallest normal, and below
    *(0x3EFFFFFF, 0x3F000000, 0x3F000001, 0x3FC00000, 0x40200000),  # 0.5, 1.5, 2.5: ties of rint
    *(0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3F808000, 0x3F818000),  # 1; ties of bf16
    *(0x42B17218, 0x42CFF1B5),  # 88.72, 103.97: the ends of exp
    *(0x477FE000, 0x477FEFFF, 0x477FF000),  # f16's greatest, and where it becomes inf
    *(0x4B000000, 0x4B800000),  # 2^23, 2^24: from where all are whole, and even
    *(0x4F000000, 0x5F000000),  # 2^31, 2^63: beyond i32, i64
    *(0x7F7F8000, 0x7F7FFFFF, 0x7F800000),  # where bf16 becomes inf; the greatest; inf
    *(0x7FC00000, 0x7F800001),  # NaN: quiet, signalling
)
SPECIAL = np.concatenate([_MAGNITUDES, floats_of(*(_MAGNITUDES.view(np.uint32) | 0x80000000))])

# Where functions take another branch or change their value's kind: these and both neighbours.
_EDGES = np.concatenate(
    [
        np.array([88.72284, 89.0, 87.33655, 103.27893, 103.97208, 104.0, 0.34657359], np.float32),
        np.array([0.6, 0.921875, 4.0, 2 / 3, 4 / 3, 8.6643, 9.0109], np.float32),  # tanh, erf, log
        np.array([2.0**22, 127.0, 127.5, 1e-40], np.float32),
        _MAGNITUDES[np.isfinite(_MAGNITUDES) & (_MAGNITUDES > 0)],
    ]
)
_BITS = _EDGES.view(np.uint32)
_NEAR = np.concatenate([_BITS - np.uint32(1), _BITS, _BITS + np.uint32(1)])
EDGES = np.unique(
    np.concatenate([_NEAR, _NEAR | np.uint32(0x80000000), SPECIAL.view(np.uint32)])
).view(np.float32)


def pairs(values: Array) -> tuple[Array, Array]:
    """Every pair of `values`, as two flat arrays."""
    return np.repeat(values, len(values)), np.tile(values, len(values))


def edges_of(dtype: str) -> Array:
    """The edges of an integer type."""
    limit = np.iinfo(dtype.replace("i", "int"))
    edges = (0, 1, -1, 2, 7, -7, 65536, limit.max, limit.min, limit.max - 1, limit.min + 1)
    return np.array(edges, limit.dtype)
