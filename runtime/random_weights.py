"""Random tensors as the bytes of a file: normal elements, or uniform levels with random scales."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from compiler.encode import six_bits
from compiler.formats import Bytes, Floats, Format

CHUNK = 1 << 24  # weights made at a time


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor to write: shape outermost first, values of about `mean` +- `spread`."""

    name: str
    shape: tuple[int, ...]
    format: Format
    spread: float = 0.0
    mean: float = 0.0

    @property
    def nbytes(self) -> int:
        return self.format.nbytes(self.shape)


def random_bytes(tensor: Tensor, rng: np.random.Generator) -> Iterator[Bytes]:
    """The tensor's bytes, in pieces of at most CHUNK weights. `mean` is of element formats only."""
    left = prod(tensor.shape)
    while left:
        count = min(left, CHUNK)
        left -= count
        if tensor.format.quantized:
            yield _blocks(tensor.format, count // tensor.format.block, tensor.spread, rng)
        else:
            values = rng.standard_normal(count, np.float32)
            values *= np.float32(tensor.spread)
            yield _elements(tensor.format, values + np.float32(tensor.mean))


def _elements(fmt: Format, values: Floats) -> Bytes:
    match fmt.name:
        case "f32":
            return values.astype("<f4").view(np.uint8)
        case "f16":
            return values.astype("<f2").view(np.uint8)
        case "bf16":  # round half to even; none of the values is near infinity
            bits = values.view(np.uint32)
            bits += np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
            return (bits >> np.uint32(16)).astype("<u2").view(np.uint8)
        case name:
            raise ValueError(f"{name} is no element format")


def _blocks(fmt: Format, count: int, spread: float, rng: np.random.Generator) -> Bytes:
    """Levels are uniform, a block's scale is +- 25 % of the one that gives `spread`."""
    assert fmt.scale is not None
    if fmt.scales is not None:
        return _groups(fmt, count, spread, rng)
    width = fmt.block * fmt.bits // 8
    blocks = np.empty((count, fmt.size), np.uint8)
    levels = np.frombuffer(rng.bytes(count * width), np.uint8).reshape(count, width)
    if fmt.bits == 8:  # -128 is not a level that quantizers make
        levels = np.maximum(levels.view(np.int8), np.int8(-127)).view(np.uint8)
    blocks[:, fmt.levels : fmt.levels + width] = levels
    steps = (1 << fmt.bits) - 1
    deviation = steps / sqrt(12)  # of a uniform level
    d = rng.uniform(0.75, 1.25, count).astype(np.float32) * np.float32(spread / deviation)
    blocks[:, fmt.scale : fmt.scale + 2] = _halves(d)
    if fmt.offset is not None:
        blocks[:, fmt.offset : fmt.offset + 2] = _halves(d * np.float32(-steps / 2))
    return blocks.reshape(-1)


def _groups(fmt: Format, count: int, spread: float, rng: np.random.Generator) -> Bytes:
    """The same of K-quants: each group's whole number is +- 25 % of the middle one, either sign
    where it is signed; an offset's is its scale's."""
    assert fmt.scale is not None and fmt.scales is not None
    blocks = np.frombuffer(rng.bytes(count * fmt.size), np.uint8).reshape(count, -1).copy()
    steps = (1 << fmt.bits) - 1
    middle = 50 if fmt.offset is not None else 100
    d = rng.uniform(0.9, 1.1, count).astype(np.float32)
    d *= np.float32(spread / (steps / sqrt(12) * middle))
    blocks[:, fmt.scale : fmt.scale + 2] = _halves(d)
    low, high = middle * 3 // 4 + 1, middle * 5 // 4 + 1
    s = rng.integers(low, high, (count, fmt.block // fmt.group)).astype(np.uint8)
    if fmt.offset is None:
        signed = np.where(rng.integers(0, 2, s.shape) == 0, s, -s.astype(np.int8).view(np.uint8))
        blocks[:, fmt.scales : fmt.scales + s.shape[1]] = signed
        return blocks.reshape(-1)
    blocks[:, fmt.offset : fmt.offset + 2] = _halves(d * np.float32(steps / 2))
    blocks[:, fmt.scales : fmt.scales + 12] = six_bits(s, s)
    return blocks.reshape(-1)


def _halves(values: NDArray[np.float32]) -> Bytes:
    return values.astype("<f2").view(np.uint8).reshape(-1, 2)
