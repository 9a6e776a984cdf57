"""`linear` and its siblings: projections of one activation, side by side in one launch, each with its own epilogue."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.expr import STRUCTS, identifier, is_dynamic, pointer, row_count
from codegen.kernel import Arg, Context, Grid, Kernel, Launch, Param, Refusal
from compiler.graph import Node, Value
from compiler.types import Dim, Type, size


@dataclass(frozen=True)
class Projection:
    """One output of the launch: y = dot(x, weight) [* factor a row] [+ bias].

    Fields are the emitted kernel's parameter names; `kind` indexes the template parameters W{kind}, N{kind}.
    """

    kind: int
    weight: str
    out: str
    factor: str = ""
    bias: str = ""


def plan(node: Node, context: Context) -> Launch:
    """The launch of a `linear`, or of a `sibling-linear` call."""
    members = [Member.of(v) for v in node.function.results] if node.op == "call" else [_alone(node)]
    outer, named = _actual(node), _actual(context.namesake(node))
    taken: set[str] = {"x"}
    params: dict[Value, str] = {}

    def name(value: Value, base: str) -> str:
        if value not in params:
            params[value] = identifier(base, taken)
        return params[value]

    first = members[0]
    projections: list[Projection] = []
    for index, m in enumerate(members):
        _check(m, first)
        base = context.names.get(named.get(m.weight, m.weight), "w")
        weight = name(m.weight, base)
        factor = name(m.factor, "factor") if m.factor else ""
        bias = name(m.bias, "bias") if m.bias else ""
        projections.append(
            Projection(index, weight, identifier(f"{base}_out", taken), factor, bias)
        )
    return _launch(node, first, members, projections, params, outer)


def _actual(node: Node) -> dict[Value, Value]:
    """A call's parameters -> the operands that it passes."""
    params = node.function.params if node.op == "call" else ()
    return dict(zip((p.result() for p in params), node.operands, strict=False))


@dataclass(frozen=True)
class Member:
    """One projection of the graph: its activation, weight and epilogue operands."""

    x: Value
    weight: Value
    factor: Value | None
    bias: Value | None

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


def _check(m: Member, first: Member) -> None:
    k = m.weight.type.shape[-1]
    if m.x != first.x:
        raise Refusal("projections of one launch need one activation")
    if m.weight.type.dtype not in STRUCTS:
        raise Refusal(f"linear has no kernel for weights of {m.weight.type.dtype}")
    if not isinstance(k, int) or k > 65536:
        raise Refusal(f"linear needs at most 65536 inputs, got {k}")
    if m.factor and (not m.factor.type.shape or m.factor.type.shape[-1] != 1):
        raise Refusal(f"a projection's factor is one value a row, got {m.factor.type}")
    if m.bias and m.bias.type.shape != m.weight.type.shape[:1]:
        raise Refusal(f"a projection's bias is one value an output, got {m.bias.type}")


@dataclass(frozen=True)
class LinearShape:
    """How a block of a projection is cut; the emitted LinearShape takes these numbers.

    partial_bytes: shared memory for one activation row's partial dots.
    """

    row_tiles: int
    warps: int
    partial_bytes: int

    @staticmethod
    def of(k: int) -> LinearShape:
        """Enough row tiles for about eight warps, each with one tile in flight; long rows loop."""
        groups = -(-k // 512)
        row_tiles = max(1, 8 // groups)
        tiles = row_tiles * groups
        warps = tiles if tiles <= 16 else 8
        return LinearShape(row_tiles, warps, 8 * row_tiles * (-(-k // 128) + 1) * 4)


def group_of(shape: tuple[Dim, ...]) -> str:
    """Which form's row group a launch over these rows uses: ROWS, WANTED, or a count for fixed rows."""
    if shape and shape[0] == "R":
        return "WANTED"
    if shape and shape[0] == "T":
        return "ROWS"
    count = size(shape[:-1])
    return "1" if count == 1 else "4" if count <= 4 else "8"


def _launch(
    node: Node,
    first: Member,
    members: list[Member],
    projections: list[Projection],
    params: dict[Value, str],
    outer: dict[Value, Value],
) -> Launch:
    x, k = first.x, first.weight.type.shape[-1]
    assert isinstance(k, int)
    dynamic, group = is_dynamic(x), group_of(x.type.shape)
    shape = LinearShape.of(k)
    templates = (
        "int K",
        "int ROW_TILES",
        "int WARPS",
        "int ROWS",
        *(t for p in projections for t in (f"class W{p.kind}", f"int N{p.kind}")),
    )
    arguments = (
        str(k),
        str(shape.row_tiles),
        str(shape.warps),
        group,
        *(t for m in members for t in (STRUCTS[m.weight.type.dtype], str(m.weight.type.shape[0]))),
    )
    inputs = [Param(pointer(x.type), "x")]
    tiled = {m.weight for m in members}
    inputs += [
        Param("const uint8_t*" if v in tiled else pointer(v.type), n) for v, n in params.items()
    ]
    outs = [Param("float*", p.out) for p in projections]
    kernel = Kernel(
        "linear.cu.j2",
        "linear_" + "_".join(p.weight for p in projections),
        templates,
        (*([Param("const Step*", "step")] if dynamic else ()), *inputs, *outs),
        (("rows", row_count(x.type.shape)), ("projections", tuple(projections))),
    )

    def actual(v: Value) -> Value:
        return outer.get(v, v)

    args = (
        *([Arg("rows", actual(x))] if dynamic else ()),
        Arg("value", actual(x)),
        *(Arg("weight" if v in tiled else "value", actual(v)) for v in params),
        *(Arg("value", node.result(i), writes=True) for i in range(len(node.types))),
    )
    blocks = " + ".join(
        f"ceil_div({m.weight.type.shape[0]}, {8 * shape.row_tiles})" for m in members
    )
    count = row_count(x.type.shape).replace("step->", "")
    return Launch(
        kernel,
        arguments,
        args,
        Grid(blocks, f"ceil_div({count}, {group})"),
        str(32 * shape.warps),
        f"{group} * {shape.partial_bytes}",
    )


def in_tiles(value: Value) -> bool:
    """Whether a matrix can be read in tiles: a weight, or an input that a launch repacks."""
    return value.node.op in ("weight", "input")
