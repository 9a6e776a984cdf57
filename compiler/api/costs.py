"""What a launch costs by its ops' records, and which statements of the program that is for.

Bytes are computed, not measured: what a kernel reads twice counts once. positions: of its sequence
that the last row of a step sees; a cache is read up to there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

from codegen.memory_of import root
from codegen.plan import Planned
from codegen.source_lines import Place, placed_lines
from compiler import ops
from compiler.graph import LEAVES, Graph, Node, Value
from compiler.pipeline import Compiled
from compiler.types import CACHES, Type, nbytes
from passes.inline import inlined
from passes.saving import moved


def bytes_of(p: Planned, rows: int, positions: int = 1) -> int:
    """Bytes read and written; of a repack its arguments."""
    if not p.nodes:
        return sum(nbytes(arg.value.type, rows, 1) for arg in p.launch.args)
    total = sum(moved(n, rows) + _entries(n, positions) for n in p.nodes)
    return total - sum(2 * nbytes(v.type, rows, 1) for v in _handed(p.nodes))


def operations_of(p: Planned, rows: int, positions: int = 1) -> int:
    """Operations, as the ops' records count them."""
    seen = max(1, positions - (rows - 1) // 2)  # by a row of the step, on average
    return sum(_operations(m, rows, _seen(m, seen)) for n in p.nodes for m in members(n))


def weights_read(graph: Graph) -> int:
    """Bytes of weights that a step of one row reads: of a table its row, of experts the picked."""
    return sum(_weights_read(n) for n in graph.nodes() if n.op not in (*LEAVES, "call"))


def _weights_read(n: Node) -> int:
    """What its record counts for operands that are weights."""
    others = [v.type for v in n.operands if root(v).node.op != "weight"]
    if len(others) == len(n.operands):
        return 0
    ins, outs = ([_sized(t, 1) for t in types] for types in _types(n))
    apart = sum(nbytes(_sized(t, 1)) for t in others) + sum(map(nbytes, outs))
    return ops.get(n.op).bytes(ins, outs) - apart


def caches_read(graph: Graph, *positions: int) -> int:
    """Bytes of caches that steps of one row read, one for each number of positions that it sees."""
    all_ = [m for n in graph.nodes() for m in members(n)]
    readers = [(m, _entry(m)) for m in all_ if not any(t.dtype in CACHES for t in m.types)]
    return sum(_seen(m, p) * entry for m, entry in readers if entry for p in positions)


def members(n: Node) -> Sequence[Node]:
    """The ops of a node: of a fused call all that it holds."""
    return n.function.body if n.op == "call" else (n,)


def _operations(n: Node, rows: int, seen: int) -> int:
    ins, outs = ([_sized(t, rows) for t in types] for types in _types(n))
    return ops.get(n.op).flops(ins, outs) * seen


def _types(n: Node) -> tuple[list[Type], tuple[Type, ...]]:
    return [v.type for v in n.operands], n.types


def _sized(type_: Type, rows: int) -> Type:
    counts = {"T": rows, "R": 1}
    return type_.with_shape(*(counts.get(d, d) if isinstance(d, str) else d for d in type_.shape))


def _handed(nodes: Sequence[Node]) -> Iterator[Value]:
    """What the first of a pair hands to the second: in one launch it is not stored."""
    for first, second in pairwise(nodes):
        read = {root(v) for v in second.operands}
        made = map(first.result, range(len(first.types)))
        yield from (v for v in made if v in read and v.type.dtype not in CACHES)


def _seen(n: Node, positions: int) -> int:
    """Positions of a cache that an op reads: 1 for those that read none, or write an entry."""
    writes = any(t.dtype in CACHES for t in n.types)
    if writes or not any(v.type.dtype in CACHES for v in n.operands):
        return 1
    window = dict(n.attrs).get("window")
    return min(positions, window) if isinstance(window, int) and window else positions


def _entries(n: Node, positions: int) -> int:
    """Bytes of a cache's entries behind the one that an op's record counts."""
    return sum((_seen(m, positions) - 1) * _entry(m) for m in members(n))


def _entry(n: Node) -> int:
    """Bytes of a position in the caches that an op is given."""
    return sum(nbytes(v.type) for v in n.operands if v.type.dtype in CACHES)


class Statements:
    """Which statements a launch computes, and how much of it is each one's: by the bytes that
    their ops would move if each were a launch of its own."""

    def __init__(self, made: Compiled) -> None:
        self.made = made
        self.inlined = inlined(made.program.graph)

    @cached_property
    def graph(self) -> Graph:
        return self.made.lowered.graph

    def shares(self, p: Planned, rows: int, positions: int) -> dict[Place, tuple[str, float]]:
        """The text of each statement by its place, and its part of the launch; they add up to 1."""
        weights: dict[Place, float] = {}
        texts: dict[Place, str] = {}
        for n in (m for node in p.nodes for m in self._apart(node)):
            if found := self._line(n):
                place, texts[found[0]] = found
                need = moved(n, rows) + _entries(n, positions)
                weights[place] = weights.get(place, 0.0) + need
        if not texts:
            texts = placed_lines(self.made.plan.graph, p.nodes)
        total = sum(weights.values())
        even = 1 / max(1, len(texts))
        return {at: (t, weights[at] / total if total else even) for at, t in texts.items()}

    def _line(self, n: Node) -> tuple[Place, str] | None:
        """The statement that an op is of: of several the last, which ends it (a projection of what
        a norm gives is the projection's), of a prelude's function the one that calls it."""
        found = placed_lines(self.graph, [n]) if n in self.graph.notes else {}
        own = {at: text for at, text in found.items() if at[0] == 0}
        return max((own or found).items(), default=None)

    def _apart(self, n: Node) -> Iterator[Node]:
        """The ops of a node as they were before any fusion."""
        known = {self.inlined[v].node for v in n.operands}
        ends = [self.inlined[n.result(i)].node for i in range(len(n.types))]
        seen: set[Node] = set()
        while ends:
            at = ends.pop()
            if at in seen or at in known or at.op in LEAVES:
                continue
            seen.add(at)
            yield at
            ends += [v.node for v in at.operands]
