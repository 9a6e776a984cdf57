"""Values of the reference VM besides plain arrays: quantized activations, weights, rows, caches.

A plain value is an ndarray: float32, float16, int32 or int64. A bf16 value is a float32 array that
holds bf16 numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from compiler.formats import F16, F32, Bytes, Floats, Format, Levels, dequantize

Ints = NDArray[np.int32]
T = TypeVar("T")


@dataclass(frozen=True)
class Quantized:
    """Activations quantized per 32 along the last axis.

    value = scale * word in q8, scale * (word + low / 128) in q8x2.
    """

    words: Levels  # int8[..., K]
    low: Levels | None  # int8[..., K] in q8x2, None in q8
    scales: Floats  # f32[..., K/32]
    sums: (
        Floats  # f32[..., K/32]: fl(scale * sum of words), what a weight's offset is multiplied by
    )

    @property
    def shape(self) -> tuple[int, ...]:
        return self.words.shape

    @property
    def dtype(self) -> str:
        return "q8" if self.low is None else "q8x2"


@dataclass(frozen=True, eq=False)
class Weight:
    """A checkpoint tensor as the file holds it.

    `data` may be a read-only view of the file; `prepared` keeps arrays derived from it.
    """

    format: Format
    shape: tuple[int, ...]  # outermost first, K last
    data: Bytes  # any shape; format.nbytes(shape) bytes in all
    _kept: dict[str, object] = field(default_factory=dict[str, object], repr=False)

    def __post_init__(self) -> None:
        need = self.format.nbytes(self.shape)
        if self.data.dtype != np.uint8 or self.data.size != need:
            given = f"{self.data.dtype}[{self.data.size}]"
            raise ValueError(
                f"{self.format.name}{list(self.shape)} needs uint8[{need}], not {given}"
            )

    @property
    def rows(self) -> Bytes:
        """uint8[product of the outer axes, bytes of a row]"""
        return self.data.reshape(-1, self.format.row_bytes(self.shape[-1]))

    def prepared(self, name: str, make: Callable[[], T]) -> T:
        """What `make()` gave the first time that `name` was asked for."""
        if name not in self._kept:
            self._kept[name] = make()
        return cast(T, self._kept[name])

    def values(self) -> Floats:
        """The whole tensor as f32[shape]; not kept."""
        return dequantize(self.format, self.rows).reshape(self.shape)

    def gather(self, index: NDArray[np.integer]) -> Floats:
        """The entries `index` of the outermost axis, as f32[*index.shape, *shape[1:]]."""
        each = prod(self.shape[1:-1])
        entries = self.rows.reshape(self.shape[0], each, -1)[index.reshape(-1)]
        picked = dequantize(self.format, entries.reshape(index.size * each, -1))
        return picked.reshape(*index.shape, *self.shape[1:])

    def entry(self, index: int) -> Weight:
        """One entry of the outermost axis as a weight of its own (an expert), kept."""
        each = prod(self.shape[1:-1])
        part = self.rows[index * each : (index + 1) * each]
        return self.prepared(f"entry {index}", lambda: Weight(self.format, self.shape[1:], part))


def weight_of(values: Floats) -> Weight:
    """A f32 array as a weight."""
    data = np.ascontiguousarray(values, np.float32)
    return Weight(F32, values.shape, data.view(np.uint8).reshape(-1))


@dataclass(frozen=True)
class Rows:
    """The token rows of a step: row t is position pos[t] of sequence seq[t].

    `wanted` lists the rows whose results are asked for.
    """

    seq: Ints  # int32[T]
    pos: Ints  # int32[T]
    wanted: Ints  # int32[R], indices into T

    def __len__(self) -> int:
        return len(self.seq)


class Cache:
    """One entry [KV, HD] for each position of each sequence, f32 or f16.

    Updated in place; entries never written are 0.
    """

    def __init__(self, entry: tuple[int, ...], format: Format = F32) -> None:
        if format not in (F32, F16):
            raise ValueError(f"a cache is f32 or f16, not {format.name}")
        self.entry = entry
        self.format = format
        self._stored: dict[int, NDArray[np.floating]] = {}
        self._length: dict[int, int] = {}

    def write(self, rows: Rows, values: NDArray[np.floating]) -> None:
        """Row t of values [T, KV, HD] goes to position pos[t] of sequence seq[t].

        The values are already rounded to the cache's type.
        """
        for t, (seq, pos) in enumerate(zip(rows.seq.tolist(), rows.pos.tolist(), strict=True)):
            self._room(seq, pos + 1)[pos] = values[t]

    def keys(self, seq: int) -> NDArray[np.floating]:
        """What sequence `seq` holds: a view [length, KV, HD] in the stored type."""
        if seq not in self._stored:
            return np.zeros((0, *self.entry), self._dtype)
        return self._stored[seq][: self._length[seq]]

    def drop(self, seq: int) -> None:
        """Forgets a sequence."""
        self._stored.pop(seq, None)
        self._length.pop(seq, None)

    def copy(self) -> Cache:
        """A cache of its own with the same entries."""
        other = Cache(self.entry, self.format)
        other._stored = {seq: stored.copy() for seq, stored in self._stored.items()}
        other._length = dict(self._length)
        return other

    @property
    def _dtype(self) -> type[np.floating]:
        return np.float32 if self.format is F32 else np.float16

    def _room(self, seq: int, length: int) -> NDArray[np.floating]:
        """The storage of `seq` with room for `length` positions; it doubles, in pages of 64."""
        stored = self._stored.get(seq, np.zeros((0, *self.entry), self._dtype))
        if length > len(stored):
            grown = np.zeros(
                (max(-(-length // 64) * 64, 2 * len(stored)), *self.entry), self._dtype
            )
            grown[: len(stored)] = stored
            self._stored[seq] = stored = grown
        self._length[seq] = max(length, self._length.get(seq, 0))
        return stored


Value = NDArray[np.floating] | NDArray[np.integer] | Quantized | Weight | Rows | Cache
