"""`head-epilogue`: heads of q, k and v from their projections to where attention reads them.

Without projections in the body a warp has a head; with them see head_projections.py.
"""

from __future__ import annotations

from codegen.elements import check_elements
from codegen.expr import grid_count, row_count
from codegen.kernel import Context, Grid, Kernel, Launch
from codegen.kernels.arguments import Arguments
from codegen.kernels.heads import (
    angles_of,
    branches,
    each,
    head_width,
    in_memory,
    subject,
    write_lines,
)
from compiler.graph import Node

WARPS = 4  # of a block: so many heads of a row share its angles
NAMES = {"s", "at", "head", "warp", "pos", "page", "entry"}


def plan(node: Node, context: Context) -> Launch:
    """The launch of a `head-epilogue` call."""
    to = Arguments(node, context, set(NAMES))
    members = list(to.members)
    first = subject(members[0])
    rows = next((m.operands[-1] for m in members if m.op in ("append", "rope")), first)
    check_elements("head-epilogue", context, *(subject(m).type for m in members))
    to.step(rows)
    width, angles = head_width(members), angles_of(to, members)
    parts = branches(to, members)
    for number, branch in enumerate(parts):
        value = subject(branch.members[0])
        source = to.read(value, to.called(value))
        branch.lines.append(each(f"{branch.name}[i] = {source}[at + d];"))
        write_lines(to, branch, "s.exchange[warp]", in_memory(to, f"H{number}"))
    kernel = Kernel(
        "heads.cu.j2",
        "heads",
        ("int HD", "int WARPS", *(f"int H{i}" for i in range(len(parts)))),
        tuple(to.params),
        (
            ("rows", row_count((*first.type.shape[:1], 1))),
            ("angles", angles),
            ("appends", any(m.op == "append" for m in members)),
            ("branches", tuple((b.name, tuple(b.lines)) for b in parts)),
        ),
    )
    shared = f"sizeof(HeadsShared<{width}, {angles.pairs}, {WARPS}>)" if angles else "0"
    return Launch(
        kernel,
        (str(width), str(WARPS), *(str(b.heads) for b in parts)),
        tuple(to.args),
        Grid(
            grid_count((*first.type.shape[:1], 1)),
            str(-(-sum(b.heads for b in parts) // WARPS)),
        ),
        str(32 * WARPS),
        shared,
    )
