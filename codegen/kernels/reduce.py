"""Reductions over an axis that is not the last: one thread goes down each column."""

from __future__ import annotations

from codegen.elements import element_launch, integer, volume
from codegen.kernel import Context, Launch
from codegen.kernels import row
from compiler.graph import Node

RESULT = {
    "sum": "column_sum<N>(column, C)",
    "mean": "column_sum<N>(column, C) / float(N)",
    "max": "column_max<N>(column, C)",
    "argmax": "column_argmax<N>(column, C)",
}


def is_last_axis(node: Node) -> bool:
    rank = len(node.operands[0].type.shape)
    return integer(node, "axis") % rank == rank - 1


def plan_columns(node: Node, context: Context) -> Launch:
    """x[.., N, C] -> y[.., C]."""
    shape = node.operands[0].type.shape
    axis = integer(node, "axis") % len(shape)
    sizes = {
        "N": volume(shape[axis : axis + 1], node.op),
        "C": volume(shape[axis + 1 :], node.op),
    }
    result = RESULT[node.op]
    return element_launch(node, context, "reduce.cu.j2", ("x",), sizes, result=result)


def plan(node: Node, context: Context) -> Launch:
    """Of `sum`, `mean` and `max`: within rows where the axis is the last."""
    return row.plan(node, context) if is_last_axis(node) else plan_columns(node, context)
