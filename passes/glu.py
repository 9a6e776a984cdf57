"""glu: gate and up projections of one activation and what joins them are one kernel, quantized
where that is read.

SwiGLU, GeGLU and their kin: any elementwise ops between two projections of equal size and their
product.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler.graph import Graph, Node, Value
from compiler.types import GROUP, Dim
from passes.context import Context
from passes.outline import Units, outline
from passes.rows import elementwise
from passes.sibling_linear import take_factors


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    join_gated(units, "linear", elementwise)
    return outline(units, "glu", context)


def join_gated(units: Units, projection: str, joins: Callable[[Node], bool]) -> None:
    """Units of two projections (ops of that name), what `joins` between, and a quantize behind."""
    for n in units.order:
        if n.op != "mul" or not joins(n):
            continue
        found = _members(units, n, projection, joins)
        if found and units.join((*found, *_quantized(units, n.result()))):
            take_factors(units, units.of(n), _factor_shape(found[-1]))


def _members(
    units: Units, product: Node, projection: str, joins: Callable[[Node], bool]
) -> list[Node]:
    """The two projections above a product and the ops between; [] where there are not just two."""
    found: dict[Node, None] = {}
    projections: dict[Node, None] = {}
    stack = [product]
    while stack:
        n = stack.pop()
        if n in found:
            continue
        found[n] = None
        for v in n.operands:
            if not _is_part(units, v, product):
                continue
            if v.node.op == projection:
                projections[v.node] = None
            elif joins(v.node):
                stack.append(v.node)
    both = list(projections)
    return [*found, *both] if len(both) == 2 and _are_siblings(*both) else []


def _is_part(units: Units, v: Value, product: Node) -> bool:
    """Whether `v` is as large as the product and free to join it."""
    return v.type == product.types[0] and v not in units.roots and len(units.of(v.node)) == 1


def _are_siblings(a: Node, b: Node) -> bool:
    """Whether they differ in their weights alone, and have no biases."""
    others = [(n.operands[0], *n.operands[2:]) for n in (a, b)]
    biased = a.op == "linear" and len(others[0]) > 1
    return others[0] == others[1] and a.types == b.types and not biased


def _factor_shape(projection: Node) -> tuple[Dim, ...]:
    """Of one value for each row of the activation."""
    x, y = projection.operands[0].type, projection.types[0]
    return (*x.shape[:-1], *(1,) * (y.rank - x.rank), 1)


def _quantized(units: Units, v: Value) -> list[Node]:
    """The one quantize that alone reads the product."""
    reader = units.only_reader(v)
    width = v.type.shape[-1]
    fits = reader is not None and reader.op == "quantize" and isinstance(width, int)
    return [reader] if fits and reader is not None and width % GROUP == 0 else []
