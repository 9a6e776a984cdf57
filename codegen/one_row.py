"""Pairs of launches that a step of one row makes in one: heads, and the attention to them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from codegen import limits
from codegen.kernel import Context
from codegen.kernels import row_attention
from codegen.launching import Launches
from codegen.memory_of import root
from compiler.graph import Graph, Node
from compiler.types import CACHES


def with_one_row(launches: Launches, graph: Graph, context: Context) -> Launches:
    """The same launches, those of attention with what a step of one row launches instead."""
    out = list(launches)
    for at, ((_, before), (launch, node)) in enumerate(pairwise(launches), 1):
        if before is None or node is None or not _feeds_alone(before, node, graph):
            continue
        one = row_attention.plan(before, node, context)
        if one is not None:
            limits.check(node, one, context)
            out[at] = (replace(launch, one=one), node)
    return out


def _feeds_alone(heads: Node, attention: Node, graph: Graph) -> bool:
    """Whether heads make what attention reads, and nobody else reads their values."""
    if heads.op != "call" or heads.function.kind != "head-epilogue":
        return False
    made = {heads.result(i) for i in range(len(heads.types))}
    read = {root(v) for v in attention.operands}
    values = {v for v in made if v.type.dtype not in CACHES}
    if not made <= read:
        return False
    others = (n for n in graph.nodes() if n is not attention)
    kept = {root(v) for _, v in graph.results}
    return not values & kept and all(root(v) not in values for n in others for v in n.operands)
