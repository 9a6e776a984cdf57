"""`embed`: a row of a table of any weight format for each token, a thread an element.

A token outside of the table gives NaN: the driver refuses it before, and the reference raises.
"""

from __future__ import annotations

from codegen.elements import element_launch, volume
from codegen.expr import STRUCTS
from codegen.kernel import Context, Launch
from compiler.graph import Node


def plan(node: Node, context: Context) -> Launch:
    table = node.operands[1]
    sizes: dict[str, int | str] = {
        "W": STRUCTS[table.type.dtype],
        "V": volume(table.type.shape[:1], "embed"),
        "D": volume(table.type.shape[1:], "embed"),
    }
    names = ("token", "table")
    return element_launch(node, context, "embed.cu.j2", names, sizes, tiles=("table",))
