"""`append`: each row's entry of a cache, written at its position through the page table."""

from __future__ import annotations

from codegen.elements import (
    THREADS,
    block_count,
    check_elements,
    element_count,
    reads,
    volume,
    writes,
)
from codegen.kernel import Arg, Context, Grid, Kernel, Launch, Param
from compiler.graph import Node


def plan(node: Node, context: Context) -> Launch:
    """NOTE: of two rows with one position any may win; a step never holds such rows."""
    _, x, rows = node.operands
    after = node.result()
    check_elements("append", context, x.type)
    heads, width = after.type.shape
    kernel = Kernel(
        "append.cu.j2",
        "append",
        ("int KV", "int HD"),
        (Param("const Step*", "step"), *reads(x=x), *writes(cache=after)),
        (("count", element_count(x.type.shape)),),
    )
    return Launch(
        kernel,
        (str(volume((heads,), "append")), str(volume((width,), "append"))),
        (Arg("rows", rows), Arg("value", x), Arg("cache", after, writes=True)),
        Grid(block_count(x.type.shape)),
        str(THREADS),
    )
