"""`attention`: a block for each row and head; each of its warps takes a page of 64 positions.

The pages are folded in order, a round of warps at a time, so that the context has no limit.
"""

from __future__ import annotations

from codegen.elements import check_elements, fixed, integer, reads, real, writes
from codegen.expr import float_literal, grid_count, row_count
from codegen.kernel import Arg, Context, Grid, Kernel, Launch, Param, Refusal
from compiler.graph import Node
from compiler.ops.attention import scale_of
from compiler.types import ELEMENT_BYTES

WIDEST = 256  # of a head: a thread of the smallest block owns a column of the result
GRID_Y = 65535
WARPS = "(8 + 8 * (ROWS == 1))"  # a single row has few blocks, so these are larger
MOST_WARPS = 16


def plan(node: Node, context: Context) -> Launch:
    if len(node.operands) != 4 or node.attr("softcap"):
        raise Refusal("attention has no kernel for sinks or softcap")
    q, k, v, rows = node.operands
    y = node.result()
    check_elements("attention", context, q.type)
    heads, width = (fixed(d, "attention") for d in q.type.shape[1:])
    groups = fixed(k.type.shape[0], "attention")
    element = k.type.dtype.removeprefix("cache_")
    need = shared_bytes(width, ELEMENT_BYTES[element], MOST_WARPS)
    if width > WIDEST or heads > GRID_Y or need > context.target.shared_bytes:
        raise Refusal(
            f"attention takes heads of at most {WIDEST} dims and {GRID_Y} heads, got {q.type}"
        )
    warps = WARPS if q.type.is_dynamic else "8"
    ctype = reads(k=k)[0].ctype.removeprefix("const ").removesuffix("*")
    kernel = Kernel(
        "attention.cu.j2",
        "attention",
        ("int H", "int KV", "int HD", "int WINDOW", "int WARPS"),
        (Param("const Step*", "step"), *reads(q=q, k=k, v=v), *writes(y=y)),
        (
            ("rows", row_count((*q.type.shape[:1], 1))),
            ("element", ctype),
            ("scale", float_literal(scale_of(real(node, "scale"), width))),
        ),
    )
    return Launch(
        kernel,
        tuple(map(str, (heads, groups, width, integer(node, "window"), warps))),
        (
            Arg("rows", rows),
            Arg("value", q),
            Arg("cache", k),
            Arg("cache", v),
            Arg("value", y, writes=True),
        ),
        Grid(grid_count((*q.type.shape[:1], 1)), str(heads)),
        f"32 * {warps}",
        f"sizeof(AttentionShared<{ctype}, {width}, {warps}>)",
    )


def shared_bytes(width: int, element: int, warps: int) -> int:
    """What AttentionShared takes, at most."""
    padded = -(-width // 32) * 32
    page = 64 * 80 + 64 * 4
    return 4 * padded + warps * (page + 2 * (4 * width + 8) + padded // 4) + 64
