"""`combine`: the weighted sum of a row's experts, in the order of its picks."""

from __future__ import annotations

from codegen.elements import element_launch, volume
from codegen.kernel import Context, Launch
from compiler.graph import Node


def plan(node: Node, context: Context) -> Launch:
    _, picks, width = node.operands[0].type.shape
    sizes = {"P": volume((picks,), "combine"), "N": volume((width,), "combine")}
    return element_launch(node, context, "combine.cu.j2", ("x", "weight"), sizes)
