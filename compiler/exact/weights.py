"""Projections: activations, float or quantized, with a checkpoint's weights in any format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compiler.exact.chain import Step, chain, fold, least, on_all_cores, tiles
from compiler.exact.fma import Doubles, Floats
from compiler.exact.frame import Arranged, arrange, frame
from compiler.formats import decode
from compiler.types import GROUP
from compiler.values import Quantized, Weight

BLOCKS = 4  # blocks of 32 a segment
PRODUCTS = 1 << 24  # integer sums held at once


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
    offsets: Floats | None  # f32[B, N]
    least_scale: float
    least_offset: float


def _blocks(w: Weight) -> Blocks:
    levels, scales, offsets = decode(w.format, w.rows)
    grouped = levels.reshape(*scales.shape, GROUP).transpose(1, 0, 2).astype(np.float32, order="C")
    low = np.inf if offsets is None else float(least(offsets))
    turned = None if offsets is None else np.ascontiguousarray(offsets.T)
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
    step = max(PRODUCTS // (count * width), 1)
    for start in range(0, rows, step):
        some = slice(start, min(start + step, rows))
        _some_rows(_inputs(x, count, some), blocks, out[some])
    return out.reshape(*x.shape[:-1], width)


def _inputs(x: Quantized, count: int, rows: slice) -> _Inputs:
    def turned(values: NDArray[np.int8] | Floats, *each: int) -> Floats:
        grouped = values.reshape(-1, count, *each)[rows]
        return np.ascontiguousarray(grouped.swapaxes(0, 1).astype(np.float32))

    low = None if x.low is None else turned(x.low, GROUP)
    return _Inputs(turned(x.words, GROUP), low, turned(x.scales), turned(x.sums))


def _some_rows(x: _Inputs, w: Blocks, out: Floats) -> None:
    """Fills out f32[M, N]."""
    turned = w.levels.transpose(0, 2, 1)
    dots = np.matmul(x.words, turned)  # f32[B, M, N], exact
    low = None if x.low is None else np.matmul(x.low, turned)
    normal = _stays_normal(x, w)
    segments = -(-len(dots) // BLOCKS)

    def one(tile: tuple[slice, slice]) -> None:
        m, n = tile
        shape = (segments, m.stop - m.start, n.stop - n.start)
        out[m, n] = fold(chain(shape, _steps(x, w, dots, low, m, n), normal))

    on_all_cores(one, tiles(out.shape[0], out.shape[1], segments))


@np.errstate(all="ignore")
def _stays_normal(x: _Inputs, w: Blocks) -> bool:
    """Whether every sum that is below the normal floats is exact.

    a_b is normal and D_b whole, so their product is a multiple of 2^-149; so is an m_b * y_b from
    2^-100 up.
    """
    scale = float(least(x.scales)) * w.least_scale
    offset = np.inf if w.offsets is None else float(least(x.sums)) * w.least_offset
    return scale >= 2.0**-119 and offset >= 2.0**-100


def _steps(
    x: _Inputs, w: Blocks, dots: Floats, low: Floats | None, m: slice, n: slice
) -> Iterator[Step]:
    for b in range(min(BLOCKS, len(dots))):
        a = w.scales[b::BLOCKS, None, n] * x.scales[b::BLOCKS, m, None]
        d = dots[b::BLOCKS, m, n].astype(np.float64)
        if low is not None:
            a *= np.float32(2.0**-7)
            d = _once_rounded(np.float64(128) * d + low[b::BLOCKS, m, n])
        yield len(a), a.astype(np.float64), d
    if w.offsets is not None:
        for b in range(min(BLOCKS, len(dots))):
            offset = w.offsets[b::BLOCKS, None, n].astype(np.float64)
            yield len(offset), offset, x.sums[b::BLOCKS, m, None].astype(np.float64)


def _once_rounded(whole: Doubles) -> Doubles:
    """float64 whole numbers as float32 would hold them."""
    return whole.astype(np.float32).astype(np.float64)
