"""f32 values as bytes of a tensor format: what an input of a block format is filled with.

Plain rounding to the nearest level; a quantizer that searches for better scales is not meant here.
"""

from __future__ import annotations

import numpy as np

from compiler.exact.rounding import bf16_bits, to_f16
from compiler.formats import BF16, F16, Bytes, Floats, Format
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
    grouped = np.asarray(values, np.float32).reshape(-1, fmt.block // fmt.group, fmt.group)
    out = np.zeros((len(grouped), fmt.size), np.uint8)
    scale, offset = _scales(fmt, grouped)
    if fmt.scales is not None:
        scale, offset = _store_groups(fmt, out, scale, offset)
    else:
        _store_half(out, fmt.scale, scale[:, 0])
        if fmt.offset is not None:
            _store_half(out, fmt.offset, offset[:, 0])
    _store_levels(fmt, out, _levels(fmt, grouped, scale, offset).reshape(len(out), fmt.block))
    return out


def _levels(fmt: Format, grouped: Floats, scale: Floats, offset: Floats) -> Bytes:
    with np.errstate(all="ignore"):
        level = np.rint((grouped - offset) / scale)
    level = np.where(scale != 0, level, np.float32(0)) + np.float32(fmt.zero)
    low, high = (-127, 127) if fmt.bits == 8 else (0, (1 << fmt.bits) - 1)
    return _clipped(level, low, high).astype(np.int8).view(np.uint8)


def _clipped(number: Floats, low: int, high: int) -> Floats:
    """NaN is 0."""
    return np.where(np.isnan(number), np.float32(0), np.clip(number, low, high))


def _store_levels(fmt: Format, out: Bytes, words: Bytes) -> None:
    if fmt.bits == 8:
        out[:, fmt.levels : fmt.levels + fmt.block] = words
        return
    runs = words.reshape(len(out), -1, 2, fmt.run) & np.uint8(15)
    low = runs[:, :, 0] | runs[:, :, 1] << np.uint8(4)
    out[:, fmt.levels : fmt.levels + fmt.block // 2] = low.reshape(len(out), -1)
    if fmt.high is None:
        return
    bits = fmt.bits - 4
    rows = words.reshape(len(out), -1, 8 // bits, 32) >> np.uint8(4)
    shifted = rows << np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    high = np.bitwise_or.reduce(shifted, axis=2).reshape(len(out), -1)
    out[:, fmt.high : fmt.high + high.shape[1]] = high


def _store_groups(fmt: Format, out: Bytes, scale: Floats, offset: Floats) -> tuple[Floats, Floats]:
    """Stores d, m and each group's s and t; returns the scales and offsets that they make."""
    assert fmt.scales is not None
    most = 127 if fmt.offset is None else 63
    s, scale = _of_groups(out, fmt.scale, scale, most)
    if fmt.offset is None:
        out[:, fmt.scales : fmt.scales + s.shape[1]] = s
        return scale, offset
    t, offset = _of_groups(out, fmt.offset, -offset, most)
    out[:, fmt.scales : fmt.scales + 12] = six_bits(s, t)
    return scale, -offset


def six_bits(s: Bytes, t: Bytes) -> Bytes:
    """s and t uint8[n, 8], below 64, as uint8[n, 12]: the inverse of `formats._six_bits`."""
    first = s[:, :4] | s[:, 4:] >> np.uint8(4) << np.uint8(6)
    second = t[:, :4] | t[:, 4:] >> np.uint8(4) << np.uint8(6)
    third = s[:, 4:] & np.uint8(15) | t[:, 4:] << np.uint8(4)
    return np.concatenate([first, second, third], axis=1)


def _of_groups(out: Bytes, at: int | None, wanted: Floats, most: int) -> tuple[Bytes, Floats]:
    """Numbers f32[blocks, groups, 1] as a half of the block, stored at `at`, times whole numbers of
    at most `most`: those, and the products."""
    with np.errstate(all="ignore"):
        one = _half(np.abs(wanted).max(axis=1) / np.float32(most))
        steps = np.rint(wanted[..., 0] / one)
        whole = _clipped(np.where(one != 0, steps, np.float32(0)), -most, most)
        _store_half(out, at, one)
        return whole.astype(np.int8).view(np.uint8), (whole * one)[..., None]


def _store_half(out: Bytes, at: int | None, part: Floats) -> None:
    """part f32[blocks, 1]"""
    assert at is not None
    out[:, at : at + 2] = part.astype(np.float16).view(np.uint8)


def _scales(fmt: Format, grouped: Floats) -> tuple[Floats, Floats]:
    """The scale and the offset that each group [blocks, groups, 1] wants: its levels span its
    values. A half unless whole numbers make them; their offsets are at most 0."""
    if fmt.offset is not None:
        low, high = grouped.min(axis=-1, keepdims=True), grouped.max(axis=-1, keepdims=True)
        if fmt.scales is not None:
            low = np.minimum(low, np.float32(0))
            return (high - low) / np.float32((1 << fmt.bits) - 1), low
        return _half((high - low) / np.float32(15)), _half(low)
    most = np.take_along_axis(grouped, np.abs(grouped).argmax(axis=-1)[..., None], axis=-1)
    scale = np.abs(most) / np.float32(127) if fmt.bits == 8 else most / np.float32(-fmt.zero)
    return (_half(scale) if fmt.scales is None else scale), np.zeros_like(scale)


def _half(x: Floats) -> Floats:
    return to_f16(x).astype(np.float32)
