"""glu: gate and up projections of one activation and what joins them are one kernel, quantized
where that is read.

SwiGLU, GeGLU and their kin: any elementwise ops between two projections of equal size and their
product.
"""

from __future__ import annotations

from compiler.graph import Graph, Node, Value
from compiler.types import GROUP
from passes.context import Context
from passes.outline import Units, outline
from passes.rows import elementwise
from passes.sibling_linear import take_factors


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    for n in units.order:
        if n.op != "mul" or not elementwise(n):
            continue
        found = _members(units, n)
        if found and units.join((*found, *_quantized(units, n.result()))):
            take_factors(units, units.of(n))
    return outline(units, "glu", context)


def _members(units: Units, product: Node) -> list[Node]:
    """The two projections above a product and the ops between; [] where there are not just two."""
    found: dict[Node, None] = {}
    linears: list[Node] = []
    stack = [product]
    while stack:
        n = stack.pop()
        if n in found:
            continue
        found[n] = None
        for v in n.operands:
            if v.node.op == "linear" and _is_part(units, v, product):
                found[v.node] = None
                linears.append(v.node)
            elif elementwise(v.node) and _is_part(units, v, product):
                stack.append(v.node)
    distinct = list(dict.fromkeys(linears))
    return list(found) if len(distinct) == 2 and _are_siblings(*distinct) else []


def _is_part(units: Units, v: Value, product: Node) -> bool:
    """Whether `v` is as large as the product and read on its way to it alone."""
    same = v.type == product.types[0] and v not in units.roots
    return same and len(units.of(v.node)) == 1 and len(v.node.operands) < 3


def _are_siblings(a: Node, b: Node) -> bool:
    return a.operands[0] == b.operands[0] and a.types == b.types


def _quantized(units: Units, v: Value) -> list[Node]:
    """The one quantize that alone reads the product."""
    reader = units.only_reader(v)
    width = v.type.shape[-1]
    fits = reader is not None and reader.op == "quantize" and isinstance(width, int)
    return [reader] if fits and reader is not None and width % GROUP == 0 else []
