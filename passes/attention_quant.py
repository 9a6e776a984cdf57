"""attention-quant: attention, elementwise ops that go on with it, and the quantizing of that.

A warp of its kernel ends with 32 columns of one head, so that heads of a multiple of 32 dims are
quantized in place. What such an op alone reads, a gate's `sigmoid(g)`, joins too. Before the passes
over elementwise ops, which would take the gate apart from it.
"""

from __future__ import annotations

from compiler.graph import Graph, Node, Value
from compiler.types import GROUP
from passes.context import Context
from passes.outline import Units, outline
from passes.rows import elementwise


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    for n in units.order:
        if n.op == "attention":
            for member in _epilogue(units, n):
                units.join((n, *member))
    return outline(units, "attention-quant", context)


def _epilogue(units: Units, attention: Node) -> list[list[Node]]:
    """What follows attention, in order: steps, each with what it alone reads, and a quantize."""
    at, steps = attention.result(), list[list[Node]]()
    while (reader := units.only_reader(at)) is not None and _continues(reader, at):
        inputs = [v.node for v in reader.operands if v != at and _is_part(units, v, at)]
        steps.append([*inputs, reader])
        at = reader.result()
    width = attention.operands[0].type.shape[-1]
    quantizes = [n for n in units.readers(at) if n.op == "quantize"]
    if quantizes and isinstance(width, int) and width % GROUP == 0:
        steps.append(quantizes[:1])
    return steps


def _continues(n: Node, at: Value) -> bool:
    """Whether `n` goes on with each column by itself, in f32."""
    others = [*n.operands, n.result()]
    return n.op not in ("cast", "quantize") and elementwise(n) and _all_f32(others, at)


def _all_f32(values: list[Value], at: Value) -> bool:
    return all(v.type.dtype == "f32" for v in values) and values[-1].type == at.type


def _is_part(units: Units, v: Value, at: Value) -> bool:
    """Whether an input of a step is elementwise itself and read here alone."""
    return units.only_reader(v) is not None and _continues(v.node, at) and v.node.op != "attention"
