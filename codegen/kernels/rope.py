"""`rope`: rotary position embedding, a block a row, whose angles serve all heads."""

from __future__ import annotations

from codegen.elements import check_elements, fixed, integer, reads, real, volume, writes
from codegen.expr import grid_count, row_count
from codegen.kernel import Arg, Context, Grid, Kernel, Launch, Param, Refusal
from compiler.graph import Node
from compiler.ops.rope import inverse_frequencies

PAIRS = (
    512  # of a head: their sines and cosines are in shared memory, their frequencies in the text
)
THREADS = 256


def plan(node: Node, context: Context) -> Launch:
    x, *freqs, rows = node.operands
    y = node.result()
    check_elements("rope", context, x.type)
    width = fixed(x.type.shape[-1], "rope")
    dims = integer(node, "dims") or width
    if dims // 2 > PAIRS:
        raise Refusal(f"rope turns at most {2 * PAIRS} dims of a head, got {dims}")
    frequencies = inverse_frequencies(real(node, "theta"), dims, real(node, "factor"))
    inputs = {"x": x, **({"freqs": freqs[0]} if freqs else {})}
    kernel = Kernel(
        "rope.cu.j2",
        "rope",
        ("int H", "int HD", "int DIMS"),
        (Param("const Step*", "step"), *reads(**inputs), *writes(y=y)),
        (
            ("rows", row_count((*x.type.shape[:1], 1))),
            ("frequencies", tuple(f.hex() for f in frequencies)),
            ("divided", bool(freqs)),
            ("interleaved", bool(node.attr("interleaved"))),
        ),
    )
    return Launch(
        kernel,
        (str(volume(x.type.shape[1:-1], "rope")), str(width), str(dims)),
        (
            Arg("rows", rows),
            *(Arg("value", v) for v in inputs.values()),
            Arg("value", y, writes=True),
        ),
        Grid(grid_count((*x.type.shape[:1], 1))),
        str(THREADS),
        f"sizeof(Turns<{dims // 2}>)",
        in_place=(x,),
    )
