"""Synthetic checkpoints without a file: every tensor's bytes are hashes of their place.

`monocu run --synthetic PRESET:TYPE` and the binary's `--synthetic SEED` make the same bytes: the
device's part is codegen/lib/synthetic.cuh. A word is a hash of the tensor's key (name and seed) and
the word's number, an element format's number being the element's, a block's the first of its own
words. Then exponents are set, so that a projection's outputs are about as large as its inputs; all
of it is integer arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compiler.diagnostics import CHECKPOINT, UserError
from compiler.formats import FORMATS, Bytes, Format
from compiler.values import Weight
from runtime.gguf import Checkpoint, TensorInfo
from runtime.synthetic import MIXTURES, PRESETS, plan_of

Words = NDArray[np.uint32]
PIECE = 1 << 16  # blocks made at a time: what caches hold
FRACTIONS = {"f32": (23, 127), "bf16": (7, 127), "f16": (10, 15)}  # bits, the exponent of 1


@dataclass(frozen=True, slots=True)
class HashedCheckpoint(Checkpoint):
    """A checkpoint whose tensors are made when they are asked for."""

    seed: int

    def weight(self, name: str) -> Weight:
        info = self.tensors.get(name)
        if info is None:
            raise UserError(f"{self.path}: tensor {name} is needed, it has none", CHECKPOINT)
        assert isinstance(info.format, Format)
        return Weight(info.format, info.shape, hashed_bytes(info, tensor_key(self.seed, name)))

    @property
    def flags(self) -> list[str]:
        return ["--synthetic", str(self.seed)]


def open_synthetic(spelled: str, seed: int = 0) -> HashedCheckpoint:
    """The checkpoint that PRESET:TYPE says, its seed beside it. UserError: what there is."""
    preset, colon, kind = spelled.partition(":")
    if not (preset and colon and kind):
        raise UserError(
            f"--synthetic: PRESET:TYPE is needed, as qwen3-8b:q8_0; {spelled!r} was given; "
            f"presets: {', '.join(PRESETS)}; types: {', '.join((*FORMATS, *MIXTURES))}"
        )
    plan = plan_of(preset, kind)
    tensors = {t.name: TensorInfo(t.name, t.format, t.shape, 0, t.nbytes) for t in plan.tensors}
    return HashedCheckpoint(Path(f"{preset}-{kind}"), plan.meta, tensors, b"", seed)


def tensor_key(seed: int, name: str) -> int:
    """FNV-1a of the name, begun with the seed."""
    key = 2166136261 ^ seed
    for byte in name.encode():
        key = (key ^ byte) * 16777619 & 0xFFFFFFFF
    return key


def hashed_words(key: int, numbers: Words) -> Words:
    """A hash of each number (lowbias32 of a Weyl sequence), modulo 2^32."""
    x = numbers * np.uint32(0x9E3779B9)
    x += np.uint32(key)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x ^= x >> np.uint32(shift)
        x *= np.uint32(factor)
    x ^= x >> np.uint32(16)
    return x


def exponent_of(fmt: Format, k: int) -> int:
    """The power of two of a scale, or of elements, for sums of k products."""
    deviation = 1 if fmt.block == 1 else fmt.bits - 1 + (5 if fmt.scales is not None else 0)
    return -(k.bit_length() // 2) - deviation  # 2^(length / 2) is about the root of k


def hashed_bytes(info: TensorInfo, key: int) -> Bytes:
    """A tensor's bytes as a checkpoint stores them."""
    fmt = info.format
    assert isinstance(fmt, Format)
    count, k = prod(info.shape) // fmt.block, info.shape[-1]
    out = np.empty((count, fmt.size), np.uint8)
    for at in range(0, count, PIECE):
        numbers = np.arange(at, min(at + PIECE, count), dtype=np.uint32)
        if fmt.block == 1:
            out[at : at + PIECE] = _elements(fmt, key, numbers, k, len(info.shape) == 1)
        else:
            out[at : at + PIECE] = _blocks(fmt, key, numbers, k)
    return out.reshape(-1)


def _elements(fmt: Format, key: int, numbers: Words, k: int, vector: bool) -> Bytes:
    """Hashed sign and fraction; of a vector 1 and up to a quarter more."""
    bits, one = FRACTIONS[fmt.name]
    fraction, sign = (1 << bits) - 1, 1 << (fmt.bits - 1)
    exponent = (one + (0 if vector else exponent_of(fmt, k))) << bits
    kept = fraction >> 2 if vector else fraction | sign
    words = np.uint32(exponent) | hashed_words(key, numbers) & np.uint32(kept)
    return words.astype("<u4").view(np.uint8).reshape(-1, 4)[:, : fmt.size]


def _blocks(fmt: Format, key: int, numbers: Words, k: int) -> Bytes:
    """Hashed bytes, whose scale (and offset, against the levels' middle) gets its exponent; of 8
    bits no level is -128."""
    assert fmt.scale is not None
    each = -(-fmt.size // 4)
    places = numbers[:, None] * np.uint32(each) + np.arange(each, dtype=np.uint32)
    blocks = hashed_words(key, places).astype("<u4").view(np.uint8)[:, : fmt.size]
    if fmt.bits == 8:
        levels = blocks[:, fmt.levels : fmt.levels + fmt.block]
        levels[levels == 128] = 129
    exponent = exponent_of(fmt, k)
    blocks[:, fmt.scale + 1] = _half(exponent, blocks[:, fmt.scale + 1])
    if fmt.offset is not None:
        sign = np.uint8(128 if fmt.scales is None else 0)
        upper = _half(exponent + fmt.bits - 1, blocks[:, fmt.offset + 1])
        blocks[:, fmt.offset + 1] = upper | sign
    return blocks


def _half(exponent: int, hashed: Bytes) -> Bytes:
    """An f16's upper byte for this power of two, with two hashed bits of the fraction."""
    return np.uint8(max(15 + exponent, 0) << 2) | hashed & np.uint8(3)
