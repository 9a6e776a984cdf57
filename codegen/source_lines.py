"""The statements of the program that stand over an emitted kernel."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.diagnostics import Span
from compiler.graph import Graph, Node, Origin

Place = tuple[int, int]  # which file it is in, and the line's number


def program_lines(graph: Graph, nodes: Sequence[Node | None]) -> tuple[str, ...]:
    """`file:line  source` of every statement that these nodes compute, in order, each once.

    Of a prelude's function its own statements follow the program's that calls it.
    """
    found = placed_lines(graph, nodes)
    return tuple(found[at] for at in sorted(found))


def placed_lines(graph: Graph, nodes: Sequence[Node | None]) -> dict[Place, str]:
    """The same by their places; the program's file is number 0."""
    sources = {file: text.splitlines() for file, text in graph.sources}
    files = list(sources)
    found: dict[Place, str] = {}
    for node in nodes:
        for origin in graph.note(node).origins if node else ():
            for span in _own_spans(origin, files[:1]):
                lines = sources.get(span.file, [])
                if 0 < span.line <= len(lines):
                    text = lines[span.line - 1].split("#")[0].strip()
                    at = (files.index(span.file), span.line)
                    found[at] = f"{span.file}:{span.line}  {text}"
    return found


def _own_spans(origin: Origin, program: Sequence[str]) -> list[Span]:
    """From the innermost statement of the program on."""
    spans = [frame.span for frame in origin]
    own = [at for at, span in enumerate(spans) if span.file in program]
    return spans[own[-1] :] if own else spans[-1:]
