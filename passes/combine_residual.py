"""combine-residual: the sum of a row's experts, what it is added to, and the next norm by groups.

What goes on with each value by itself follows, then, as in linear-residual, the product with the
next norm's weight is quantized and the squares are summed, both for 32 values at a time.
"""

from __future__ import annotations

from compiler.graph import Graph, Node, Value
from passes.context import Context
from passes.linear_residual import norm_by_groups
from passes.outline import Units, outline
from passes.rows import elementwise


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    for n in units.order:
        if n.op != "combine":
            continue
        at = n.result()
        while (reader := units.only_reader(at)) is not None and _continues(units, reader, at):
            if not units.join((n, reader)):
                break
            at = reader.result()
        units.join((n, *norm_by_groups(units, at)))
    return outline(units, "combine-residual", context)


def _continues(units: Units, n: Node, at: Value) -> bool:
    """Whether `n` goes on with each value by itself, in f32, and is free."""
    all_f32 = all(v.type.dtype == "f32" for v in n.operands)
    return elementwise(n) and all_f32 and n.types == (at.type,) and len(units.of(n)) == 1
