"""add-norm: a sum and the norms around it are one kernel, storing the sum too where others read it.

A norm of the sum, and a norm of an addend (a sandwich norm), which makes a kernel by itself too.
"""

from __future__ import annotations

from compiler.graph import Graph
from passes.context import Context
from passes.outline import Units, outline
from passes.rows import NORMS, is_sum, normed_addends, row_fits


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    for n in units.order:
        if n.op in NORMS and row_fits(n.types[0], context.target):
            add = n.operands[0].node
            if is_sum(add) and len(units.of(add)) == 1:
                units.join((add, n))
    for n in units.order:
        if is_sum(n):
            units.join((n, *normed_addends(units, n, context.target)))
    return outline(units, "add-norm", context)
