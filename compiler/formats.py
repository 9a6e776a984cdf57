"""The tensor formats of a checkpoint: one record each, which decoders, kernels and tests all read.

A row of a quantized format is a run of blocks; a block holds `block` weights as integer levels, one
f16 scale d and, in formats with an offset, one f16 offset m, all little-endian. A weight's value is
fl(fl(d * level) + m), or fl(d * level) without an offset.
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
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Format:
    """A tensor format: where the parts of its block stand (byte offsets).

    An element format (`block` 1) has no scale; its one part, the element itself, is at `levels`.
    Levels of 8 bits are signed bytes. Levels of 4 bits are unsigned, less `zero`; byte i holds
    level i in its low half and level i + block / 2 in its high half.
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

    @property
    def quantized(self) -> bool:
        return self.block > 1

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

_ALL = (F32, F16, BF16, Q8_0, Q4_1, Q4_0)
FORMATS = MappingProxyType({f.name: f for f in _ALL})
BY_GGML = MappingProxyType({f.ggml: f for f in _ALL})


def _blocks(fmt: Format, raw: Bytes) -> Bytes:
    """raw uint8[rows, row_bytes] -> uint8[rows, blocks, size]"""
    return raw.reshape(raw.shape[0], -1, fmt.size)


def _half(blocks: Bytes, at: int) -> Floats:
    """The f16 at byte `at` of each block, as f32[rows, blocks]."""
    parts = np.ascontiguousarray(blocks[..., at : at + 2]).view("<f2")
    with np.errstate(invalid="ignore"):
        return parts[..., 0].astype(np.float32)


def _levels(fmt: Format, blocks: Bytes) -> Levels:
    packed = blocks[..., fmt.levels : fmt.levels + fmt.block * fmt.bits // 8]
    if fmt.bits == 8:
        return np.ascontiguousarray(packed).view(np.int8)
    halves = np.concatenate([packed & np.uint8(15), packed >> np.uint8(4)], axis=-1)
    return halves.view(np.int8) - np.int8(fmt.zero)


def decode(fmt: Format, raw: Bytes) -> tuple[Levels, Floats, Floats | None]:
    """The parts of raw uint8[rows, row_bytes], of a quantized format (ValueError else).

    Returns levels int8[rows, K], d f32[rows, K/32], m f32[rows, K/32] or None.
    """
    if fmt.scale is None:
        raise ValueError(f"{fmt.name} has no levels to decode")
    blocks = _blocks(fmt, raw)
    m = None if fmt.offset is None else _half(blocks, fmt.offset)
    return _levels(fmt, blocks).reshape(raw.shape[0], -1), _half(blocks, fmt.scale), m


def _elements(fmt: Format, raw: Bytes) -> Floats:
    if fmt is F32:
        return raw.view("<f4").astype(np.float32)
    if fmt is BF16:
        return (raw.view("<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)
    with np.errstate(invalid="ignore"):
        return raw.view("<f2").astype(np.float32)


def dequantize(fmt: Format, raw: Bytes) -> Floats:
    """raw uint8[rows, row_bytes] -> f32[rows, K]: the weights' values, as the module says."""
    if not fmt.quantized:
        return _elements(fmt, np.ascontiguousarray(raw))
    levels, d, m = decode(fmt, raw)
    grouped = levels.reshape(*d.shape, GROUP).astype(np.float32)
    with np.errstate(all="ignore"):
        grouped *= d[..., None]
        if m is not None:
            grouped += m[..., None]
    return grouped.reshape(levels.shape)
