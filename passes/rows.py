"""What kernels over rows can hold: which nodes work element by element, and of which operands."""

from __future__ import annotations

from compiler.graph import Node, Value
from compiler.ops import OPS, load
from compiler.target import Target
from compiler.types import GROUP, Dim, Type
from passes.outline import Units

NORMS = ("rmsnorm", "layernorm")
LAST = ("quantize",)  # a member of a region that nothing in it reads


def elementwise(n: Node) -> bool:
    """Whether a region over rows may hold `n`: an elementwise op, a cast or a quantize.

    Its result has rows; each operand is as large, or one value a column, a row or in all.
    """
    load()
    joins = n.op in ("cast", *LAST) or (n.op in OPS and "elementwise" in OPS[n.op].traits)
    return joins and n.types[0].rank > 0 and all(_fits(v, n.types[0].shape) for v in n.operands)


def _fits(v: Value, shape: tuple[Dim, ...]) -> bool:
    return v.type.shape in ((), shape, shape[-1:], (*shape[:-1], 1))


def projection_of(x: Value) -> list[Node]:
    """The projection that ends in `x` and what follows it value by value; [] where there is none.

    Its outputs are whole groups of 32, so that a warp has one.
    """
    members: list[Node] = []
    while x.node.op != "linear":
        inner = [v for v in dict.fromkeys(x.node.operands) if _is_step(x.node) and v.type == x.type]
        inner = [v for v in inner if v.node.op == "linear" or _is_step(v.node)]
        if len(inner) != 1:
            return []
        members.append(x.node)
        x = inner[0]
    width = x.type.shape[-1]
    is_whole = isinstance(width, int) and width % GROUP == 0
    return [*members, x.node] if is_whole and len(x.node.operands) == 2 else []


def _is_step(n: Node) -> bool:
    return elementwise(n) and all(v.type.dtype == "f32" for v in (*n.operands, n.result()))


def row_fits(type_: Type, target: Target) -> bool:
    """Whether a block can keep one row as f32: what a kernel does that reads a row twice."""
    return isinstance(type_.shape[-1], int) and 4 * type_.shape[-1] <= target.shared_bytes


def normed_addends(units: Units, add: Node, target: Target) -> list[Node]:
    """Norms that a sum alone reads, of its own rows, with what scales them: of sandwich norms."""
    found: list[Node] = []
    for v in dict.fromkeys(add.operands):
        steps: list[Node] = []
        while units.only_reader(v) is not None and _is_step(v.node) and v.type == add.types[0]:
            steps.append(v.node)
            v = next((o for o in v.node.operands if o.type == v.type), v.node.operands[0])
        is_norm = v.node.op in NORMS and v.type == add.types[0] and row_fits(v.type, target)
        if is_norm and units.only_reader(v) is not None:
            members = [v.node, *steps]
            found += members if all(len(units.of(n)) == 1 for n in members) else []
    return found


def is_sum(n: Node) -> bool:
    """Whether `n` adds two f32 values of its own shape."""
    return (
        n.op == "add"
        and n.types[0].dtype == "f32"
        and all(v.type == n.types[0] for v in n.operands)
    )
