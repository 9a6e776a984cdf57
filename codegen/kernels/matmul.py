"""`matmul`: products of matrices of activations, a block for 16 x 16 results."""

from __future__ import annotations

from codegen.elements import check_elements, fixed, reads, step_arg, step_param, writes
from codegen.expr import grid_count, row_count
from codegen.kernel import Arg, Context, Grid, Kernel, Launch, Refusal
from compiler.graph import Node
from compiler.types import DYNAMIC, Dim

SIDE = 16  # of a block's square of results
GRID_Z = GRID_Y = 65535


def plan(node: Node, context: Context) -> Launch:
    """a[B, M, K] times b[B or 1, K, N]; where b has two axes, all rows of a are one matrix."""
    a, b = node.operands
    y = node.result()
    check_elements("matmul", context, a.type, b.type, y.type)
    inner, width = (fixed(d, "matmul") for d in b.type.shape[-2:])
    batch, rows = _cut(a.type.shape, len(b.type.shape))
    if any(d in DYNAMIC for d in batch) and context.options.max_rows > GRID_Z:
        raise Refusal(
            f"matmul takes at most {GRID_Z} matrices, got {context.options.max_rows} rows"
        )
    blocks = -(-width // SIDE)
    if blocks > GRID_Y:
        raise Refusal(f"matmul takes at most {GRID_Y * SIDE} columns, got {b.type}")
    element = reads(a=a)[0].ctype.removeprefix("const ").removesuffix("*")
    kernel = Kernel(
        "matmul.cu.j2",
        "matmul",
        ("int N", "int K"),
        (*step_param(y), *reads(a=a, b=b), *writes(y=y)),
        (
            ("rows", row_count((*rows, 1))),
            ("matrices", row_count((*batch, 1))),
            ("element", element),
        ),
    )
    return Launch(
        kernel,
        (str(width), str(inner)),
        (*step_arg(a), Arg("value", a), Arg("value", b), Arg("value", y, writes=True)),
        Grid(f"ceil_div({grid_count((*rows, 1))}, {SIDE})", str(blocks), grid_count((*batch, 1))),
        str(SIDE * SIDE),
        f"sizeof(MatmulTiles<{element}>)",
    )


def _cut(shape: tuple[Dim, ...], rank: int) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """The leading axes of a that count matrices, and those that count rows of one."""
    if rank == 2:
        return (), shape[:-1]
    return shape[:-2], shape[-2:-1]
