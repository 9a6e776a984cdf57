"""The flat launch list of a graph: every node's launch in order, by its kernel provider."""

from __future__ import annotations

from codegen import limits
from codegen.kernel import Context, Launch, Refusal
from codegen.kernels import provider
from codegen.kernels.repack import repack_input
from codegen.memory_of import is_view
from compiler.diagnostics import Diagnostic, ProgramError, Span
from compiler.graph import LEAVES, Graph, Node, Value

Launches = list[tuple[Launch, Node | None]]


def launches_of(graph: Graph, context: Context) -> Launches:
    """Every launch and its node, in order; ProgramError with all nodes that have none."""
    out: Launches = []
    tiled: dict[Value, Launch] = {}
    refused: list[Diagnostic] = []
    for node in graph.nodes():
        if node.op in LEAVES or is_view(node):
            continue
        try:
            launch = provider(node)(node, context)
            limits.check(node, launch, context)
            out += _repacks(launch, tiled)
            out.append((launch, node))
        except Refusal as refusal:
            origins = sorted(graph.note(node).origins, key=lambda o: o[-1].span)
            span = origins[0][-1].span if origins else Span("graph", 0, 0, 0)
            refused.append(
                Diagnostic(span, f"{context.target.name} cannot compute this: {refusal}")
            )
    if refused:
        raise ProgramError(refused, graph.sources[0][1] if graph.sources else "")
    return out


def _repacks(launch: Launch, tiled: dict[Value, Launch]) -> Launches:
    """What is read as a weight and is none gets tiles by a launch of its own, before it is read."""
    out: Launches = []
    for arg in launch.args:
        if arg.kind == "weight" and arg.value.node.op != "weight" and arg.value not in tiled:
            tiled[arg.value] = repack_input(arg.value)
            out.append((tiled[arg.value], None))
    return out
