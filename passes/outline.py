"""Outlining: sets of nodes become calls of functions that hold them. What every fusion is made of.

A `Units` says which nodes stay together and refuses what would put a node before and behind another
at once; `outline` builds the graph in which each unit is one call. Parameters and body come in
program order, so that equal layers share one function; values that are read outside are results.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter

from compiler.graph import (
    Function,
    Graph,
    Node,
    Note,
    Origin,
    Value,
    call,
    function,
    hazards,
    move_note,
    node,
    param,
)
from passes.context import Context

Members = Set[Node]


class Units:
    """A partition of a graph's nodes; every node starts alone. Contracting it leaves no cycle."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.order = {n: i for i, n in enumerate(graph.nodes())}
        self.uses = graph.uses()
        self.roots = frozenset(graph.roots)
        self.after: dict[Node, list[Node]] = {n: list(readers) for n, readers in self.uses.items()}
        for later, earlier in hazards(self.order).items():
            for n in earlier:
                self.after[n].append(later)
        self._unit: dict[Node, frozenset[Node]] = {}
        self._spans: list[tuple[int, int]] = []  # first and last place of each unit, sorted

    def of(self, n: Node) -> frozenset[Node]:
        """The nodes that stay with `n`."""
        return self._unit.get(n) or frozenset((n,))

    def fused(self) -> list[frozenset[Node]]:
        """The units of more than one node, in program order."""
        return sorted(set(self._unit.values()), key=lambda u: min(self.order[n] for n in u))

    def joinable(self, nodes: Iterable[Node]) -> bool:
        """Whether the units of `nodes` can be one: no way leads out of them and back."""
        union = self._union(nodes)
        seen: set[Node] = set(union)
        last = self._last(union)
        stack = [after for n in union for after in self.after[n] if after not in union]
        while stack:
            n = stack.pop()
            if n in seen or self.order[n] > last:
                continue
            unit = self.of(n)
            seen |= unit
            following = {after for member in unit for after in self.after[member]}
            if following & union:
                return False
            stack += following - seen
        return True

    def join(self, nodes: Iterable[Node]) -> bool:
        """Make one unit of the units of `nodes`; False, and nothing done, where they cannot be."""
        union = self._union(nodes)
        if len(union) > 1:
            if not self.joinable(union):
                return False
            self._unit |= dict.fromkeys(union, union)
            insort(self._spans, self._span(union))
        return True

    def readers(self, value: Value) -> list[Node]:
        """Who reads just this result, each once."""
        return [n for n in dict.fromkeys(self.uses[value.node]) if value in n.operands]

    def read_outside(self, value: Value, unit: Members) -> bool:
        return value in self.roots or any(n not in unit for n in self.readers(value))

    def only_reader(self, value: Value) -> Node | None:
        """The one node that reads `value`; None where there are others or it is a root."""
        readers = self.readers(value)
        return readers[0] if len(readers) == 1 and value not in self.roots else None

    def _span(self, unit: Members) -> tuple[int, int]:
        places = [self.order[n] for n in unit]
        return min(places), max(places)

    def _last(self, union: Members) -> int:
        """A place in program order behind which no way leads back: no unit reaches over it."""
        _, last = self._span(union)
        for low, high in self._spans:
            if low > last:
                break
            last = max(last, high)
        return last

    def _union(self, nodes: Iterable[Node]) -> frozenset[Node]:
        return frozenset[Node]().union(*(self.of(n) for n in nodes))


@dataclass(frozen=True)
class Outlined:
    """A unit as a function, the values that it is called with and the ones that it gives."""

    function: Function
    operands: tuple[Value, ...]
    results: tuple[Value, ...]


def _results(units: Units, members: list[Node], store_named: bool) -> list[Value]:
    unit = frozenset(members)
    values = [n.result(i) for n in members for i in range(len(n.types))]
    return [
        v
        for v in values
        if units.read_outside(v, unit) or (store_named and units.graph.name(v) is not None)
    ]


def extract(units: Units, unit: Members, kind: str, store_named: bool) -> Outlined:
    """The function of a unit: operands are parameters by first use, but for constants."""
    members = sorted(unit, key=units.order.__getitem__)
    inside: dict[Value, Value] = {}
    operands: dict[Value, Node] = {}
    body: dict[Node, None] = {}
    for n in members:
        for v in n.operands:
            if v.node.op == "const":
                inside[v] = v
            elif v not in inside:
                operands[v] = param(len(operands), v.type)
                inside[v] = operands[v].result()
        copy = node(n.op, [inside[v] for v in n.operands], dict(n.attrs), n.types)
        body[copy] = None
        inside |= {n.result(i): copy.result(i) for i in range(len(n.types))}
    results = _results(units, members, store_named)
    made = function(kind, operands.values(), body, [inside[v] for v in results])
    return Outlined(made, tuple(operands), tuple(results))


def outline(units: Units, kind: str, context: Context, *, store_named: bool = True) -> Graph:
    """The graph in which each unit of several nodes is one call of a function of `kind`.

    store_named: under options.dump the function also gives those of its members that have names.
    """
    if not units.fused():
        return units.graph
    new: dict[Value, Value] = {}
    notes: dict[Node, Note] = {}
    for unit in _operands_first(units):
        if len(unit) == 1:
            (n,) = unit
            made = node(n.op, [new[v] for v in n.operands], dict(n.attrs), n.types)
            results = tuple(n.result(i) for i in range(len(n.types)))
        else:
            part = extract(units, unit, kind, store_named and context.options.dump)
            made = call(part.function, [new[v] for v in part.operands])
            results = part.results
        new |= {v: made.result(i) for i, v in enumerate(results)}
        _note(units.graph, unit, results, made, notes)
    return units.graph.replaced(new, notes)


def _operands_first(units: Units) -> Iterator[frozenset[Node]]:
    """Each unit once, behind those that give its operands."""
    sorter: TopologicalSorter[frozenset[Node]] = TopologicalSorter()
    for n in units.order:
        unit = units.of(n)
        sorter.add(unit, *(units.of(v.node) for v in n.operands if v.node not in unit))
    yield from sorter.static_order()


def _note(
    graph: Graph, unit: Members, results: Sequence[Value], made: Node, notes: dict[Node, Note]
) -> None:
    """The made node takes its results' names, all origins and the first rank of the unit."""
    members = [graph.note(n) for n in unit]
    rank = min(n.rank for n in members)
    origins = frozenset[Origin]().union(*(n.origins for n in members))
    for index, value in enumerate(results):
        old = replace(graph.note(value.node), origins=origins, rank=rank)
        move_note(notes, old, value.index, made.result(index))
