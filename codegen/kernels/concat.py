"""`concat`: values one after another along an axis."""

from __future__ import annotations

from codegen.elements import element_launch, integer, volume
from codegen.kernel import Context, Launch, Refusal
from compiler.graph import Node

INPUTS = 64  # a kernel's parameters are limited


def plan(node: Node, context: Context) -> Launch:
    """Of every run of y (the axis and what is inside it), x0 gives the first N0 elements..."""
    if len(node.operands) > INPUTS:
        raise Refusal(f"concat takes at most {INPUTS} values, got {len(node.operands)}")
    rank = len(node.operands[0].type.shape)
    axis = integer(node, "axis") % rank
    names = tuple(f"x{i}" for i in range(len(node.operands)))
    sizes = {f"N{i}": volume(v.type.shape[axis:], "concat") for i, v in enumerate(node.operands)}
    return element_launch(node, context, "concat.cu.j2", names, sizes, inputs=tuple(sizes))
