"""`wanted`: the rows whose results the step wants, gathered."""

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
    x, rows = node.operands
    y = node.result()
    check_elements("wanted", context, x.type)
    kernel = Kernel(
        "wanted.cu.j2",
        "wanted_rows",
        ("int N",),
        (Param("const Step*", "step"), *reads(x=x), *writes(y=y)),
        (("count", element_count(y.type.shape)),),
    )
    return Launch(
        kernel,
        (str(volume(x.type.shape[1:], "wanted")),),
        (Arg("rows", rows), Arg("value", x), Arg("value", y, writes=True)),
        Grid(block_count(y.type.shape)),
        str(THREADS),
    )
