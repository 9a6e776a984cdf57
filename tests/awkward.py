"""Awkward float32 values for tests: special ones, their pairs, random bits; equality of bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compiler.fuzz.special import EDGES, SPECIAL, pairs

__all__ = ["EDGES", "SPECIAL", "differing", "pairs", "random_floats"]


def random_floats(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Random bits: every exponent, and now and then NaN."""
    bits = np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32)
    return bits.view(np.float32)


def differing(a: NDArray[np.float32], b: NDArray[np.float32]) -> int:
    """How many elements differ in bits; NaN is NaN whatever its payload."""
    assert a.dtype == b.dtype == np.float32 and a.shape == b.shape, (a.dtype, a.shape, b.shape)
    same = (a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))
    return int(np.count_nonzero(~same))
