"""The tensor formats of a checkpoint: one record each, which decoders, kernels and tests all read.

A row of a quantized format is a run of blocks; a block holds `block` weights as integer levels, one
f16 scale d and, in formats with an offset, one f16 offset m, all little-endian. A weight's value is
fl(fl(d * level) + m), or fl(d * level) without an offset.

In K-quants d and m are of 256 weights, and each group of them has whole numbers s (and t) of its
own: 32 weights 6 bits of s and t, where there is an offset, else 16 weights a signed byte s. The
group's scale is d * s, its offset -(m * t); f32 holds both exactly, so that from there on such a
format is one of 32 weights a block. Where 16 weights share a scale a block of 32 has two; its dot
with quantized activations then takes s * level, exact as well, as the block's whole numbers, and d
as its one scale.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from compiler.types import GROUP

Bytes = NDArray[np.uint8]
Levels = NDArray[np.int8]
Whole = NDArray[np.int16]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Format:
    """A tensor format: where the parts of its block stand (byte offsets).

    An element format (`block` 1) has no scale; its one part, the element itself, is at `levels`.
    Levels of 8 bits are signed bytes. Shorter ones are unsigned, less `zero`; the 4 low bits of 2 *
    `run` levels are `run` bytes, those of level i in the low half of byte i, of level i + run in
    its high half. Bits above them are at `high`: byte i of 32 has those of levels i, i + 32, ...,
    from its lowest bits up.
    """

    name: str
    ggml: int  # the type's number in a GGUF file
    block: int  # weights a block
    size: int  # bytes a block
    bits: int  # a level's width; an element's width in element formats
    levels: int = 0
    scale: int | None = None
    offset: int | None = None
    zero: int = 0
    run: int = 16
    high: int | None = None
    scales: int | None = None  # of groups: 6 bits each as `_six_bits` has them, or signed bytes
    group: int = GROUP  # weights that share a scale

    @property
    def quantized(self) -> bool:
        return self.block > 1

    @property
    def scale_bytes(self) -> int:
        """Bytes of a block that are not its levels."""
        return self.size - self.block * self.bits // 8

    def row_bytes(self, k: int) -> int:
        """Bytes of a row of k weights; ValueError where blocks do not divide it."""
        if k % self.block:
            raise ValueError(f"a row of {self.name} is a multiple of {self.block} long, not {k}")
        return k // self.block * self.size

    def nbytes(self, shape: Iterable[int]) -> int:
        """Bytes of a tensor of `shape`, whose last axis is the one in blocks."""
        *outer, k = shape
        return prod(outer) * self.row_bytes(k)


F32 = Format("f32", ggml=0, block=1, size=4, bits=32)
F16 = Format("f16", ggml=1, block=1, size=2, bits=16)
BF16 = Format("bf16", ggml=30, block=1, size=2, bits=16)
Q4_0 = Format("q4_0", ggml=2, block=32, size=18, bits=4, scale=0, levels=2, zero=8)
Q4_1 = Format("q4_1", ggml=3, block=32, size=20, bits=4, scale=0, offset=2, levels=4)
Q8_0 = Format("q8_0", ggml=8, block=32, size=34, bits=8, scale=0, levels=2)
Q4_K = Format(
    "q4_k", ggml=12, block=256, size=144, bits=4, scale=0, offset=2, scales=4, levels=16, run=32
)
Q5_K = Format(
    "q5_k", ggml=13, block=256, size=176, bits=5, scale=0, offset=2, scales=4, high=16, levels=48,
    run=32,
)  # fmt: skip
Q6_K = Format(
    "q6_k", ggml=14, block=256, size=210, bits=6, levels=0, high=128, scales=192, scale=208,
    zero=32, run=64, group=16,
)  # fmt: skip

_ALL = (F32, F16, BF16, Q8_0, Q4_1, Q4_0, Q4_K, Q5_K, Q6_K)
FORMATS = MappingProxyType({f.name: f for f in _ALL})
BY_GGML = MappingProxyType({f.ggml: f for f in _ALL})


def _half(blocks: Bytes, at: int) -> Floats:
    """The f16 at byte `at` of each block, as f32[rows, blocks]."""
    parts = np.ascontiguousarray(blocks[..., at : at + 2]).view("<f2")
    with np.errstate(invalid="ignore"):
        return parts[..., 0].astype(np.float32)


def _levels(fmt: Format, blocks: Bytes) -> Levels:
    """int8[rows, blocks, block]"""
    if fmt.bits == 8:
        return np.ascontiguousarray(blocks[..., fmt.levels : fmt.levels + fmt.block]).view(np.int8)
    low = blocks[..., fmt.levels : fmt.levels + fmt.block // 2]
    runs = low.reshape(*low.shape[:-1], -1, 1, fmt.run)
    halves = np.concatenate([runs & np.uint8(15), runs >> np.uint8(4)], axis=-2)
    levels = halves.reshape(*low.shape[:-1], fmt.block)
    if fmt.high is not None:
        levels |= _high_bits(fmt, blocks) << np.uint8(4)
    return levels.view(np.int8) - np.int8(fmt.zero)


def unsigned_levels(fmt: Format, raw: Bytes) -> Bytes:
    """uint8[rows, K] of raw uint8[rows, row_bytes]: the levels of a format of fewer than 8 bits as
    they are stored, `zero` not taken off."""
    levels = _levels(fmt, raw.reshape(raw.shape[0], -1, fmt.size)) + np.int8(fmt.zero)
    return levels.view(np.uint8).reshape(raw.shape[0], -1)


def _high_bits(fmt: Format, blocks: Bytes) -> Bytes:
    """The levels' bits above the four low ones, uint8[rows, blocks, block]."""
    assert fmt.high is not None
    bits = fmt.bits - 4
    packed = blocks[..., fmt.high : fmt.high + fmt.block * bits // 8]
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    spread = packed.reshape(*packed.shape[:-1], -1, 1, 32) >> shifts & np.uint8((1 << bits) - 1)
    return spread.reshape(*packed.shape[:-1], fmt.block)


def _six_bits(packed: Bytes) -> tuple[Bytes, Bytes]:
    """uint8[..., 12] -> s and t, uint8[..., 8]: the first four of each are the low bits of 8 bytes,
    whose two high bits belong to the other four."""
    first, second, third = (packed[..., i : i + 4] for i in (0, 4, 8))
    six, four, two = np.uint8(63), np.uint8(15), np.uint8(48)
    s = np.concatenate([first & six, third & four | first >> np.uint8(2) & two], axis=-1)
    t = np.concatenate([second & six, third >> np.uint8(4) | second >> np.uint8(2) & two], axis=-1)
    return s, t


@dataclass(frozen=True)
class _Parts:
    """A quantized tensor in groups: levels int8[rows, K], d and m f32[rows, groups]; s: whole
    numbers int8[rows, groups] that are not in d yet, or None."""

    levels: Levels
    d: Floats
    m: Floats | None
    s: Levels | None


@np.errstate(invalid="ignore")
def _parts(fmt: Format, raw: Bytes) -> _Parts:
    assert fmt.scale is not None
    blocks = raw.reshape(raw.shape[0], -1, fmt.size)
    levels = _levels(fmt, blocks).reshape(raw.shape[0], -1)
    d = _half(blocks, fmt.scale)
    m = None if fmt.offset is None else _half(blocks, fmt.offset)
    if fmt.scales is None:
        return _Parts(levels, d, m, None)
    if m is None:
        packed = blocks[..., fmt.scales : fmt.scales + fmt.block // fmt.group]
        s = np.ascontiguousarray(packed).view(np.int8).reshape(raw.shape[0], -1)
        return _Parts(levels, np.repeat(d, fmt.block // fmt.group, axis=-1), None, s)
    s, t = _six_bits(blocks[..., fmt.scales : fmt.scales + 12])
    scale, offset = d[..., None] * s.astype(np.float32), -(m[..., None] * t.astype(np.float32))
    flat = (raw.shape[0], -1)
    return _Parts(levels, scale.reshape(flat), offset.reshape(flat), None)


def decode(fmt: Format, raw: Bytes) -> tuple[Levels | Whole, Floats, Floats | None]:
    """The parts of raw uint8[rows, row_bytes], of a quantized format (ValueError else).

    Returns whole numbers int8 or int16[rows, K] (levels, or s * level where 16 weights share a
    scale), d f32[rows, K/32], m f32[rows, K/32] or None.
    """
    if fmt.scale is None:
        raise ValueError(f"{fmt.name} has no levels to decode")
    parts = _parts(fmt, raw)
    if parts.s is None:
        return parts.levels, parts.d, parts.m
    whole = parts.levels.reshape(*parts.s.shape, fmt.group) * parts.s[..., None].astype(np.int16)
    return whole.reshape(parts.levels.shape), parts.d[:, :: GROUP // fmt.group], None


def _elements(fmt: Format, raw: Bytes) -> Floats:
    if fmt is F32:
        return raw.view("<f4").astype(np.float32)
    if fmt is BF16:
        return (raw.view("<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)
    with np.errstate(invalid="ignore"):
        return raw.view("<f2").astype(np.float32)


@np.errstate(all="ignore")
def dequantize(fmt: Format, raw: Bytes) -> Floats:
    """raw uint8[rows, row_bytes] -> f32[rows, K]: the weights' values, as the module says."""
    if not fmt.quantized:
        return _elements(fmt, np.ascontiguousarray(raw))
    parts = _parts(fmt, raw)
    grouped = parts.levels.reshape(*parts.d.shape, fmt.group).astype(np.float32)
    scale = parts.d if parts.s is None else parts.d * parts.s.astype(np.float32)
    grouped *= scale[..., None]
    if parts.m is not None:
        grouped += parts.m[..., None]
    return grouped.reshape(parts.levels.shape)
