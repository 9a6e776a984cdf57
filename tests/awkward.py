"""Awkward float32 values for tests: 64 special ones, and random bits; equality of bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BITS = [
    *(0x00000000, 0x00000001, 0x00000002, 0x007FFFFF, 0x00400000, 0x00800000, 0x00800001),
    *(0x01000000, 0x33000000, 0x33000001, 0x33800000, 0x38800000, 0x387FFFFF, 0x477FEFFF),
    *(0x477FF000, 0x477FE000, 0x3F000000, 0x3F000001, 0x3EFFFFFF, 0x3FC00000, 0x40200000),
    *(0x3F800000, 0x3F800001, 0x3F7FFFFF, 0x3F808000, 0x3F818000, 0x4B000000, 0x4B7FFFFF),
    *(0x7F7FFFFF, 0x7F7F8000, 0x7F800000, 0x7FC00000),
]
SPECIAL = np.array([b | sign for b in _BITS for sign in (0, 0x80000000)], np.uint32).view(
    np.float32
)


def random_floats(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Random bits: every exponent, and now and then NaN."""
    bits = np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32)
    return bits.view(np.float32)


def pairs(values: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Every pair of `values`, as two flat arrays."""
    return np.repeat(values, len(values)), np.tile(values, len(values))


def differing(a: NDArray[np.float32], b: NDArray[np.float32]) -> int:
    """How many elements differ in bits; NaN is NaN whatever its payload."""
    assert a.dtype == b.dtype == np.float32 and a.shape == b.shape, (a.dtype, a.shape, b.shape)
    same = (a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))
    return int(np.count_nonzero(~same))
