"""Dot products of float32 in the frame "segments of 128": plain weights, q.k, matmul.

In a segment p = fl(w[0] * x[0]), then p = fma(w[k], x[k], p) in order; over a row's segments
t = p_0, then t = fl(t + p_s) in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compiler.exact.chain import Step, chain, fold, least, tiles
from compiler.exact.fma import Floats

SEGMENT = 128


@dataclass(frozen=True)
class Arranged:
    """Weights w[N, K] in the order in which the frame reads them: parts[k, s, n] = w[n, 128 s + k].

    What lies beyond K is never read.
    """

    parts: Floats  # f32[min(K, 128), S, N]
    length: int  # K
    least: float  # the least magnitude that is not 0

    @property
    def width(self) -> int:
        return self.parts.shape[2]

    def live(self, k: int) -> int:
        """The number of segments that have a k-th element."""
        return (self.length - k + SEGMENT - 1) // SEGMENT


def _segments(values: Floats) -> Floats:
    """f32[n, K] -> f32[min(K, 128), S, n]"""
    n, length = values.shape
    depth, count = min(length, SEGMENT), -(-length // SEGMENT)
    padded = np.zeros((n, count * depth), np.float32)
    padded[:, :length] = values
    return np.ascontiguousarray(padded.reshape(n, count, depth).transpose(2, 1, 0))


def arrange(w: Floats) -> Arranged:
    """w f32[N, K] arranged for `frame`."""
    return Arranged(_segments(w), w.shape[1], float(least(w)))


@np.errstate(all="ignore")
def frame(x: Floats, w: Arranged) -> Floats:
    """x f32[M, K], w [N, K] -> f32[M, N], in the order that the module states."""
    rows = x.shape[0]
    out = np.empty((rows, w.width), np.float32)
    if not out.size or not w.length:
        out.fill(-0.0)
        return out
    inputs = _segments(x).astype(np.float64)
    lowest = least(x, axis=1) * w.least
    for m, n in tiles(rows, w.width, w.parts.shape[1], 1024):
        shape = (w.parts.shape[1], m.stop - m.start, n.stop - n.start)
        steps = _steps(inputs[:, :, m, None], w, n)
        out[m, n] = fold(chain(shape, steps, bool(lowest[m].min() >= 2.0**-100)))
    return out


def _steps(inputs: NDArray[np.float64], w: Arranged, n: slice) -> Iterator[Step]:
    """The factors of each k for the columns n of w."""
    depth, count, _ = w.parts.shape
    buffer = np.empty((count, 1, n.stop - n.start))
    for k in range(depth):
        live = w.live(k)
        np.copyto(buffer[:live, 0], w.parts[k, :live, n])
        yield live, inputs[k, :live], buffer[:live]


def frame_dot(x: ArrayLike, w: ArrayLike) -> Floats:
    """x [..., M, K] with w [..., N, K] -> f32[..., M, N], as f32; leading axes broadcast.

    Where w has no leading axes all of x's rows are rows of one product.
    """
    left, right = _floats(x), _floats(w)
    if right.ndim == 2:
        out = frame(left.reshape(-1, left.shape[-1]), arrange(right))
        return out.reshape(*left.shape[:-1], right.shape[0])
    lead = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    out = np.empty((*lead, left.shape[-2], right.shape[-2]), np.float32)
    left = np.broadcast_to(left, (*lead, *left.shape[-2:]))
    right = np.broadcast_to(right, (*lead, *right.shape[-2:]))
    for i in np.ndindex(lead):
        out[i] = frame(left[i], arrange(right[i]))
    return out


def matmul(a: ArrayLike, b: ArrayLike) -> NDArray[np.float32] | NDArray[np.integer]:
    """a[..., m, k] times b[..., k, n] -> [..., m, n]; leading axes broadcast.

    Integers: exact, wrapping. Floats: as f32, the frame over k.
    """
    left, right = np.asarray(a), np.asarray(b)
    if left.dtype.kind == "i":
        return np.matmul(left, right)
    return frame_dot(left, np.swapaxes(right, -1, -2))


@np.errstate(all="ignore")
def _floats(values: ArrayLike) -> Floats:
    return np.asarray(values).astype(np.float32, copy=False)
