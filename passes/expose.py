"""expose: every fused function over rows returns its inner members too, so that a dump has them.

A projection's epilogue stays inside: its kernel keeps the members in registers, and what of them
has a name is kept apart by `sibling-linear` itself where values are to be dumped.
"""

from __future__ import annotations

from compiler.graph import Function, Graph, Node, Value, call, function, node, rebuild

CLOSED = ("sibling-linear",)  # kinds whose kernels cannot store inner members


def expose(graph: Graph) -> Graph:
    """The graph whose calls give all that their functions compute; no value changes."""

    def change(old: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        if old.op == "call" and old.function.kind not in CLOSED:
            made = call(opened(old.function), operands)
        else:
            made = node(old.op, operands, dict(old.attrs), old.types)
        return tuple(made.result(i) for i in range(len(old.types)))

    return rebuild(graph, change)


def opened(fn: Function) -> Function:
    """The function with its other members behind its results, in program order."""
    members = [n.result(i) for n in fn.body for i in range(len(n.types))]
    results = dict.fromkeys((*fn.results, *members))
    return function(fn.kind, fn.params, fn.body, results)
