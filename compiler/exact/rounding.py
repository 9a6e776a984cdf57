"""Rounding: to integers, to f16, to bf16; always to the nearest, ties to even; NaN stays NaN."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compiler.exact.fma import Floats


@np.errstate(all="ignore")
def rint(x: ArrayLike) -> Floats:
    """The nearest integer, ties to even, as float32; the sign of a zero is kept."""
    return np.rint(np.asarray(x, np.float32))


@np.errstate(all="ignore")
def to_f16(x: ArrayLike) -> NDArray[np.float16]:
    """float32 -> float16; what is too great becomes inf."""
    return np.asarray(x, np.float32).astype(np.float16)


@np.errstate(all="ignore")
def round_f16(x: ArrayLike) -> Floats:
    """The nearest f16 as float32."""
    return to_f16(x).astype(np.float32)


def bf16_bits(x: ArrayLike) -> NDArray[np.uint16]:
    """The nearest bf16's 16 bits; what is too great becomes inf; every NaN becomes 0x7fc0."""
    values = np.asarray(x, np.float32)
    bits = np.asarray(values.view(np.uint32))
    rounded = (bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))) >> np.uint32(
        16
    )
    return np.where(np.isnan(values), np.uint32(0x7FC0), rounded).astype(np.uint16)


def round_bf16(x: ArrayLike) -> Floats:
    """The nearest bf16 as float32."""
    return np.asarray((bf16_bits(x).astype(np.uint32) << np.uint32(16)).view(np.float32))
