"""Sums and extremes of float32 whose result does not depend on how the work is split."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compiler.exact.fma import Floats


def tree_sum(values: ArrayLike) -> Floats:
    """The sum over the last axis, in float32: f32[..., n] -> f32[...].

    Order: padded with -0.0 to a power of two, neighbours are added, `v = v[0::2] + v[1::2]`, until
    one is left. -0.0 added to anything leaves it as it is. Nothing at all sums to -0.0.
    """
    v = np.asarray(values, np.float32)
    n = v.shape[-1]
    padded = np.full((*v.shape[:-1], 1 << max(n - 1, 0).bit_length()), -0.0, np.float32)
    padded[..., :n] = v
    with np.errstate(all="ignore"):
        while padded.shape[-1] > 1:
            padded = padded[..., 0::2] + padded[..., 1::2]
    return padded[..., 0]


def _keys(values: NDArray[np.float32]) -> NDArray[np.int32]:
    """Integers in the order of the floats, -0 before +0; the mapping is its own inverse."""
    bits = values.view(np.int32)
    return np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits)


def maximum(a: ArrayLike, b: ArrayLike) -> Floats:
    """The greater of two, elementwise: NaN if either is NaN, +0 above -0. No order matters."""
    x, y = np.broadcast_arrays(np.asarray(a, np.float32), np.asarray(b, np.float32))
    top = np.asarray(np.maximum(_keys(x), _keys(y)))
    return np.where(
        np.isnan(x) | np.isnan(y), np.float32(np.nan), _keys(top.view(np.float32)).view(np.float32)
    )


def minimum(a: ArrayLike, b: ArrayLike) -> Floats:
    """The lesser of two, elementwise: NaN if either is NaN, -0 below +0."""
    x, y = np.broadcast_arrays(np.asarray(a, np.float32), np.asarray(b, np.float32))
    low = np.asarray(np.minimum(_keys(x), _keys(y)))
    return np.where(
        np.isnan(x) | np.isnan(y), np.float32(np.nan), _keys(low.view(np.float32)).view(np.float32)
    )


def row_max(values: ArrayLike) -> Floats:
    """The greatest over the last axis, f32[..., n] -> f32[...], as `maximum`; n is at least 1."""
    x = np.asarray(values, np.float32)
    top = np.asarray(_keys(x).max(axis=-1))
    nan = np.isnan(x).any(axis=-1)
    return np.where(nan, np.float32(np.nan), _keys(top.view(np.float32)).view(np.float32))
