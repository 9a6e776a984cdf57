"""`linear` and its siblings: projections of one activation side by side, each with its epilogue."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.expr import STRUCTS
from codegen.kernel import Context, Kernel, Launch, Refusal
from codegen.kernels.projection import LinearShape, RowForms, Signature, check_weight, in_tiles
from compiler.graph import Node, Value
from compiler.types import size

__all__ = ["in_tiles", "plan"]


@dataclass(frozen=True)
class Projection:
    """One output of the launch: y = dot(x, weight) [* factor] [+ bias].

    Fields are the emitted kernel's names; `kind` numbers the template parameters W{kind}, N{kind}.
    """

    kind: int
    weight: str
    out: str
    factor: str = ""
    bias: str = ""


@dataclass(frozen=True)
class Member:
    """One projection of the graph: its activation, weight and epilogue operands."""

    x: Value
    weight: Value
    factor: Value | None = None
    bias: Value | None = None

    @staticmethod
    def of(result: Value) -> Member:
        """Reads `linear(x, w) [* r] [+ b]` back from a fused function's result."""
        node, bias, factor = result.node, None, None
        if node.op == "add":
            node, bias = _split(node)
        if node.op == "mul":
            node, factor = _split(node)
        if node.op != "linear" or len(node.operands) != 2:
            raise Refusal(f"a projection's epilogue is [* factor] [+ bias], got {node.op}")
        return Member(node.operands[0], node.operands[1], factor, bias)


def _split(node: Node) -> tuple[Node, Value]:
    a, b = node.operands
    return (a.node, b) if a.node.op in ("linear", "mul") else (b.node, a)


def _alone(node: Node) -> Member:
    x, weight, *bias = node.operands
    return Member(x, weight, None, bias[0] if bias else None)


def check(m: Member, first: Member) -> None:
    """Refusal where projections cannot share a launch, or an epilogue is none that they have."""
    check_weight("linear", m.weight)
    if m.x != first.x:
        raise Refusal("projections of one launch need one activation")
    if m.factor and (not m.factor.type.shape or m.factor.type.shape[-1] != 1):
        raise Refusal(f"a projection's factor is one value a row, got {m.factor.type}")
    if m.bias and m.bias.type.shape != m.weight.type.shape[:1]:
        raise Refusal(f"a projection's bias is one value an output, got {m.bias.type}")


def plan(node: Node, context: Context) -> Launch:
    """The launch of a `linear`, or of a `sibling-linear` call."""
    called = node.op == "call"
    members = [Member.of(v) for v in node.function.results] if called else [_alone(node)]
    first = members[0]
    k, weights = first.weight.type.shape[-1], [m.weight.type for m in members]
    tiled = RowForms.can_tile(first.x.type, weights, context)
    signature = Signature(node, context, first.x)
    projections: list[Projection] = []
    for index, m in enumerate(members):
        check(m, first)
        weight = signature.read(m.weight, kind="weight")
        bias = signature.read(m.bias, "bias") if m.bias else ""
        projections.append(Projection(index, weight, "", signature.factor(m.factor), bias))
    projections = [
        Projection(
            p.kind, p.weight, signature.write(signature.results[p.kind], p.weight), p.factor, p.bias
        )
        for p in projections
    ]
    assert isinstance(k, int)
    shape = LinearShape.of(k, made=sum(size(t.shape[:1]) for t in weights))
    forms = RowForms(k, shape, first.x.type, tiled, factors=len(signature.factors))
    kernel = Kernel(
        "linear.cu.j2",
        "linear_" + "_".join(p.weight for p in projections),
        (
            *forms.templates,
            *(t for p in projections for t in (f"class W{p.kind}", f"int N{p.kind}")),
        ),
        tuple(signature.params),
        (
            ("rows", signature.rows),
            ("projections", tuple(projections)),
            ("early", tuple(signature.early)),
            ("folds", tuple(signature.folds)),
            ("tiled", tiled),
        ),
    )
    numbers = (text for t in weights for text in (STRUCTS[t.dtype], str(t.shape[0])))
    outputs = [t.shape[0] for t in weights]
    return forms.launch(kernel, (*forms.arguments, *numbers), signature, outputs)
