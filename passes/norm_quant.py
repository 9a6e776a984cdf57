"""norm-quant: a norm and the quantizing of it are one kernel.

In programs of quantized numerics a norm is `quantize(x * w)` and `square_sums(x)`; where its value
itself is read it is a norm as written, and its quantized form beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler.graph import Graph, Node, Value
from passes.context import Context
from passes.outline import Units, outline
from passes.rows import NORMS, row_fits


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    for _, nodes in quantized_norms(units, context):
        units.join(nodes)
    return outline(units, "norm-quant", context)


def quantized_norms(units: Units, context: Context) -> Iterator[tuple[Value, tuple[Node, ...]]]:
    """What is normed, and the nodes of its norm and quantize, each node at most once."""
    taken: set[Node] = set()
    for n in units.order:
        if n.op != "quantize" or not row_fits(n.types[0], context.target):
            continue
        found = _norm_of(units, n)
        if found is not None and taken.isdisjoint(found[1]):
            taken.update(found[1])
            yield found


def _norm_of(units: Units, quantize: Node) -> tuple[Value, tuple[Node, ...]] | None:
    (v,) = quantize.operands
    if v.node.op in NORMS:
        return v.node.operands[0], (v.node, quantize)
    if factors := _factors(units, v):
        return v, (quantize, *factors)
    if v.node.op != "mul" or v.node.operands[1].type.shape != v.type.shape[-1:]:
        return None
    x = v.node.operands[0]
    factors = _factors(units, x)
    return (x, (v.node, quantize, *factors)) if factors else None


def _factors(units: Units, x: Value) -> list[Node]:
    return [n for n in units.readers(x) if n.op == "square_sums"]
