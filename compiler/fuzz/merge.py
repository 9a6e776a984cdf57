"""Many small programs as one, so that a translation unit (seconds of a compiler) serves dozens."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from compiler.graph import Graph, Node, Note, Value, leaf, node
from compiler.program import Input, Program

ROWS_INPUT = "rows"


def merged(
    programs: Sequence[Program],
    name: str = "merged",
    weights: Sequence[Set[str]] = (),
) -> Program:
    """One program of all results; names begin with `s0_`, `s1_`...; all share one `rows` input.

    weights: for each program the inputs that become weights, as if a checkpoint held them.

    The programs' rows inputs must be of one type, since a step has one set of rows; what they hold
    is left to the run.
    """
    inputs: dict[str, Input] = {}
    results: list[tuple[str, Value]] = []
    effects: list[Value] = []
    notes: dict[Node, Note] = {}
    for number, program in enumerate(programs):
        apart = weights[number] if weights else frozenset[str]()
        for declared in (i for i in program.inputs if i.name not in apart):
            own = own_input(number, declared)
            assert inputs.setdefault(own.name, own) == own, "two sets of rows"
        new = renamed(program.graph, number, notes, apart)
        results += [(own_name(number, name), new[v]) for name, v in program.graph.results]
        effects += [new[v] for v in program.graph.effects]
    return Program(name, Graph(tuple(results), tuple(effects), notes), tuple(inputs.values()))


def own_name(number: int, name: str) -> str:
    """What a value of program `number` is called in the whole."""
    return f"s{number}_{name}"


def own_input(number: int, declared: Input) -> Input:
    if declared.type.dtype == "rows":
        return replace(declared, name=ROWS_INPUT, value=None)
    return replace(declared, name=own_name(number, declared.name))


def renamed(
    graph: Graph, number: int, notes: dict[Node, Note], weights: Set[str] = frozenset()
) -> dict[Value, Value]:
    """The values of a graph whose leaves have names of their own, behind all that have notes."""
    new: dict[Value, Value] = {}
    for n in graph.nodes():
        if n.op in ("input", "cache", "weight"):
            name = own_name(number, str(n.attr("name")))
            is_rows = n.types[0].dtype == "rows"
            op = "weight" if n.attr("name") in weights else n.op
            made = leaf(op, ROWS_INPUT if is_rows else name, n.types[0]).node
        else:
            made = node(n.op, [new[v] for v in n.operands], dict(n.attrs), n.types)
        names = tuple(x and own_name(number, x) for x in graph.note(n).names)
        notes.setdefault(made, Note(names, frozenset(), len(notes)))
        new |= {n.result(i): made.result(i) for i in range(len(n.types))}
    return new
