"""Which pass or rule is to blame: the graph behind each pass computes what the one before it does.

The VM runs every graph and each value that both name is compared: by bits behind a fusion; behind
lower-numerics, which decides what the bits are, as real numbers (float64), where quantizing and
rounding are no part of a program's meaning. Where a table of rules is wrong, each of them is tried
by itself. No compiler is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import passes
from compiler import pipeline
from compiler.api.reference import bits
from compiler.api.values import Array
from compiler.diagnostics import UserError
from compiler.graph import Graph, Value
from compiler.pipeline import Model
from compiler.target import Options, Target
from compiler.text import ir_lines, value_names
from compiler.values import Weight
from compiler.verify import verify
from passes.context import Context, Sweep
from runtime.compare import different, far, walk
from runtime.traced import owner, trace_program, trace_rows
from runtime.vm import Session

SHOWN = 24  # lines of a kernel's IR
SWEEPS = 8  # of a table: twice what any needs; rules without end are no use to try


@dataclass(frozen=True)
class Guilty:
    """Who is to blame, and why.

    who: such as "the pass glu"; line: the statement whose value is wrong; shown: the text of what
    computes it.
    """

    who: str
    why: str
    line: str = ""
    shown: tuple[str, ...] = ()


@dataclass
class Reference:
    """The VM on any graph of one program, over the same inputs or rows."""

    model: Model
    options: Options
    inputs: Mapping[str, Array]
    prompts: Sequence[Sequence[int]] | None
    count: int  # tokens to generate
    _kept: list[tuple[Graph, bool, dict[str, Array]]] = field(
        default_factory=list[tuple[Graph, bool, dict[str, Array]]]
    )

    def values(self, graph: Graph, real: bool) -> dict[str, Array]:
        """Every value that the graph names, in program order; the last two graphs' are kept."""
        for kept, how, values in self._kept:
            if kept is graph and how == real:
                return values
        program = self.model.program.with_graph(graph)
        if program.is_model:
            made = trace_rows(Session(program, self._weight, meaning=real), self._rows)
        else:
            made = trace_program(program, self.inputs, real)
        self._kept = [*self._kept[-1:], (graph, real, made)]
        return made

    @cached_property
    def _rows(self) -> list[list[int]]:
        """The prompts and what follows them; the prompts alone where lower-numerics is broken."""
        prompts = [list(p) for p in self.prompts or ()]
        try:
            session = Session(bits(self.model, self.options), self._weight)
            more = session.generate(prompts, self.count)
        except UserError:
            raise
        except Exception:
            return prompts
        return [[*p, *tokens[:-1]] for p, tokens in zip(prompts, more, strict=True)]

    @cached_property
    def _weight(self) -> Callable[[str], Weight]:
        return cache(self.model.weights.weight)


@dataclass
class Tried:
    """The passes that were tried: how many changed the graph, and who is to blame."""

    changed: int = 0
    alike: int = 0
    guilty: list[Guilty] = field(default_factory=list[Guilty])


def try_passes(reference: Reference, options: Options, target: Target) -> Tried:
    """Runs the passes one by one up to one whose graph cannot be run, and compares."""
    tried = Tried()
    before = _once_named(pipeline.named(reference.model.program.graph))
    reference.values(before, True)  # what is wrong with the program itself is said here
    for p in passes.chosen(options):
        real, sweeps = p.kind == "lowering", list[Sweep]()
        context = Context(options, target, on_sweep=sweeps.append)
        after, fault = _tried(reference, before, lambda: p.run(before, context), real)  # noqa: B023
        if after is not None and after.roots == before.roots:
            tried.alike += 1
            continue
        tried.changed += 1
        if fault is not None:
            rules = list(_rules(reference, sweeps[:SWEEPS], real, p.name))
            tried.guilty += rules or [fault.of(f"the pass {p.name}")]
        if after is None:
            break
        before = after
    return tried


@dataclass(frozen=True)
class Fault:
    """What is wrong with a graph against the one before it."""

    why: str
    line: str = ""
    shown: tuple[str, ...] = ()

    def of(self, who: str) -> Guilty:
        return Guilty(who, self.why, self.line, self.shown)


def _rules(
    reference: Reference, sweeps: Sequence[Sweep], real: bool, name: str
) -> Iterator[Guilty]:
    """Each rule that by itself changes what its graph computes, once."""
    found: set[str] = set()
    for sweep in sweeps:
        before = _once_named(sweep.before)
        for rule, alone in sweep.alone.items():
            fault = None if rule in found else _tried(reference, before, alone, real)[1]
            if fault is not None:
                found.add(rule)
                yield fault.of(f"the rule {rule} of the pass {name}")


def _tried(
    reference: Reference, before: Graph, make: Callable[[], Graph], real: bool
) -> tuple[Graph | None, Fault | None]:
    """The graph that is made of `before`, None where it cannot be run, and what is wrong."""
    expected = reference.values(before, real)
    try:
        after = _once_named(_with_names_of(before, verify(make())))
        given = reference.values(after, real)
        if real:
            reference.values(after, False)
    except Exception as error:
        return None, Fault(f"{type(error).__name__}: {error}")
    return after, _difference(before, after, expected, given, real)


def _difference(
    before: Graph,
    after: Graph,
    expected: Mapping[str, Array],
    given: Mapping[str, Array],
    real: bool,
) -> Fault | None:
    try:
        report = walk(_pairs(expected, given, real), far if real else different)
    except ValueError as error:  # of other types or shapes
        return Fault(str(error))
    if report.first is None:
        return None
    name = report.first.name
    places = {n: v for v, n in value_names(after).items()}
    was = {n: v for v, n in value_names(before).items()}
    value = owner(name, was)
    line = pipeline.origin_text(before, was[value]) if value in was else ""
    lines = _text(after, places[value]) if value in places else ()
    return Fault(f"{report} (expected: before it, given: behind it)", line, lines)


def _pairs(
    expected: Mapping[str, Array], given: Mapping[str, Array], real: bool
) -> Iterator[tuple[str, Array, Array]]:
    """What both name, in program order; real numbers up to a choice that a rounding turned."""
    for name, array in expected.items():
        if name not in given:
            continue
        turned = real and array.dtype.kind != "f" and array.shape == given[name].shape
        if turned and (array != given[name]).any():
            return
        yield name, array, given[name]


def _text(graph: Graph, value: Value) -> tuple[str, ...]:
    """The IR of what computes a value."""
    if not value.node.operands:
        return ()
    lines = ir_lines(value.node, value_names(graph))
    more = (f"... {len(lines) - SHOWN} more lines",) if len(lines) > SHOWN else ()
    return (*lines[:SHOWN], *more)


def _with_names_of(before: Graph, after: Graph) -> Graph:
    """What comes out of `after` is called as in `before`, should a pass have lost its name."""
    notes = dict(after.notes)
    for was, now in zip(before.roots, after.roots, strict=True):
        note = notes.get(now.node) or after.note(now.node)
        names = list(note.names)
        names[now.index] = names[now.index] or before.name(was)
        notes[now.node] = replace(note, names=tuple(names))
    return after.with_notes(notes)


def _once_named(graph: Graph) -> Graph:
    """Names that several values have are left out: a trace goes by names."""
    values = [n.result(i) for n in graph.nodes() for i in range(len(n.types))]
    count = Counter(graph.name(v) for v in values)
    notes = {
        n: replace(note, names=tuple(name if count[name] == 1 else None for name in note.names))
        for n, note in graph.notes.items()
    }
    return graph.with_notes(notes)
