"""embed-norm: gathered rows (tokens' of a table, or the wanted ones), what scales them, and the
norms of that, quantized too.

Before the passes that take a norm by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compiler.graph import Graph, Node, Value
from passes.context import Context
from passes.norm_quant import quantized_norms
from passes.outline import Units, outline
from passes.rows import NORMS, elementwise, row_fits


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    quantized = list(quantized_norms(units, context))
    for n in units.order:
        if n.op not in ("embed", "wanted") or not row_fits(n.types[0], context.target):
            continue
        *_, last = steps = [n, *_scaled(units, n)]
        norms = [nodes for x, nodes in quantized if x == last.result()]
        norms += [(r,) for r in units.readers(last.result()) if r.op in NORMS]
        for nodes in norms:
            if _fit(n, nodes):
                units.join((*steps, *nodes))
    return outline(units, "embed-norm", context)


def _scaled(units: Units, gather: Node) -> Iterator[Node]:
    """What goes on with each value of a row by itself, and alone reads it."""
    at = gather.result()
    while (reader := units.only_reader(at)) is not None and _continues(reader, at):
        if not _fit(gather, (reader,)):
            break
        yield reader
        at = reader.result()


def _continues(n: Node, at: Value) -> bool:
    all_f32 = all(v.type.dtype == "f32" for v in n.operands)
    return elementwise(n) and all_f32 and n.types == (at.type,)


def _fit(gather: Node, nodes: Sequence[Node]) -> bool:
    """Whether none of them reads what is gathered from, which the kernel has in another order."""
    return not any(v in gather.operands for n in nodes for v in n.operands)
