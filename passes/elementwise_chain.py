"""elementwise-chain: a straight run of elementwise ops over one shape of rows is one kernel."""

from __future__ import annotations

from compiler.graph import Graph, Node
from passes.context import Context
from passes.outline import Units, outline
from passes.rows import LAST, elementwise


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    for n in units.order:
        if len(units.of(n)) == 1:
            units.join(_chain(units, n))
    return outline(units, "elementwise-chain", context)


def _chain(units: Units, first: Node) -> list[Node]:
    """`first` and the run that starts with it: each member is read by the next alone."""
    chain = [first]
    while elementwise(chain[-1]) and chain[-1].op not in LAST:
        reader = units.only_reader(chain[-1].result())
        if reader is None or not elementwise(reader):
            break
        if reader.types[0].shape != first.types[0].shape:
            break
        chain.append(reader)
    return chain
