"""Weights and caches grouped by name: one family is a tensor of every layer, one after another in
memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compiler.diagnostics import UserError
from compiler.formats import FORMATS
from compiler.graph import Value
from compiler.types import Type, size

PLAIN, TILES = 0, 1
ALIGN = 256


@dataclass(frozen=True)
class Family:
    """Members `first .. first + count - 1` of a name with one number (`{}`), or a single name.

    layout: PLAIN (f32 elements) or TILES (see codegen/lib/tiles.cuh). offset, stride: bytes in the
    allocation.
    """

    name: str
    first: int
    count: int
    type: Type
    layout: int
    offset: int
    stride: int

    @property
    def label(self) -> str:
        """The last telling part of the name: `attn_q` of `blk.{}.attn_q.weight`."""
        parts = [p for p in self.name.split(".") if p not in ("weight", "{}")]
        return parts[-1] if parts[-1] != "bias" else ".".join(parts[-2:])


@dataclass(frozen=True)
class Member:
    """Where one tensor is: family number and index in it."""

    family: int
    index: int


def split_name(name: str) -> tuple[str, int | None]:
    """`blk.3.attn_q.weight` -> (`blk.{}.attn_q.weight`, 3); a name without a number stays itself.

    UserError for names that look like what stands for a number here and in the tables.
    """
    if re.search(r"[%{}]", name):
        raise UserError(f"a tensor's name without %, {{ and }} is needed, got {name!r}")
    found = re.search(r"(?<=\.)\d+(?=\.)", name)
    if not found or (len(found[0]) > 1 and found[0][0] == "0"):
        return name, None
    return f"{name[: found.start()]}{{}}{name[found.end() :]}", int(found[0])


def tile_bytes(type_: Type) -> int:
    """Bytes of a matrix in tiles: rows padded to 8, inputs to 512; experts one after another."""
    *outer, n, k = type_.shape
    assert isinstance(n, int) and isinstance(k, int)
    fmt = FORMATS[type_.dtype]
    tile = fmt.bits * 512 + 32 * (fmt.scale_bytes * 128 // fmt.block)
    return size(tuple(outer)) * -(-n // 8) * -(-k // 512) * tile


def stored_bytes(type_: Type, layout: int) -> int:
    return tile_bytes(type_) if layout == TILES else 4 * size(type_.shape)


def weight_families(
    leaves: Iterable[tuple[Value, int]],
    gap: int = 0,
) -> tuple[tuple[Family, ...], dict[tuple[Value, int], Member], int]:
    """Families of the (weight leaf, layout) pairs in order of first use; where each is; the
    allocation's bytes. `gap` bytes are free behind each."""
    groups: dict[tuple[str, Type, int], list[tuple[int | None, Value]]] = {}
    for leaf, layout in dict.fromkeys(leaves):
        name, number = split_name(str(leaf.node.attr("name")))
        groups.setdefault((name, leaf.type, layout), []).append((number, leaf))
    families: list[Family] = []
    where: dict[tuple[Value, int], Member] = {}
    at = 0
    for (name, type_, layout), members in groups.items():
        stride = -(-stored_bytes(type_, layout) // ALIGN) * ALIGN + gap
        for run in _runs(members):
            first = run[0][0] or 0
            for index, (_, leaf) in enumerate(run):
                where[leaf, layout] = Member(len(families), index)
            families.append(Family(name, first, len(run), type_, layout, at, stride))
            at += stride * len(run)
    return tuple(families), where, at


def _runs(
    members: Sequence[tuple[int | None, Value]],
) -> list[list[tuple[int | None, Value]]]:
    """Members split where their numbers leave a gap."""
    runs: list[list[tuple[int | None, Value]]] = []
    for number, leaf in sorted(members, key=lambda m: -1 if m[0] is None else m[0]):
        last = runs[-1][-1][0] if runs else None
        if number is not None and last is not None and number == last + 1:
            runs[-1].append((number, leaf))
        else:
            runs.append([(number, leaf)])
    return runs


@dataclass(frozen=True)
class CacheFamily:
    """Caches of every layer: bytes a position of one of them, and of all before them."""

    name: str
    first: int
    count: int
    type: Type
    position_bytes: int
    offset: int  # bytes a position of all caches before this family


def cache_families(
    leaves: Iterable[Value],
    gap: int = 0,
) -> tuple[tuple[CacheFamily, ...], dict[Value, Member], int]:
    """Families of cache leaves, where each is, and the bytes that a position needs in all of
    them; `gap` of them are free behind each."""
    groups: dict[tuple[str, Type], list[tuple[int | None, Value]]] = {}
    for leaf in dict.fromkeys(leaves):
        name, number = split_name(str(leaf.node.attr("name")))
        groups.setdefault((name, leaf.type), []).append((number, leaf))
    families: list[CacheFamily] = []
    where: dict[Value, Member] = {}
    at = 0
    for (name, type_), members in groups.items():
        each = size(type_.shape) * (4 if type_.dtype == "cache_f32" else 2) + gap
        for run in _runs(members):
            for index, (_, leaf) in enumerate(run):
                where[leaf] = Member(len(families), index)
            families.append(CacheFamily(name, run[0][0] or 0, len(run), type_, each, at))
            at += each * len(run)
    return tuple(families), where, at
