"""Projections: activations, float or quantized, with a checkpoint's weights in any format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compiler.exact.chain import Step, chain, fold, least, tiles
from compiler.exact.fma import Doubles, Floats
from compiler.exact.frame import Arranged, arrange, frame
from compiler.formats import decode
from compiler.types import GROUP
from compiler.values import Quantized, Weight

BLOCKS = 4  # blocks of 32 a segment
NARROW = 256  # columns of a tile at least; more of them in one product of one row wake threads


def weight_dot(x: NDArray[np.float32] | Quantized, w: Weight) -> Floats:
    """x [..., K] with w [N, K] -> f32[..., N].

    f32 x: the frame of `compiler.exact.frame` over w's values as f32. Quantized x, for a quantized
    format: the order of `quantized_dot`.
    """
    if len(w.shape) != 2 or x.shape[-1] != w.shape[1]:
        raise ValueError(f"x {list(x.shape)} does not fit a weight {list(w.shape)}")
    if isinstance(x, Quantized):
        return quantized_dot(x, w)
    rows = np.asarray(x, np.float32).reshape(-1, w.shape[1])
    arranged = w.prepared("frame", lambda: _arranged(w))
    return frame(rows, arranged).reshape(*x.shape[:-1], w.shape[0])


def _arranged(w: Weight) -> Arranged:
    return arrange(w.values())


@dataclass(frozen=True)
class Blocks:
    """A quantized weight [N, K], block by block. B = K / 32."""

    levels: Floats  # f32[B, N, 32]: whole numbers; BLAS sums 32 products of them exactly
    scales: Floats  # f32[B, N]
    offsets: Doubles | None  # the f32 offsets, [B, N]
    least_scale: float
    least_offset: float


def _blocks(w: Weight) -> Blocks:
    levels, scales, offsets = decode(w.format, w.rows)
    grouped = levels.reshape(*scales.shape, GROUP).transpose(1, 0, 2).astype(np.float32, order="C")
    low = np.inf if offsets is None else float(least(offsets))
    turned = None if offsets is None else offsets.T.astype(np.float64, order="C")
    return Blocks(grouped, np.ascontiguousarray(scales.T), turned, float(least(scales)), low)


@dataclass(frozen=True)
class _Inputs:
    """Quantized rows, block by block."""

    words: Floats  # f32[B, M, 32]
    low: Floats | None  # f32[B, M, 32]
    scales: Floats  # f32[B, M]
    sums: Floats  # f32[B, M]


def quantized_dot(x: Quantized, w: Weight) -> Floats:
    """x q8 or q8x2 [..., K] with w [N, K] of a quantized format -> f32[..., N].

    D_b: the integer dot of block b, and in q8x2 128 * D(words) + D(low words), rounded once to f32.
    a_b = fl(ws_b * xs_b), in q8x2 fl(that * 2^-7). In a segment of four blocks p = fl(a_0 * D_0),
    p = fma(a_b, D_b, p) in order; then, in formats with an offset, p = fma(m_b, y_b, p) in order,
    y_b being x's block sum. Over segments t = p_0, then t = fl(t + p_s) in order.
    """
    if not w.format.quantized:
        raise ValueError(f"quantized activations need quantized weights, not {w.format.name}")
    blocks = w.prepared("blocks", lambda: _blocks(w))
    count, width, _ = blocks.levels.shape
    rows = x.scales.size // count
    out = np.empty((rows, width), np.float32)
    if out.size:
        _fill(out, _inputs(x, count), blocks)
    return out.reshape(*x.shape[:-1], width)


def _inputs(x: Quantized, count: int) -> _Inputs:
    def turned(values: NDArray[np.int8] | Floats, *each: int) -> Floats:
        grouped = values.reshape(-1, count, *each)
        return np.ascontiguousarray(grouped.swapaxes(0, 1).astype(np.float32))

    low = None if x.low is None else turned(x.low, GROUP)
    return _Inputs(turned(x.words, GROUP), low, turned(x.scales), turned(x.sums))


@np.errstate(all="ignore")
def _fill(out: Floats, x: _Inputs, w: Blocks) -> None:
    """out f32[M, N], tile by tile."""
    normal = _stays_normal(x, w)
    segments = -(-len(w.scales) // BLOCKS)
    for m, n in tiles(out.shape[0], out.shape[1], max(segments, BLOCKS), NARROW):
        shape = (segments, m.stop - m.start, n.stop - n.start)
        out[m, n] = fold(chain(shape, _steps(x, w, m, n), normal))


def _dots(words: Floats, levels: Floats) -> Floats:
    """words f32[B, M, 32], levels f32[B, N, 32] -> f32[B, M, N]: whole numbers below 2^24.

    Any order of sums is exact, so BLAS may choose. A tile's products are small enough for OpenBLAS
    to stay in this thread; its threads wait spinning for each other where cores are busy.
    """
    count, rows, _ = words.shape
    columns = levels.shape[1]
    out = np.empty((count, rows, columns), np.float32)
    step = NARROW if rows == 1 else columns
    for n in range(0, columns, step):
        some = levels[:, n : n + step].swapaxes(1, 2)
        np.matmul(words, some, out=out[..., n : n + step])
    return out


@np.errstate(all="ignore")
def _stays_normal(x: _Inputs, w: Blocks) -> bool:
    """Whether every sum that is below the normal floats is exact.

    a_b is normal and D_b whole, so their product is a multiple of 2^-149; so is an m_b * y_b from
    2^-100 up.
    """
    scale = float(least(x.scales)) * w.least_scale
    offset = np.inf if w.offsets is None else float(least(x.sums)) * w.least_offset
    return scale >= 2.0**-119 and offset >= 2.0**-100


def _steps(x: _Inputs, w: Blocks, m: slice, n: slice) -> Iterator[Step]:
    dots = _dots(x.words[:, m], w.levels[:, n])
    low = None if x.low is None else _dots(x.low[:, m], w.levels[:, n])
    for b in range(min(BLOCKS, len(dots))):
        a = w.scales[b::BLOCKS, None, n] * x.scales[b::BLOCKS, m, None]
        d = dots[b::BLOCKS].astype(np.float64)
        if low is not None:
            a *= np.float32(2.0**-7)
            d = _once_rounded(np.float64(128) * d + low[b::BLOCKS])
        yield len(a), a.astype(np.float64), d
    if w.offsets is not None:
        for b in range(min(BLOCKS, len(dots))):
            offset = w.offsets[b::BLOCKS, None, n]
            yield len(offset), offset, x.sums[b::BLOCKS, m, None].astype(np.float64)


def _once_rounded(whole: Doubles) -> Doubles:
    """float64 whole numbers as float32 would hold them."""
    return whole.astype(np.float32).astype(np.float64)
