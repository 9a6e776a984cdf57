"""Chains of fma over whole arrays, fast and exact.

A chain starts at -0.0, to which the first product is added without any rounding but its own, so
`p = fl(a0 * b0)`, then `p = fma(a, b, p)`, is one loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from compiler.exact.fma import BELOW, LOWEST, SMALL, Doubles, Floats, round_to_odd

Step = tuple[int, Doubles, Doubles]  # live entries of the leading axis, two factors that broadcast

# Sums that a chain works on at once, 36 bytes each, so that they stay in a core's cache: 2.3 ns an
# fma on one core of a Xeon. Threads win nothing at this size: they wait for the interpreter's lock.
TILE = 1 << 15


@np.errstate(all="ignore")
def chain(shape: Sequence[int], steps: Iterable[Step], normal: bool = False) -> Floats:
    """p = -0.0, then p = fma(left, right, p) for each step, in order: f32[shape].

    A step touches the first `live` entries of the leading axis; the first one touches them all.
    `normal` promises that a sum below the normal floats is exact, which saves a check.
    """
    product, total, carried = np.empty(shape), np.empty(shape), np.empty(shape)
    shifted = np.empty(shape, np.int64)
    rounded = np.full(shape, -0.0, np.float32)
    started = False
    for live, left, right in steps:
        p, t, c = product[:live], total[:live], carried[:live]
        s, r = shifted[:live], rounded[:live]
        np.multiply(left, right, out=p if started else t)
        if started:  # a product alone is exact: there is nothing to add, and nothing to repair
            np.add(p, c, out=t)
            np.left_shift(t.view(np.int64), BELOW, out=s)
            if s.size and (s.min() == LOWEST or not normal):
                _repair(p, c, t, s == LOWEST, normal)
        started = True
        np.copyto(r, t, casting="same_kind")
        np.copyto(c, r)
    return rounded


def _repair(
    product: Doubles, carried: Doubles, total: Doubles, doubt: NDArray[np.bool_], normal: bool
) -> None:
    """Rounds to odd, in place, the sums that float32 might round wrongly. All begin whole arrays,
    so that they are flat without a copy."""
    if not normal:
        doubt |= (np.abs(total) < SMALL) & (total != 0)
    at = doubt.reshape(-1).nonzero()[0]
    if at.size:
        p, c, t = (a.reshape(-1) for a in (product, carried, total))
        t[at] = round_to_odd(p[at], c[at], t[at])


@np.errstate(all="ignore")
def fold(segments: Floats) -> Floats:
    """t = p[0], then t = fl(t + p[s]) in order, over the leading axis."""
    total = segments[0].copy()
    for part in segments[1:]:
        total += part
    return total


def least(values: Floats | Doubles, axis: int | None = None) -> Floats | Doubles:
    """The least magnitude that is not 0, inf where all are 0, NaN where one is NaN."""
    magnitude = np.abs(values)
    return np.asarray(np.min(magnitude, axis=axis, where=magnitude != 0, initial=np.inf))


def tiles(rows: int, columns: int, depth: int, least: int) -> list[tuple[slice, slice]]:
    """Parts of a [rows, columns] result, each element of which is `depth` chains.

    About TILE chains a part, and at least `least` columns: NumPy's inner loop runs along them.
    """
    wide = min(columns, max(TILE // (depth * rows), least))
    high = max(TILE // (depth * wide), 1)
    return [
        (slice(m, min(m + high, rows)), slice(n, min(n + wide, columns)))
        for n in range(0, columns, wide)
        for m in range(0, rows, high)
    ]
