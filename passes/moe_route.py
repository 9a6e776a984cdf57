"""moe-route: the choice of experts and what is made of their scores: softmax, sigmoid, sums.

What works within the same rows before and behind a top_k joins it, of the width of all scores, of
the picks, or of one value a row; a router's own factor and bias stay with its projection.
"""

from __future__ import annotations

from compiler.graph import Graph, Node, Value
from compiler.ops import OPS, load
from compiler.types import Type
from passes.context import Context
from passes.outline import Units, outline
from passes.sibling_linear import epilogue

WIDEST = 1024  # scores of a row, which one warp holds
MOST = 64  # picks of a row


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    of_projections = _epilogues(units, context)
    for n in list(units.order):
        if n.op == "top_k" and _is_route(n):
            _grow(units, n, of_projections)
    return outline(units, "moe-route", context)


def _epilogues(units: Units, context: Context) -> set[Node]:
    linears = [n for n in units.order if n.op == "linear" and len(n.operands) == 2]
    return {step for n in linears for step in epilogue(units, n, context.options.dump)}


def _is_route(n: Node) -> bool:
    """Whether a warp can hold a row's scores; picks are of rows [T, E]."""
    scores, picks = n.operands[0].type, n.attr("k")
    width = scores.shape[-1]
    assert isinstance(width, int) and isinstance(picks, int)
    return scores.rank == 2 and scores.dtype == "f32" and width <= WIDEST and picks <= MOST


def _grow(units: Units, top_k: Node, apart: set[Node]) -> None:
    """Joins neighbours until there are none."""
    rows = top_k.types[0].shape[0]
    widths = (top_k.operands[0].type.shape[-1], top_k.types[0].shape[-1], 1)

    def joins(n: Node) -> bool:
        if n in apart or len(units.of(n)) > 1 or not _within_rows(n):
            return False
        has_rows = all(_has_rows(t, rows, widths) for t in n.types)
        return has_rows and _fits(n, rows) and (n.op != "heads" or is_between(n))

    def is_between(view: Node) -> bool:
        """Whether members alone will read a view, so that none is stored."""
        inside = units.of(top_k)
        readers = units.readers(view.result())
        return view.result() not in units.roots and all(n in inside or joins(n) for n in readers)

    stack = [top_k]
    while stack:
        n = stack.pop()
        around = dict.fromkeys((*(v.node for v in n.operands), *units.uses[n]))
        stack += [other for other in around if joins(other) and units.join((top_k, other))]


def _has_rows(t: Type, rows: object, widths: tuple[object, ...]) -> bool:
    """Whether a value is f32[rows, width] or f32[rows, 1, width]."""
    inner = t.shape[1:-1]
    return (
        t.dtype == "f32"
        and t.rank > 1
        and t.shape[0] == rows
        and all(dim == 1 for dim in inner)
        and t.shape[-1] in widths
    )


def _within_rows(n: Node) -> bool:
    """Whether the kernel spells `n`: elementwise, softmax, a sum over the last axis, a view."""
    load()
    if n.op in ("sum", "max", "mean"):
        return n.attr("axis") in (-1, n.operands[0].type.rank - 1)
    if n.op == "heads":
        return n.attr("count") == 1
    return n.op == "softmax" or (n.op in OPS and "elementwise" in OPS[n.op].traits)


def _fits(n: Node, rows: object) -> bool:
    return all(_operand_fits(v, n, rows) for v in n.operands)


def _operand_fits(v: Value, n: Node, rows: object) -> bool:
    """An operand of the same rows, or one value a column or in all."""
    t, width = v.type, n.types[0].shape[-1]
    if t.dtype != "f32":
        return False
    if t.rank < 2:
        return t.shape in ((), (1,), (width,))
    return t.shape[0] == rows and all(dim == 1 for dim in t.shape[1:-1])
