"""`transpose`: a copy with two axes exchanged."""

from __future__ import annotations

from codegen.elements import element_launch, integer, volume
from codegen.kernel import Context, Launch
from compiler.graph import Node


def plan(node: Node, context: Context) -> Launch:
    """x[.., I, B, J, C] -> y[.., J, B, I, C]; axes before I are the same in both."""
    shape = node.operands[0].type.shape
    axes = [axis % len(shape) for axis in (integer(node, "i"), integer(node, "j"))]
    first, second = min(axes), max(axes)
    if first == second:
        sizes = {"I": 1, "B": 1, "J": 1, "C": 1}
    else:
        sizes = {
            "I": volume(shape[first : first + 1], "transpose"),
            "B": volume(shape[first + 1 : second], "transpose"),
            "J": volume(shape[second : second + 1], "transpose"),
            "C": volume(shape[second + 1 :], "transpose"),
        }
    return element_launch(node, context, "transpose.cu.j2", ("x",), sizes)
