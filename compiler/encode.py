"""f32 values as bytes of a tensor format: what an input of a block format is filled with.

Plain rounding to the nearest level; a quantizer that searches for better scales is not meant here.
"""

from __future__ import annotations

import numpy as np

from compiler.exact.rounding import bf16_bits, to_f16
from compiler.formats import BF16, F16, Bytes, Floats, Format
from compiler.types import GROUP
from compiler.values import Weight


def encode(fmt: Format, values: Floats) -> Weight:
    """values f32[..., K] as a weight of the same shape; ValueError where blocks do not divide K."""
    fmt.row_bytes(values.shape[-1])
    data = np.ascontiguousarray(_blocks(fmt, values) if fmt.quantized else _elements(fmt, values))
    return Weight(fmt, values.shape, data.view(np.uint8).reshape(-1))


def _elements(fmt: Format, values: Floats) -> Floats | Bytes:
    if fmt is F16:
        return to_f16(values).reshape(-1).view(np.uint8)
    if fmt is BF16:
        return bf16_bits(values).reshape(-1).view(np.uint8)
    return np.ascontiguousarray(values, np.float32)


def _blocks(fmt: Format, values: Floats) -> Bytes:
    """uint8[blocks, size] of values f32[..., K]."""
    grouped = np.asarray(values, np.float32).reshape(-1, GROUP)
    scale, offset = _scales(fmt, grouped)
    with np.errstate(all="ignore"):
        level = np.rint((grouped - offset) / scale.astype(np.float32))
    level = np.where(scale != 0, level, np.float32(0)) + np.float32(fmt.zero)
    low, high = (-127, 127) if fmt.bits == 8 else (0, 15)
    words = np.clip(level, low, high).astype(np.int8).view(np.uint8)
    out = np.empty((len(grouped), fmt.size), np.uint8)
    if fmt.bits == 4:
        words = words[:, : GROUP // 2] | words[:, GROUP // 2 :] << np.uint8(4)
    out[:, fmt.levels : fmt.levels + words.shape[1]] = words
    for at, part in ((fmt.scale, scale), (fmt.offset, offset)):
        if at is not None:
            out[:, at : at + 2] = part.astype(np.float16).view(np.uint8)
    return out


def _scales(fmt: Format, grouped: Floats) -> tuple[Floats, Floats]:
    """d and m [blocks, 1], as f16 holds them: the levels span the block's values."""
    if fmt.offset is not None:
        low, high = grouped.min(axis=1, keepdims=True), grouped.max(axis=1, keepdims=True)
        return _half((high - low) / np.float32(15)), _half(low)
    most = np.take_along_axis(grouped, np.abs(grouped).argmax(axis=1)[:, None], axis=1)
    scale = np.abs(most) / np.float32(127) if fmt.bits == 8 else most / np.float32(-fmt.zero)
    return _half(scale), np.zeros_like(scale)


def _half(x: Floats) -> Floats:
    return to_f16(x).astype(np.float32)
