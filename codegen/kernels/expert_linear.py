"""`expert_linear`: for each pick its expert's whole projection; blocks over (pick, outputs).

A pick that is no expert gives NaN; the reference raises.
"""

from __future__ import annotations

from codegen.elements import check_elements, fixed, step_arg, step_param
from codegen.expr import STRUCTS, grid_count, pointer, row_count
from codegen.kernel import Arg, Context, Grid, Kernel, Launch, Param, Refusal
from codegen.kernels.projection import LinearShape
from compiler.graph import Node

WIDEST = 65536  # inputs, as of linear
GRID_Y = 65535


def plan(node: Node, context: Context) -> Launch:
    x, weight, index = node.operands
    y = node.result()
    check_elements("expert_linear", context, y.type)
    experts, outputs, inputs = (fixed(d, "expert_linear") for d in weight.type.shape)
    shape = LinearShape.of(inputs)
    blocks = -(-outputs // (8 * shape.row_tiles))
    if inputs > WIDEST or blocks > GRID_Y:
        raise Refusal(
            f"expert_linear takes at most {WIDEST} inputs and "
            f"{GRID_Y * 8 * shape.row_tiles} outputs, got {weight.type}"
        )
    sizes = (
        experts,
        outputs,
        inputs,
        shape.row_tiles,
        shape.warps,
        fixed(index.type.shape[1], "expert_linear"),
    )
    kernel = Kernel(
        "expert_linear.cu.j2",
        "expert_linear",
        ("class W", "int E", "int N", "int K", "int ROW_TILES", "int WARPS", "int P"),
        (
            *step_param(y),
            Param(pointer(x.type), "x"),
            Param("const uint8_t*", "experts"),
            Param("const int*", "index"),
            Param("float*", "y"),
        ),
        (("picks", row_count(y.type.shape)), ("row_of_pick", len(x.type.shape) == 2)),
    )
    return Launch(
        kernel,
        (STRUCTS[weight.type.dtype], *map(str, sizes)),
        (
            *step_arg(x),
            Arg("value", x),
            Arg("weight", weight),
            Arg("value", index),
            Arg("value", y, writes=True),
        ),
        Grid(grid_count(y.type.shape), str(blocks)),
        str(32 * shape.warps),
        shape.shared("1"),
    )
