"""Tensors whose format differs by layer, as in every Q4_K_M file: a table of each says where a
layer's is.

Launches that differ in nothing but such formats are one launch of a loop, whose kernel is chosen by
the layer's row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from codegen.expr import STRUCTS
from codegen.families import Family, Member
from compiler.types import Dim

FORMATS = frozenset(STRUCTS.values())


@dataclass(frozen=True)
class Table:
    """Where the tensors of one name are, a row a layer, from the first that has one."""

    layout: int
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Layers:
    """The tables of a plan's families."""

    families: tuple[Family, ...]
    tables: tuple[Table, ...]

    def row(self, member: Member) -> tuple[int, int] | None:
        """The table and the row of a tensor; None: all layers have its format."""
        for number, table in enumerate(self.tables):
            if member in table.members:
                return number, table.members.index(member)
        return None

    def place(self, member: Member) -> tuple[int, int]:
        """Where rolling sees a tensor: its family, or behind all of those its table, and which it
        is."""
        row = self.row(member)
        return (
            (member.family, member.index) if row is None else (len(self.families) + row[0], row[1])
        )

    def alike(self, arguments: Sequence[str], members: Iterable[Member]) -> tuple[str, ...]:
        """A launch's template arguments, formats left out where a table has them."""
        if not any(self.row(m) for m in members):
            return tuple(arguments)
        return tuple("" if a in FORMATS else a for a in arguments)


@cache
def of(families: tuple[Family, ...]) -> Layers:
    """A table for each name that has several formats in layers without a gap."""
    groups: dict[tuple[str, tuple[Dim, ...], int], list[int]] = {}
    for index, f in enumerate(families):
        groups.setdefault((f.name, f.type.shape, f.layout), []).append(index)
    tables = (_table(families, group) for group in groups.values())
    return Layers(families, tuple(t for t in tables if t is not None))


def _table(families: Sequence[Family], group: Sequence[int]) -> Table | None:
    if len({families[i].type for i in group}) == 1 or "{}" not in families[group[0]].name:
        return None
    where = {
        families[i].first + at: Member(i, at) for i in group for at in range(families[i].count)
    }
    first = min(where)
    if len(where) != max(where) - first + 1:
        return None
    return Table(families[group[0]].layout, tuple(where[n] for n in sorted(where)))
