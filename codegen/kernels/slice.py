"""`slice`: a stretch of one axis, copied."""

from __future__ import annotations

from codegen.elements import element_launch, integer, volume
from codegen.kernel import Context, Launch
from compiler.graph import Node


def plan(node: Node, context: Context) -> Launch:
    """Of every run of IN elements (the axis and what is inside it), y gets OUT from FIRST on."""
    shape = node.operands[0].type.shape
    axis = integer(node, "axis") % len(shape)
    inside = volume(shape[axis + 1 :], "slice")
    start, stop = integer(node, "start"), integer(node, "stop")
    sizes = {
        "IN": volume(shape[axis:], "slice"),
        "OUT": (stop - start) * inside,
        "FIRST": start * inside,
    }
    return element_launch(node, context, "slice.cu.j2", ("x",), sizes)
