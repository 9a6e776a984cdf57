"""`attention`: a block for each row and head; each of its warps takes a page of 64 positions.

The pages are folded in order, a round of warps at a time, so that the context has no limit. Of a
single row several blocks share each head's pages, and the last to arrive folds.
"""

from __future__ import annotations

from codegen.elements import check_elements, fixed, integer, reads, real, writes
from codegen.expr import float_literal, grid_count, row_count
from codegen.kernel import Arg, Context, Grid, Kernel, Launch, Param, Refusal
from compiler.graph import Node
from compiler.ops.attention import scale_of
from compiler.types import ROWS, Dim

WIDEST = 256  # of a head: a thread of the smallest block owns a column of the result
GRID_Y = 65535
WARPS = 8
MOST_SPLITS = 16


def plan(node: Node, context: Context) -> Launch:
    if len(node.operands) != 4 or node.attr("softcap"):
        raise Refusal("attention has no kernel for sinks or softcap")
    q, k, v, rows = node.operands
    y = node.result()
    check_elements("attention", context, q.type)
    heads, width = (fixed(d, "attention") for d in q.type.shape[1:])
    groups = fixed(k.type.shape[0], "attention")
    need = shared_bytes(width)
    if width > WIDEST or heads > GRID_Y or need > context.target.shared_bytes:
        raise Refusal(
            f"attention takes heads of at most {WIDEST} dims and {GRID_Y} heads, got {q.type}"
        )
    ctype = reads(k=k)[0].ctype.removeprefix("const ").removesuffix("*")
    kernel = Kernel(
        "attention.cu.j2",
        "attention",
        ("int H", "int KV", "int HD", "int WINDOW", "int WARPS", "int SPLITS"),
        (Param("const Step*", "step"), *reads(q=q, k=k, v=v), *writes(y=y)),
        (
            ("rows", row_count((*q.type.shape[:1], 1))),
            ("element", ctype),
            ("scale", float_literal(scale_of(real(node, "scale"), width))),
        ),
    )
    splits = _splits(q.type.shape[0], splits_of(heads, context.target.sms))
    sizes = (heads, groups, width, integer(node, "window"), WARPS, splits)
    return Launch(
        kernel,
        tuple(map(str, sizes)),
        (
            Arg("rows", rows),
            Arg("value", q),
            Arg("cache", k),
            Arg("cache", v),
            Arg("value", y, writes=True),
        ),
        Grid(grid_count((*q.type.shape[:1], 1)), str(heads), splits),
        str(32 * WARPS),
        f"sizeof(AttentionShared<{ctype}, {width}, {WARPS}>)",
    )


def splits_of(heads: int, sms: int) -> int:
    """Blocks that share the pages of a single row's head: a power of two that fills the device."""
    splits = 1
    while splits < MOST_SPLITS and splits * heads < sms:
        splits *= 2
    return splits


def _splits(rows: Dim, splits: int) -> str:
    """Only a step of one row has too few blocks; a form's row group tells."""
    if rows == ROWS and splits > 1:
        return f"1 + {splits - 1} * (ROWS == 1)"
    return str(splits) if rows == 1 else "1"


def shared_bytes(width: int) -> int:
    """What AttentionShared takes, at most."""
    padded = -(-width // 32) * 32
    page = 64 * 80 + 64 * 4  # PageScratch
    return 4 * padded + WARPS * (page + 2 * (4 * width + 8)) + 8 * padded + 64
