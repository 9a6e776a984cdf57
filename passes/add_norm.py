"""add-norm: a sum and the norm of it are one kernel, storing the sum too where others read it."""

from __future__ import annotations

from compiler.graph import Graph
from passes.context import Context
from passes.outline import Units, outline
from passes.rows import NORMS, is_sum, row_fits


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    for n in units.order:
        if n.op not in NORMS or not row_fits(n.types[0], context.target):
            continue
        add = n.operands[0].node
        if is_sum(add) and len(units.of(add)) == 1:
            units.join((add, n))
    return outline(units, "add-norm", context)
