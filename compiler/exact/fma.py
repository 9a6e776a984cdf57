"""The fused multiply-add of float32, one rounding, in NumPy; and what every exact function shares.

The product of two float32 is exact in float64. Its sum with the addend is rounded to 53 bits and
then to 24. The second rounding goes wrong only where the first one left a tie of float32 that the
exact sum was not, or where float32 is subnormal: only there the sum is first rounded to odd.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

LOWEST = np.iinfo(np.int64).min
BELOW = np.int64(
    64 - 29
)  # float64 has 29 bits below a float32: shifted up by this, a tie is LOWEST
SMALL = 2.0**-125  # sums below it may be subnormal in float32
TILE = 1 << 14  # elements of a pass over an array: its few temporaries stay in the level 2 cache


def round_to_odd(product: Doubles, addend: Doubles, total: Doubles) -> Doubles:
    """total = fl(product + addend), moved to its odd neighbour on the side of what was rounded off.

    Knuth's two-sum gives the error exactly. The result rounds to float32 as the exact sum does.
    """
    back = total - product
    error = (product - (total - back)) + (addend - back)
    if not error.any():
        return total  # most ties are ones: short weights give short sums
    bits = total.view(np.int64)
    move = (error != 0) & np.isfinite(total) & ((bits & 1) == 0)
    away = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(move, bits + away, bits).view(np.float64)


@np.errstate(all="ignore")
def fma(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> Floats:
    """round(a * b + c), float32, one rounding; operands broadcast."""
    a, b, c = (np.asarray(v, np.float32) for v in (a, b, c))
    product: Doubles = np.asarray(a.astype(np.float64) * b)
    total: Doubles = np.asarray(product + c)
    result = np.asarray(total.astype(np.float32))
    doubt = (total.view(np.int64) << BELOW) == LOWEST
    doubt |= np.abs(total) < SMALL
    if doubt.any():
        doubt &= total != 0  # a sum of 0 is exact
        parts = (np.broadcast_to(v, total.shape)[doubt] for v in (product, c))
        first, addend = (v.astype(np.float64) for v in parts)
        result[doubt] = round_to_odd(first, addend, total[doubt]).astype(np.float32)
    return result


@np.errstate(all="ignore")
def fma_full(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> Floats:
    """`fma` with every sum taken the careful way; what `fma` is tested against."""
    parts = np.broadcast_arrays(*(np.asarray(v, np.float32).astype(np.float64) for v in (a, b, c)))
    product = np.asarray(parts[0] * parts[1])
    total = np.asarray(product + parts[2])
    return np.asarray(round_to_odd(product, parts[2], total).astype(np.float32))


def elementwise(function: Callable[[Floats], Floats]) -> Callable[[ArrayLike], Floats]:
    """A function of a flat float32 array as one of any shape, run over tiles that stay in cache."""

    def over_tiles(x: ArrayLike) -> Floats:
        values = np.asarray(x, np.float32)
        flat = values.reshape(-1)
        out = np.empty_like(flat)
        with np.errstate(all="ignore"):
            for start in range(0, flat.size, TILE):
                out[start : start + TILE] = function(flat[start : start + TILE])
        return out.reshape(values.shape)

    over_tiles.__name__ = function.__name__
    over_tiles.__doc__ = function.__doc__
    return over_tiles
