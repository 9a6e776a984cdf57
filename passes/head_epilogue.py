"""head-epilogue: what lies between the projections of q, k and v and attention is one kernel.

Heads are normed, turned, rounded and written into their caches by a warp each. Before the passes
over elementwise ops and casts.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.graph import Graph, Node, Value
from compiler.ops import OPS, load
from passes.context import Context
from passes.outline import Units, outline

WITHIN = ("rmsnorm", "layernorm", "l2norm")  # ops within a head


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    for n in units.order:
        if n.op == "attention":
            chains = [_chain(units, v) for v in n.operands[:3]]
            _join(units, [c for c in dict.fromkeys(map(tuple, chains)) if c])
    return outline(units, "head-epilogue", context)


def _join(units: Units, chains: Sequence[Sequence[Node]]) -> None:
    """All chains, or as many as can be one kernel."""
    joined: list[Node] = []
    for chain in chains:
        if _agree([*joined, *chain]) and units.join((*joined, *chain)):
            joined += chain


def _agree(members: Sequence[Node]) -> bool:
    """Whether members are of equal rows and equally wide heads, and turn by the same angles."""
    rows = {n.operands[-1] for n in members if n.op in ("rope", "append")}
    shapes = {(n.types[0].shape[0], n.types[0].shape[-1]) for n in members if n.op != "append"}
    shapes |= {
        (n.operands[1].type.shape[0], n.operands[1].type.shape[-1])
        for n in members
        if n.op == "append"
    }
    turns = {(n.operands[1:], n.attrs) for n in members if n.op == "rope"}
    return len(rows) <= 1 and len(shapes) == 1 and len(turns) <= 1


def _chain(units: Units, v: Value) -> list[Node]:
    """The members whose last one makes `v`, in program order."""
    found: list[Node] = []
    reader: Node | None = None
    while _is_member(v.node) and len(units.of(v.node)) == 1:
        if reader is not None and units.only_reader(v) is not reader:
            break
        reader = v.node
        found.insert(0, reader)
        v = reader.operands[1] if reader.op == "append" else reader.operands[0]
    return found


def _is_member(n: Node) -> bool:
    """Whether a warp that has a head can compute `n`: its first operand is as large."""
    load()
    if n.op == "append":
        return True
    if not n.operands or n.types[0].rank != 3 or n.operands[0].type.shape != n.types[0].shape:
        return False
    if n.op == "rope":
        return True
    if n.op == "cast":
        return n.operands[0].type.dtype == "f32"
    within = n.op in WITHIN or (n.op in OPS and "elementwise" in OPS[n.op].traits)
    whole = n.types[0].shape
    fits = all(v.type.shape in ((), whole, whole[-1:]) for v in n.operands[1:])
    return within and fits and all(v.type.dtype == "f32" for v in (*n.operands, n.result()))
