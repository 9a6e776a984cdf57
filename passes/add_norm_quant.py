"""add-norm-quant: a sum, its norm and the quantizing of that are one kernel.

The sum stays available; the norm of an addend (a sandwich norm) joins. Before norm-quant and
add-norm, which would take parts of it.
"""

from __future__ import annotations

from compiler.graph import Graph
from passes.context import Context
from passes.norm_quant import quantized_norms
from passes.outline import Units, outline
from passes.rows import is_sum, normed_addends


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    for x, nodes in quantized_norms(units, context):
        if is_sum(x.node) and len(units.of(x.node)) == 1:
            units.join((x.node, *nodes))
            units.join((x.node, *normed_addends(units, x.node, context.target)))
    return outline(units, "add-norm-quant", context)
