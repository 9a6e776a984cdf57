"""The statements of the program that stand over an emitted kernel."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.plan import Plan
from compiler.diagnostics import Span
from compiler.graph import Node, Origin


def program_lines(plan: Plan, nodes: Sequence[Node | None]) -> tuple[str, ...]:
    """`file:line  source` of every statement that these nodes compute, in order, each once.

    Of a prelude's function its own statements follow the program's that calls it.
    """
    sources = {file: text.splitlines() for file, text in plan.graph.sources}
    files = list(sources)
    found: dict[tuple[int, int], str] = {}
    for node in nodes:
        for origin in plan.graph.note(node).origins if node else ():
            for span in _own_spans(origin, files[:1]):
                lines = sources.get(span.file, [])
                if 0 < span.line <= len(lines):
                    text = lines[span.line - 1].split("#")[0].strip()
                    at = (files.index(span.file), span.line)
                    found[at] = f"{span.file}:{span.line}  {text}"
    return tuple(found[at] for at in sorted(found))


def _own_spans(origin: Origin, program: Sequence[str]) -> list[Span]:
    """From the innermost statement of the program on."""
    spans = [frame.span for frame in origin]
    own = [at for at, span in enumerate(spans) if span.file in program]
    return spans[own[-1] :] if own else spans[-1:]
