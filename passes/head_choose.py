"""head-choose: the output projection, what follows it, and a key for each 32 of its logits.

A launch of a block a row looks through the keys for the choice; logits that nobody reads are not
stored. Before the passes that would take the projection.

The last block to arrive could choose as well; of 4,748 blocks each would wait for its atomic, which
costs about what the launch of that small kernel does, and would need memory that outlives a step.
"""

from __future__ import annotations

from compiler.graph import Graph
from passes.context import Context
from passes.outline import Units, outline
from passes.rows import projection_of
from passes.sibling_linear import take_factors


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    for n in units.order:
        if n.op == "choice_keys" and units.join((n, *projection_of(n.operands[0]))):
            take_factors(units, units.of(n))
    return outline(units, "head-choose", context)
