"""The table of caches in a build that stores every value: what is held behind a run, by the name of
each cache's last version."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from codegen.families import CacheFamily
from codegen.memory_of import cache_leaf
from codegen.plan import Plan
from codegen.tables import layer_of
from compiler.graph import Value
from compiler.types import CACHES


def last_versions(plan: Plan) -> dict[str, Value]:
    """Of each cache that is written, by the cache's name."""
    found: dict[str, Value] = {}
    for n in plan.graph.nodes():
        for v in map(n.result, range(len(n.types))):
            if v.type.dtype in CACHES and n.op != "cache":
                found[str(cache_leaf(v).node.attr("name"))] = v
    return found


def rows(plan: Plan) -> Iterator[tuple[str, ...]]:
    """Fields of CacheValue: layers whose names and caches march alike share a line."""
    versions = last_versions(plan)
    for f in plan.cache_families:
        held = [versions.get(f.name.replace("{}", str(f.first + i))) for i in range(f.count)]
        named = [layer_of(plan.names[v]) if v else ("", 0) for v in held]
        for (name, _), run in groupby(enumerate(named), key=_marching):
            (index, (_, number)), *rest = run
            if name:
                yield _row(f, index, name, max(number, 0), 1 + len(rest))


def _marching(at: tuple[int, tuple[str, int]]) -> tuple[str, int]:
    index, (name, number) = at
    return name, number - index


def _row(f: CacheFamily, index: int, name: str, first: int, count: int) -> tuple[str, ...]:
    dtype = f.type.dtype.removeprefix("cache_")
    shape = f"{{{', '.join(map(str, f.type.shape))}}}"
    before = f.offset + index * f.position_bytes
    fields = (first, count, f'"{dtype}"', shape, before, f.position_bytes)
    return (f'"{name}"', *map(str, fields))
