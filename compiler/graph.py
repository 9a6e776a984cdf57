"""The graph: immutable interned nodes, functions of them, and a side table of what people know.

That is names, origins and the order of the program.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from compiler.diagnostics import Span
from compiler.types import CACHES, Type

Attr = int | float | str | tuple[float | str, ...]
Attrs = tuple[tuple[str, "Attr | Function"], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """One operation; made by `node(...)` alone, which interns, so equality is identity.

    op: the record's name in compiler/ops, or a leaf ("weight", "input", "cache", "const", "param"),
    or "call". operands: values in the record's order (an absent optional operand is left out).
    attrs: sorted (name, value) pairs, defaults filled in.
    types: one type a result.
    """

    op: str
    operands: tuple[Value, ...]
    attrs: Attrs
    types: tuple[Type, ...]

    def __repr__(self) -> str:
        """Short: a node's operands are a DAG, and written out they grow with its paths."""
        return f"<{self.op}: {', '.join(map(str, self.types))}>"

    def attr(self, name: str) -> Attr:
        value = dict(self.attrs)[name]
        assert not isinstance(value, Function)
        return value

    @property
    def function(self) -> Function:
        """The function that a `call` node calls."""
        value = dict(self.attrs)["function"]
        assert isinstance(value, Function)
        return value

    def result(self, index: int = 0) -> Value:
        return self._results[index]

    @cached_property
    def _results(self) -> tuple[Value, ...]:
        return tuple(Value(self, index) for index in range(len(self.types)))


@dataclass(frozen=True, slots=True)
class Value:
    """One result of a node."""

    node: Node
    index: int = 0

    @property
    def type(self) -> Type:
        return self.node.types[self.index]


@dataclass(frozen=True, eq=False)
class Function:
    """A fused kernel as a function of the same language; interned, so that equal layers share one.

    kind: the pass or rule that made it, such as "add-norm"; params: the `param` nodes in order;
    body: its nodes in program order, params and constants left out; results: what it returns.
    """

    kind: str
    params: tuple[Node, ...]
    body: tuple[Node, ...]
    results: tuple[Value, ...]


_NODES: dict[object, Node] = {}
_FUNCTIONS: dict[object, Function] = {}


def node(
    op: str, operands: Iterable[Value], attrs: Mapping[str, Attr | Function], types: Iterable[Type]
) -> Node:
    """The one node with these parts."""
    made = Node(op, tuple(operands), tuple(sorted(attrs.items())), tuple(types))
    # floats are keyed by repr: -0.0 and 0.0 are different attributes, though they compare equal
    key = (
        op,
        made.operands,
        repr([(k, id(v) if isinstance(v, Function) else v) for k, v in made.attrs]),
        made.types,
    )
    return _NODES.setdefault(key, made)


def leaf(op: str, name: str, type_: Type) -> Value:
    """A weight (a checkpoint tensor's name), input or cache."""
    return node(op, (), {"name": name}, (type_,)).result()


def const(value: int | float, dtype: str) -> Value:
    return node("const", (), {"value": value}, (Type(dtype),)).result()


def param(index: int, type_: Type) -> Node:
    return node("param", (), {"index": index}, (type_,))


def function(
    kind: str, params: Iterable[Node], body: Iterable[Node], results: Iterable[Value]
) -> Function:
    made = Function(kind, tuple(params), tuple(body), tuple(results))
    return _FUNCTIONS.setdefault((kind, made.params, made.body, made.results), made)


def call(fn: Function, operands: Iterable[Value]) -> Node:
    return node("call", operands, {"function": fn}, [v.type for v in fn.results])


LEAVES = ("weight", "input", "cache", "const", "param")


@dataclass(frozen=True, slots=True)
class Frame:
    """One step of an origin's call stack: where in the source, inside which loop index, if any."""

    span: Span
    loop: int | None = None


Origin = tuple[Frame, ...]  # outermost first; the last frame is the statement itself


@dataclass(frozen=True, slots=True)
class Note:
    """What people know of a node: its results' names, the statements it computes, its place."""

    names: tuple[str | None, ...]
    origins: frozenset[Origin] = frozenset()
    rank: float = 0.0


@dataclass(frozen=True)
class Graph:
    """A whole program.

    results: returned values by name, in order (a `.npy` or a dump is called by it).
    effects: final versions of caches and states, kept though nothing reads them.
    notes: the side table; a node without a note is anonymous. Interning ignores it.
    sources: (file, text) of the `.model`s that origins point to.
    """

    results: tuple[tuple[str, Value], ...]
    effects: tuple[Value, ...] = ()
    notes: Mapping[Node, Note] = field(default_factory=dict[Node, Note])
    sources: tuple[tuple[str, str], ...] = ()

    @property
    def roots(self) -> tuple[Value, ...]:
        return (*(v for _, v in self.results), *self.effects)

    def note(self, n: Node) -> Note:
        return self.notes.get(n) or Note((None,) * len(n.types))

    def name(self, value: Value) -> str | None:
        return self.note(value.node).names[value.index]

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, operands first, otherwise in program order (rank)."""
        return self._order

    @cached_property
    def _order(self) -> tuple[Node, ...]:
        return _sort(self.roots, lambda n: self.note(n).rank)

    def uses(self) -> dict[Node, list[Node]]:
        """The readers of each node, in program order; a reader appears once an operand."""
        table: dict[Node, list[Node]] = {n: [] for n in self.nodes()}
        for reader in list(table):
            for operand in reader.operands:
                table[operand.node].append(reader)
        return table

    def with_notes(self, notes: Mapping[Node, Note]) -> Graph:
        return replace(self, notes=notes)

    def replaced(self, new: Mapping[Value, Value], notes: Mapping[Node, Note]) -> Graph:
        """This graph with other values in the place of its results and effects, and other notes."""
        results = tuple((name, new[v]) for name, v in self.results)
        return Graph(results, tuple(new[v] for v in self.effects), notes, self.sources)

    def __str__(self) -> str:
        from compiler.text import print_graph

        return print_graph(self)


def consumers(nodes: Iterable[Node]) -> dict[Value, list[Node]]:
    """Who writes over each cache version: the readers whose results hold a cache again."""
    table: dict[Value, list[Node]] = {}
    for n in nodes:
        if any(t.dtype in CACHES for t in n.types):
            for operand in dict.fromkeys(n.operands):
                if operand.type.dtype in CACHES:
                    table.setdefault(operand, []).append(n)
    return table


def hazards(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """What comes before a node besides its operands: readers of a version that it writes over."""
    nodes = tuple(nodes)
    writers = consumers(nodes)
    table: dict[Node, list[Node]] = {}
    for reader in nodes if writers else ():
        for operand in dict.fromkeys(reader.operands):
            over = writers.get(operand, [])
            for writer in over if reader not in over else ():
                table.setdefault(writer, []).append(reader)
    return table


def _reachable(roots: Iterable[Value]) -> dict[Node, int]:
    """All nodes under the roots and the order in which a walk meets them, readers first."""
    seen: dict[Node, int] = {}
    stack = [v.node for v in reversed(tuple(roots))]
    while stack:
        n = stack.pop()
        if n not in seen:
            seen[n] = len(seen)
            stack.extend(v.node for v in reversed(n.operands))
    return seen


def _sort(roots: Iterable[Value], rank: Callable[[Node], float]) -> tuple[Node, ...]:
    """Kahn's order with the lowest rank first; ties go to the node reached first.

    Readers of a cache version come before the node that writes over it; where they cannot, that is
    left to the verifier to say.
    """
    seen = _reachable(roots)
    order = _kahn(seen, hazards(seen), rank)
    return order if len(order) == len(seen) else _kahn(seen, {}, rank)


def _kahn(
    seen: Mapping[Node, int], later: Mapping[Node, list[Node]], rank: Callable[[Node], float]
) -> tuple[Node, ...]:
    waiting: dict[Node, int] = {}
    readers: dict[Node, list[Node]] = {n: [] for n in seen}
    for n in seen:
        before = {v.node for v in n.operands} | set(later.get(n, ()))
        waiting[n] = len(before)
        for other in before:
            readers[other].append(n)
    ready = [(rank(n), seen[n], n) for n, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order: list[Node] = []
    while ready:
        _, _, n = heapq.heappop(ready)
        order.append(n)
        for reader in readers[n]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heapq.heappush(ready, (rank(reader), seen[reader], reader))
    return tuple(order)


def rebuild(graph: Graph, change: Callable[[Node, tuple[Value, ...]], tuple[Value, ...]]) -> Graph:
    """The graph of what `change(node, new operands)` gives as a node's results, operands first.

    Names, origins and ranks move to the nodes that take a node's place; a survivor keeps its name.
    """
    new: dict[Value, Value] = {}
    notes: dict[Node, Note] = {}
    for old in graph.nodes():
        results = change(old, tuple(new[v] for v in old.operands))
        assert len(results) == len(old.types), old.op
        for index, value in enumerate(results):
            new[Value(old, index)] = value
            move_note(notes, graph.note(old), index, value)
    return graph.replaced(new, notes)


def move_note(notes: dict[Node, Note], old: Note, index: int, value: Value) -> None:
    """Give `value` the name of result `index` of `old` if it has none, its node the origins."""
    have = notes.get(value.node) or Note((None,) * len(value.node.types), frozenset(), old.rank)
    names = list(have.names)
    names[value.index] = names[value.index] or old.names[index]
    notes[value.node] = Note(tuple(names), have.origins | old.origins, have.rank)
