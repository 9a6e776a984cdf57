"""`choose`, and `argmax` over the last axis: the lowest index of a row's greatest value."""

from __future__ import annotations

from codegen.elements import check_elements, reads, step_arg, step_param, volume, writes
from codegen.expr import grid_count, row_count
from codegen.kernel import Arg, Context, Grid, Kernel, Launch
from compiler.graph import Node


def threads_for(width: int) -> int:
    """A power of two, from a warp to a whole block, that leaves a thread about four elements."""
    threads = 32
    while threads < 1024 and threads * 4 < width:
        threads *= 2
    return threads


def plan(node: Node, context: Context) -> Launch:
    return search(node, context, "best.index")


def search(node: Node, context: Context, index: str) -> Launch:
    """The launch that finds the first of each row's greatest; index: what it gives, of `best`."""
    x, y = node.operands[0], node.result()
    check_elements(node.op, context, x.type)
    width = volume(x.type.shape[-1:], node.op)
    threads = threads_for(width)
    kernel = Kernel(
        "choose.cu.j2",
        node.op,
        ("int N", "int THREADS"),
        (*step_param(x), *reads(x=x), *writes(y=y)),
        (
            ("rows", row_count(x.type.shape)),
            ("element", reads(x=x)[0].ctype[6:-1]),
            ("index", index),
        ),
    )
    return Launch(
        kernel,
        (str(width), str(threads)),
        (*step_arg(x), Arg("value", x), Arg("value", y, writes=True)),
        Grid(grid_count(x.type.shape)),
        str(threads),
        "sizeof(BestOfWarps<long long>)",
    )
