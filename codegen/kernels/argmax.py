"""`argmax` over an axis: a block a row for the last one, else a thread a column."""

from __future__ import annotations

from codegen.kernel import Context, Launch
from codegen.kernels import choose, reduce
from compiler.graph import Node


def plan(node: Node, context: Context) -> Launch:
    if reduce.is_last_axis(node):
        return choose.plan(node, context)
    return reduce.plan_columns(node, context)
