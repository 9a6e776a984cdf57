"""elementwise-region: a graph of elementwise ops over one shape of rows is one kernel.

It grows greedily along its edges; members that others read are stored too. A straight run is left
to elementwise-chain.
"""

from __future__ import annotations

from collections.abc import Set
from itertools import pairwise

from compiler.graph import Graph, Node
from passes.context import Context
from passes.outline import Units, outline
from passes.rows import LAST, elementwise


def run(graph: Graph, context: Context) -> Graph:
    grown = Units(graph)
    for n in grown.order:
        for v in n.operands if elementwise(n) else ():
            if elementwise(v.node) and v.node.op not in LAST and v.type.shape == n.types[0].shape:
                grown.join((v.node, n))
    units = Units(graph)
    for unit in grown.fused():
        if not _is_chain(units, unit):
            units.join(unit)
    return outline(units, "elementwise-region", context)


def _is_chain(units: Units, unit: Set[Node]) -> bool:
    """Whether each member but the last is read by the next member alone."""
    members = sorted(unit, key=units.order.__getitem__)
    return all(units.only_reader(n.result()) is reader for n, reader in pairwise(members))
