"""Projections of one activation whose outputs are worked on where they are made.

A block has one or more dots for each of its outputs; elementwise members follow value by value,
quantize and square_sums take groups of 32 outputs, which are the lanes of a warp. All members are
data: this file names no fusion.
"""

from __future__ import annotations

from codegen.expr import STRUCTS
from codegen.kernel import Context, Kernel, Launch, Refusal
from codegen.kernels.output_lines import OutputLines, Place, is_grouped
from codegen.kernels.projection import LinearShape, RowForms, Signature, alike, check_weight
from compiler.graph import Node

AHEAD = (  # how operands are read before the dots: a row of outputs, one value an output
    ("at", "read_ahead<N, L, ROWS>({}, block, first, rows)"),
    ("n", "read_ahead<N, L, ROWS>({}, block)"),
)


def plan(node: Node, context: Context) -> Launch:
    """The launch of a fused projection."""
    body = node.function.body
    linears = [m for m in body if m.op == "linear"]
    _check(linears)
    x, weight = linears[0].operands
    n, k = weight.type.shape
    assert isinstance(n, int) and isinstance(k, int)
    signature = Signature(node, context, x)
    weights = tuple(signature.read(m.operands[1], kind="weight") for m in linears)
    grouped = is_grouped(body, n)
    types = [m.operands[1].type for m in linears]
    tiled = len(set(types)) == 1 and len(types) <= 2 and RowForms.can_tile(x.type, types, context)
    dot = "dot_of(s, {}, r, output)" if tiled else "folded_dot(s.partials[{}], r, output)"
    dots = {m: dot.format(i) for i, m in enumerate(linears)}
    work = OutputLines(signature, Place("first + r", n, dots, signature.factor, dict(AHEAD)))
    lines = work.text()
    factors, sms = len(signature.factors), context.target.sms
    shape = LinearShape.of(k, 32 if grouped else 8, n, len(weights), sms, tiled)
    forms = RowForms(k, shape, x.type, tiled, len(weights), factors)
    kernel = Kernel(
        "projected.cu.j2",
        f"{node.function.kind.replace('-', '_')}_{'_'.join(weights)}",
        ("int N", *forms.templates, *(f"class W{i}" for i in range(len(weights)))),
        tuple(signature.params),
        (
            ("rows", signature.rows),
            ("weights", weights),
            ("alike", alike(weights, types)),
            ("early", (*signature.early, *work.ahead)),
            ("folds", tuple(signature.folds)),
            ("lines", lines),
            ("tiled", tiled),
            ("parts", shape.parts),
        ),
    )
    return forms.launch(
        kernel,
        (str(n), *forms.arguments, *(STRUCTS[t.dtype] for t in types)),
        signature,
        (n,),
        tuple(signature.actual(v) for v in work.first if v != x),  # other blocks read x too
    )


def _check(linears: list[Node]) -> None:
    first = linears[0]
    for m in linears:
        check_weight("linear", m.operands[1])
        if m.operands[0] != first.operands[0] or m.types != first.types:
            raise Refusal("projections of one launch need one activation and equally many outputs")
