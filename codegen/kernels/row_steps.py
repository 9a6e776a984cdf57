"""What a row kernel does, as a list of steps: loops over a row's values, and reductions between
them.

Every op that works within rows is spelled here once; a fused function is the concatenation of its
members' steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from codegen.expr import STRUCTS, float_literal
from codegen.kernel import Refusal
from compiler import ops
from compiler.graph import Node, Value


@dataclass(frozen=True)
class Each:
    """`out` at every column: `text` with {0}, {1}... for the operands at that column; ctype of the
    result. gathers: the text reads column `d` of `row` by itself."""

    out: str
    ctype: str
    text: str
    operands: tuple[str, ...]
    gathers: bool = False


@dataclass(frozen=True)
class Once:
    """`out` once a row: `text` with {0}... for operands; `over` names those that are whole rows
    (arrays)."""

    out: str
    ctype: str
    text: str
    operands: tuple[str, ...]
    over: bool = False


@dataclass(frozen=True)
class Group:
    """`helper` over groups of 32 columns of `operand`, into the buffer `out`: quantize,
    square_sums, choice_keys."""

    out: str
    operand: str
    helper: str


Step = Each | Once | Group
Names = Callable[[Value], str]
CTYPE = {"f32": "float", "f16": "uint16_t", "bf16": "uint16_t", "i32": "int", "i64": "long long"}
CASTS = {
    ("f32", "f16"): "float_to_half({0})",
    ("f16", "f32"): "half_to_float({0})",
    ("f32", "bf16"): "float_to_bfloat({0})",
    ("bf16", "f32"): "bfloat_to_float({0})",
    ("i32", "f32"): "float({0})",
    ("i64", "f32"): "float({0})",
    ("i32", "i64"): "(long long)({0})",
    ("i64", "i32"): "int({0})",
    ("f32", "i32"): "float_to_int({0})",
    ("f32", "i64"): "float_to_long({0})",
}


def cast_text(source: str, target: str) -> str:
    """One element's conversion; by f32 where neither side is f32: so says the op's arithmetic."""
    if source == target:
        return "{0}"
    if (source, target) in CASTS:
        return CASTS[source, target]
    first, second = CASTS.get((source, "f32")), CASTS.get(("f32", target))
    if first is None or second is None:
        raise Refusal(f"no kernel casts {source} to {target}")
    return second.format(first)


def steps_of(node: Node, names: Names, width: int) -> list[Step]:
    """The steps of one member; `names` spells its operands and results, `width` is the row's
    length."""
    out, ins = names(node.result()), tuple(names(v) for v in node.operands)
    if node.op in SPELLED:
        return SPELLED[node.op](node, out, ins, width)
    op = ops.get(node.op)
    if op.expression is None:
        raise Refusal(f"no kernel computes {node.op}")
    dtype = node.operands[0].type.dtype
    text = op.expression.get("int" if dtype in ("i32", "i64") else dtype)
    if text is None:
        raise Refusal(f"no kernel computes {node.op} of {dtype}")
    return [Each(out, CTYPE[node.types[0].dtype], text, ins)]


def _embed(node: Node, out: str, ins: Sequence[str], width: int) -> list[Step]:
    token, table = ins
    rows, w = node.operands[1].type.shape[0], STRUCTS[node.operands[1].type.dtype]
    text = f"embedded<{w}, {rows}, D>({table}, {token}[row], d)"
    return [Each(out, "float", text, (), gathers=True)]


def _wanted(node: Node, out: str, ins: Sequence[str], width: int) -> list[Step]:
    text = f"{ins[0]}[size_t(step->want[row]) * D + d]"
    return [Each(out, "float", text, (), gathers=True)]


def _cast(node: Node, out: str, ins: Sequence[str], width: int) -> list[Step]:
    target = node.types[0].dtype
    return [Each(out, CTYPE[target], cast_text(node.operands[0].type.dtype, target), tuple(ins))]


def _factor(out: str, x: str, eps: object) -> Once:
    return Once(
        out, "float", f"rms_factor<D, THREADS>({{0}}, {float_literal(float(str(eps)))})", (x,), True
    )


def _rms_factor(node: Node, out: str, ins: Sequence[str], width: int) -> list[Step]:
    return [_factor(out, ins[0], node.attr("eps"))]


def _rmsnorm(node: Node, out: str, ins: Sequence[str], width: int) -> list[Step]:
    factor = f"{out}_factor"
    text = "{0} * {1}" if len(ins) == 1 else "({0} * {1}) * {2}"
    return [
        _factor(factor, ins[0], node.attr("eps")),
        Each(out, "float", text, (ins[0], factor, *ins[1:])),
    ]


def _layernorm(node: Node, out: str, ins: Sequence[str], width: int) -> list[Step]:
    eps = float_literal(float(str(node.attr("eps"))))
    mean, centered, factor = f"{out}_mean", f"{out}_centered", f"{out}_factor"
    text = ("{0} * {1}", "({0} * {1}) * {2}", "(({0} * {1}) * {2}) + {3}")[len(ins) - 1]
    variance = "row_sum_of_squares<D, THREADS>({0}) / float(D)"
    return [
        Once(mean, "float", "row_sum<D, THREADS>({0}) / float(D)", (ins[0],), True),
        Each(centered, "float", "{0} - {1}", (ins[0], mean)),
        Once(factor, "float", f"1.0f / sqrtf({variance} + {eps})", (centered,), True),
        Each(out, "float", text, (centered, factor, *ins[1:])),
    ]


def _l2norm(node: Node, out: str, ins: Sequence[str], width: int) -> list[Step]:
    eps = float_literal(float(str(node.attr("eps"))))
    text = f"1.0f / max_of(sqrtf(row_sum_of_squares<D, THREADS>({{0}})), {eps})"
    factor = f"{out}_factor"
    return [
        Once(factor, "float", text, (ins[0],), True),
        Each(out, "float", "{0} * {1}", (ins[0], factor)),
    ]


def _softmax(node: Node, out: str, ins: Sequence[str], width: int) -> list[Step]:
    top, power, total = f"{out}_max", f"{out}_exp", f"{out}_sum"
    return [
        Once(top, "float", "row_max<D, THREADS>({0})", (ins[0],), True),
        Each(power, "float", "exp32({0} - {1})", (ins[0], top)),
        Once(total, "float", "row_sum<D, THREADS>({0})", (power,), True),
        Each(out, "float", "{2} == -infinity() ? 0.0f : {0} / {1}", (power, total, top)),
    ]


def _reduction(text: str) -> Callable[[Node, str, Sequence[str], int], list[Step]]:
    def steps(node: Node, out: str, ins: Sequence[str], width: int) -> list[Step]:
        return [Once(out, CTYPE[node.types[0].dtype], text, tuple(ins), True)]

    return steps


def _quantize(node: Node, out: str, ins: Sequence[str], width: int) -> list[Step]:
    if width % 32:
        raise Refusal(f"quantize needs rows of a multiple of 32, got {width}")
    return [Group(out, ins[0], "quantize")]


def _square_sums(node: Node, out: str, ins: Sequence[str], width: int) -> list[Step]:
    return [Group(out, ins[0], "square_sums")]


def _choice_keys(node: Node, out: str, ins: Sequence[str], width: int) -> list[Step]:
    return [Group(out, ins[0], "choice_keys")]


def _root_factor(node: Node, out: str, ins: Sequence[str], width: int) -> list[Step]:
    n, eps = (float_literal(float(str(node.attr(a)))) for a in ("n", "eps"))
    text = f"1.0f / sqrtf(row_sum<D, THREADS>({{0}}) / {n} + {eps})"
    return [Once(out, "float", text, (ins[0],), True)]


SPELLED: dict[str, Callable[[Node, str, Sequence[str], int], list[Step]]] = {
    "embed": _embed,
    "wanted": _wanted,
    "cast": _cast,
    "rms_factor": _rms_factor,
    "rmsnorm": _rmsnorm,
    "layernorm": _layernorm,
    "l2norm": _l2norm,
    "softmax": _softmax,
    "sum": _reduction("row_sum<D, THREADS>({0})"),
    "mean": _reduction("row_sum<D, THREADS>({0}) / float(D)"),
    "max": _reduction("row_max<D, THREADS>({0})"),
    "quantize": _quantize,
    "square_sums": _square_sums,
    "choice_keys": _choice_keys,
    "root_factor": _root_factor,
}
