"""expert-glu: what `glu` is, of picked experts: two projections of a value by the same picks.

Of a normed row the factor is one for all of its picks, [T, 1, 1].
"""

from __future__ import annotations

from compiler.graph import Graph, Node
from passes.context import Context
from passes.glu import join_gated
from passes.outline import Units, outline
from passes.rows import elementwise


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    join_gated(units, "expert_linear", _joins)
    return outline(units, "expert-glu", context)


def _joins(n: Node) -> bool:
    return elementwise(n) or _scales_rows(n)


def _scales_rows(n: Node) -> bool:
    """Whether `n` multiplies y[T, P, N] by a factor [T, 1, 1]."""
    if n.op != "mul" or n.types[0].rank != 3:
        return False
    factor = (n.types[0].shape[0], 1, 1)
    return sorted(v.type.shape == factor for v in n.operands) == [False, True]
