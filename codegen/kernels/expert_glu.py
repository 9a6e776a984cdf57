"""`expert-glu`: two projections by picked experts, worked on where their outputs are made.

Blocks over (pick, outputs). A pick that is no expert gives NaN; the reference raises.
"""

from __future__ import annotations

from collections.abc import Callable

from codegen.elements import check_elements, fixed
from codegen.expr import STRUCTS, grid_count, row_count
from codegen.kernel import Context, Grid, Kernel, Launch, Refusal
from codegen.kernels.expert_linear import GRID_Y
from codegen.kernels.output_lines import OutputLines, Place, is_grouped
from codegen.kernels.projection import LinearShape, Signature, alike, check_weight
from compiler.graph import Node, Value
from compiler.types import Type


def plan(node: Node, context: Context) -> Launch:
    """The launch of a fused pair of experts' projections."""
    projections = [m for m in node.function.body if m.op == "expert_linear"]
    x, weight, _ = projections[0].operands
    made = projections[0].types[0]
    check_elements("expert-glu", context, made)
    experts, n, k = (fixed(d, "expert-glu") for d in weight.type.shape)
    outputs = 32 if is_grouped(node.function.body, n) else 8
    picked = n * fixed(made.shape[1], "expert-glu")  # a row's
    shape = LinearShape.of(k, outputs, picked, len(projections), context.target.sms)
    blocks = -(-n // shape.outputs)
    if blocks > GRID_Y:
        raise Refusal(f"expert-glu takes at most {GRID_Y * shape.outputs} outputs, got {n}")
    signature = Signature(node, context, x)
    kernel, work = _kernel(signature, projections)
    sizes = (experts, n, k, made.shape[1], shape.row_tiles, shape.warps)
    return Launch(
        kernel,
        (*map(str, sizes), *(STRUCTS[m.operands[1].type.dtype] for m in projections)),
        tuple(signature.args),
        Grid(grid_count(made.shape), str(blocks)),
        str(32 * shape.warps),
        shape.shared("1", len(projections), len(signature.factors)),
        tuple(signature.actual(v) for v in work.first if v != x),
    )


def _kernel(signature: Signature, projections: list[Node]) -> tuple[Kernel, OutputLines]:
    first = projections[0]
    made = first.types[0]
    signature.taken |= {"pick", "expert", "known"}
    weights = tuple(_weight(signature, m, first) for m in projections)
    index = signature.read(first.operands[2], "index")
    dots = {
        m: f"known ? folded_dot(s.partials[{i}], r, output) : not_a_number()"
        for i, m in enumerate(projections)
    }
    outputs = fixed(made.shape[-1], "expert-glu")
    work = OutputLines(signature, Place("pick", outputs, dots, _factor(signature, made)))
    lines = work.text()
    types = [m.operands[1].type for m in projections]
    kernel = Kernel(
        "expert_glu.cu.j2",
        f"expert_glu_{'_'.join(weights)}",
        (
            *("int E", "int N", "int K", "int P", "int ROW_TILES", "int WARPS"),
            *(f"class W{i}" for i in range(len(weights))),
        ),
        tuple(signature.params),
        (
            ("picks", row_count(made.shape)),
            ("row_of_pick", signature.x.type.rank == 2),
            ("weights", weights),
            ("alike", alike([f"tiles_{i}" for i in range(len(weights))], types)),
            ("index", index),
            ("early", tuple(signature.early)),
            ("folds", tuple(signature.folds)),
            ("lines", lines),
        ),
    )
    return kernel, work


def _weight(signature: Signature, m: Node, first: Node) -> str:
    """The parameter of a projection's experts; Refusal where it cannot share the launch."""
    check_weight("expert_linear", m.operands[1])
    same = (m.operands[0], m.operands[2]) == (first.operands[0], first.operands[2])
    if not same or m.types != first.types:
        raise Refusal("experts of one launch need one activation, one choice and equal outputs")
    return signature.read(m.operands[1], kind="weight")


def _factor(signature: Signature, made: Type) -> Callable[[Value], str]:
    """How a factor is spelled: of the activation's rows, of each pick [T, P, 1], or of each row."""
    rows = signature.x.type.shape[:-1]
    own = (*rows, *(1,) * (made.rank - signature.x.type.rank), 1)

    def spell(v: Value) -> str:
        if v.type.shape == own:
            return signature.factor(v)
        row = "pick" if v.type.shape[1] == made.shape[1] else "pick / P"
        return f"{signature.read(v)}[{row}]"

    return spell
