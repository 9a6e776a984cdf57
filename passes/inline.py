"""inline: the values of a graph with fused functions as their ops compute them one by one.

Nodes are interned, so these are the very nodes that the graph had before it was fused.
"""

from __future__ import annotations

from collections.abc import Mapping

from compiler.graph import Graph, Node, Value, node


def inlined(graph: Graph) -> dict[Value, Value]:
    """For every value of the graph the same value without calls."""
    table: dict[Value, Value] = {}
    for n in graph.nodes():
        table |= _results(n, table)
    return table


def _results(n: Node, table: Mapping[Value, Value]) -> dict[Value, Value]:
    """The results of a node, of whose operands the table knows."""
    operands = [table[v] for v in n.operands]
    if n.op != "call":
        made = node(n.op, operands, dict(n.attrs), n.types)
        return {n.result(i): made.result(i) for i in range(len(n.types))}
    inner = {p.result(): v for p, v in zip(n.function.params, operands, strict=True)}
    for member in n.function.body:
        inner |= {v: v for v in member.operands if v.node.op == "const"}
        inner |= _results(member, inner)
    return {n.result(i): inner[v] for i, v in enumerate(n.function.results)}
