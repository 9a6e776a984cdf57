"""`combine-residual`: the weighted sum of a row's experts, worked on where it is made.

A thread an output; where groups of 32 outputs are taken, a warp has one.
"""

from __future__ import annotations

from codegen.elements import check_elements, fixed
from codegen.expr import grid_count, is_dynamic, row_count
from codegen.kernel import Context, Grid, Kernel, Launch
from codegen.kernels.arguments import Arguments
from codegen.kernels.output_lines import OutputLines, Place, is_grouped
from compiler.graph import Node

THREADS = 128


def plan(node: Node, context: Context) -> Launch:
    """The launch of a fused combine."""
    body = node.function.body
    combine = next(m for m in body if m.op == "combine")
    parts, share = combine.operands
    made = combine.types[0]
    check_elements("combine-residual", context, parts.type, made)
    picks, n = (fixed(d, "combine-residual") for d in parts.type.shape[1:])
    is_grouped(body, n)
    arguments = Arguments(node, context, {"row", "n"})
    if is_dynamic(parts):
        arguments.step(parts)
    sum_of_picks = f"combined<P, N>({arguments.read(parts)}, {arguments.read(share)}, row, n)"
    place = Place("row", n, {combine: sum_of_picks}, lambda v: f"{arguments.read(v)}[row]")
    work = OutputLines(arguments, place)
    lines = work.text()
    kernel = Kernel(
        "combine_residual.cu.j2",
        "combine_residual",
        ("int P", "int N", "int THREADS"),
        tuple(arguments.params),
        (("rows", row_count(made.shape)), ("lines", lines)),
    )
    return Launch(
        kernel,
        (str(picks), str(n), str(THREADS)),
        tuple(arguments.args),
        Grid(grid_count(made.shape), str(-(-n // THREADS))),
        str(THREADS),
        in_place=tuple(arguments.actual(v) for v in work.first if v not in (parts, share)),
    )
