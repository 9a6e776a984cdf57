"""Quantized activations: 32 values share one scale; one signed byte a value (q8) or two (q8x2).

The same operations as codegen/lib/quantize.cuh.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compiler.exact.fma import Floats, fma
from compiler.exact.sums import row_max
from compiler.types import GROUP
from compiler.values import Quantized

SMALLEST_NORMAL = np.float32(2.0**-126)


def _groups(x: ArrayLike) -> Floats:
    values = np.asarray(x, np.float32)
    if values.shape[-1] % GROUP:
        raise ValueError(f"the last axis is a multiple of {GROUP} to quantize, not {values.shape}")
    return values.reshape(*values.shape[:-1], values.shape[-1] // GROUP, GROUP)


def _words(ratio: NDArray[np.floating], usable: NDArray[np.bool_]) -> Floats:
    """clamp(rint(ratio), -127, 127) as floats; 0 where not usable."""
    return np.where(usable, np.clip(np.rint(ratio), -127, 127), np.float32(0))


def _high(grouped: Floats) -> tuple[Floats, Floats]:
    """scale f32[..., 1] and word f32[..., 32] of each group."""
    scale = row_max(np.abs(grouped))[..., None] / np.float32(127)
    return scale, _words(grouped / scale, (scale > 0) & np.isfinite(scale))


def _bytes(words: Floats, shape: tuple[int, ...]) -> NDArray[np.int8]:
    return words.astype(np.int8).reshape(shape)


def quantize(x: ArrayLike) -> Quantized:
    """x f32[..., K], K a multiple of 32 -> q8.

    A group of 32: amax = max |v| (NaN wins); s = fl(amax / 127);
    word = clamp(rint(fl(v / s)), -127, 127) if 0 < s < inf, else 0;
    sum = fl(s * f32(sum of words)).
    """
    grouped = _groups(x)
    with np.errstate(all="ignore"):
        scale, words = _high(grouped)
        sums = scale[..., 0] * words.sum(axis=-1, dtype=np.float32)  # whole numbers: exact
    return Quantized(_bytes(words, np.shape(x)), None, scale[..., 0], sums)


def quantize2(x: ArrayLike) -> Quantized:
    """x f32[..., K], K a multiple of 32 -> q8x2: the words h of `quantize`, and low words.

    low = clamp(rint(fl(fma(-h, s, v) / fl(s / 128))), -127, 127), or 0 where s is not usable or
    fl(s / 128) is below the normal floats; sum = fl(fl(s * 2^-7) * f32(128 * sum(h) + sum(low))).
    """
    grouped = _groups(x)
    with np.errstate(all="ignore"):
        scale, words = _high(grouped)
        fine = scale * np.float32(2.0**-7)
        usable = (fine >= SMALLEST_NORMAL) & np.isfinite(scale)
        low = _words(fma(-words, scale, grouped) / fine, usable)
        whole = (np.float32(128) * words + low).sum(axis=-1, dtype=np.float32)  # below 2^24: exact
        sums = fine[..., 0] * whole
    shape = np.shape(x)
    return Quantized(_bytes(words, shape), _bytes(low, shape), scale[..., 0], sums)
