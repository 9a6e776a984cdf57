"""A matrix in the device's tiles, by NumPy: what the emitted repack kernels make (lib/repack.cuh).

A tile is 8 rows x 4 segments of 128 inputs: [piece][segment][row][16 bytes], then, of quantized
formats, [segment][row][4 scales (and 4 offsets)], or what a K-quant has in their place. Padding
adds nothing: level 0, scale -0.0; nothing reads that of K-quants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.formats import Format, unsigned_levels
from compiler.values import Weight

Bytes = NDArray[np.uint8]
ROWS, SEGMENTS, SEGMENT = 8, 4, 128
MINUS_ZERO = 0x8000  # a half


def tiled(weight: Weight) -> bytes:
    """The bytes of a weight [.., N, K] in tiles, experts one after another."""
    *outer, n, k = weight.shape
    groups = -(-k // (SEGMENT * SEGMENTS))
    rows = weight.rows.reshape(-1, n, weight.rows.shape[1])
    tiles = [_pieces(weight.format, rows, groups)]
    if weight.format.quantized:
        tiles.append(_scales(weight.format, rows, groups))
    del outer
    return np.concatenate(tiles, axis=-1).tobytes()


def _pieces(f: Format, rows: Bytes, groups: int) -> Bytes:
    """uint8[E, tiles, groups, bytes of pieces]."""
    if f.scales is not None:
        return _level_pieces(f, rows, groups)
    if f.quantized:
        blocks = rows.reshape(*rows.shape[:2], -1, f.size)
        width = f.block * f.bits // 8
        levels = blocks[..., f.levels : f.levels + width].reshape(*rows.shape[:2], -1)
        fill = f.zero * 17 if f.bits == 4 else 0
    else:
        levels, fill = rows, 0
    pieces = SEGMENT * f.bits // 8 // 16
    whole = _padded(levels, groups * SEGMENTS * pieces * 16, fill)
    cut = whole.reshape(len(rows), -1, ROWS, groups, SEGMENTS, pieces, 16)
    return cut.transpose(0, 1, 3, 5, 4, 2, 6).reshape(*cut.shape[:2], groups, -1)


def _level_pieces(f: Format, rows: Bytes, groups: int) -> Bytes:
    """The same of a K-quant: four pieces of nibbles, of levels i and i + 16 of each 32; then the
    bits above those of each 16 levels, from the lowest bits up."""
    levels = (unsigned_levels(f, rows.reshape(-1, rows.shape[2]))).reshape(*rows.shape[:2], -1)
    whole = _padded(levels, groups * SEGMENTS * SEGMENT, 0)
    cut = whole.reshape(len(rows), -1, ROWS, groups, SEGMENTS, SEGMENT // 16, 16)
    low, high = cut & np.uint8(15), cut >> np.uint8(4)
    pieces = [low[..., 0::2, :] | low[..., 1::2, :] << np.uint8(4)]
    if bits := f.bits - 4:
        spread = high.reshape(*high.shape[:5], -1, 8 // bits, 16)
        shifted = spread << np.arange(0, 8, bits, dtype=np.uint8)[:, None]
        pieces.append(np.bitwise_or.reduce(shifted, axis=6))
    joined = np.concatenate(pieces, axis=5)  # [E, tiles, row, group, segment, piece, 16]
    return joined.transpose(0, 1, 3, 5, 4, 2, 6).reshape(*cut.shape[:2], groups, -1)


def _scales(f: Format, rows: Bytes, groups: int) -> Bytes:
    """uint8[E, tiles, groups, bytes of scales]."""
    blocks = rows.reshape(*rows.shape[:2], -1, f.size)
    if f.scales is not None:
        return _group_scales(f, blocks, groups)
    found = [_halves(blocks, f.scale, groups)]
    if f.offset is not None:
        found.append(_halves(blocks, f.offset, groups))
    both = np.concatenate(found, axis=-1)  # [E, tiles, row, group, segment, halves]
    moved = both.transpose(0, 1, 3, 4, 2, 5)
    return np.ascontiguousarray(moved).view(np.uint8).reshape(*both.shape[:2], groups, -1)


def _group_scales(f: Format, blocks: Bytes, groups: int) -> Bytes:
    """Of a K-quant: the bytes as they are, [256 inputs][row], or [segment][row] where 16 weights
    share a scale, and then the halves."""
    assert f.scales is not None and f.scale is not None

    def turned(part: Bytes, parts: int) -> Bytes:
        """A tile's bytes of a row in `parts` parts, rows side by side in each."""
        each = part.shape[-1] * 2 // parts
        whole = _padded(part.reshape(*part.shape[:2], -1), groups * parts * each, 0)
        cut = whole.reshape(len(part), -1, ROWS, groups, parts, each)
        return cut.transpose(0, 1, 3, 4, 2, 5).reshape(*cut.shape[:2], groups, -1)

    if f.group == 32:
        return turned(blocks[..., f.scale : f.scale + 16], 2)
    numbers = turned(blocks[..., f.scales : f.scales + 16], SEGMENTS)
    return np.concatenate([numbers, turned(blocks[..., f.scale : f.scale + 2], 2)], axis=-1)


def _halves(blocks: Bytes, part: int | None, groups: int) -> NDArray[np.uint16]:
    assert part is not None
    halves = np.ascontiguousarray(blocks[..., part : part + 2]).view(np.uint16)[..., 0]
    whole = _padded(halves, groups * SEGMENTS * 4, MINUS_ZERO)
    return whole.reshape(len(blocks), -1, ROWS, groups, SEGMENTS, 4)


def _padded(rows: Any, width: int, fill: int) -> Any:
    """Rows [E, N, ..] with N a multiple of 8 and the last axis `width` long."""
    sizes: Sequence[tuple[int, int]] = (
        (0, 0), (0, -rows.shape[1] % ROWS), (0, width - rows.shape[2]),
    )  # fmt: skip
    return np.pad(rows, sizes, constant_values=fill)
