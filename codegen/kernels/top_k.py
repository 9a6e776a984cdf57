"""`top_k`: the k greatest of a row, one after another, a block a row; quick for experts."""

from __future__ import annotations

from codegen.elements import check_elements, integer, reads, step_arg, step_param, volume, writes
from codegen.expr import grid_count, row_count
from codegen.kernel import Arg, Context, Grid, Kernel, Launch, Refusal
from compiler.graph import Node

WARP_WIDTH = 1024  # up to here a warp alone is quicker than a block with its barriers
MOST = 1024


def plan(node: Node, context: Context) -> Launch:
    x, values, indices = node.operands[0], node.result(0), node.result(1)
    check_elements("top_k", context, x.type, values.type)
    width, k = volume(x.type.shape[-1:], "top_k"), integer(node, "k")
    if k > MOST:
        raise Refusal(f"top_k picks at most {MOST}, got k={k}")
    threads = 32 if width <= WARP_WIDTH else 1024
    kernel = Kernel(
        "top_k.cu.j2",
        "top_k",
        ("int N", "int K", "int THREADS"),
        (*step_param(x), *reads(x=x), *writes(values=values, indices=indices)),
        (("rows", row_count(x.type.shape)),),
    )
    return Launch(
        kernel,
        (str(width), str(k), str(threads)),
        (
            *step_arg(x),
            Arg("value", x),
            Arg("value", values, writes=True),
            Arg("value", indices, writes=True),
        ),
        Grid(grid_count(x.type.shape)),
        str(threads),
        "sizeof(BestOfWarps<float>)",
    )
