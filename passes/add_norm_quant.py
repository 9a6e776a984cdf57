"""add-norm-quant: a sum, its norm and the quantizing of that are one kernel.

The sum stays available. Before norm-quant and add-norm, which would take parts of it.
"""

from __future__ import annotations

from compiler.graph import Graph
from passes.context import Context
from passes.norm_quant import quantized_norms
from passes.outline import Units, outline
from passes.rows import is_sum


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    for x, nodes in quantized_norms(units, context):
        if is_sum(x.node) and len(units.of(x.node)) == 1:
            units.join((x.node, *nodes))
    return outline(units, "add-norm-quant", context)
