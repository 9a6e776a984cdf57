"""The stages joined: a `.model` and a checkpoint become a Program, a plan and the one `.cu`.

Everything here is a function of its arguments; files are read by `load` alone, none is written.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import examples
import passes
from codegen import plan as planning
from codegen import render
from compiler import knobs, text
from compiler.diagnostics import CHECKPOINT, ProgramError, UserError, cause
from compiler.graph import Graph, Value
from compiler.program import Metadata, MetaValue, Program
from compiler.target import Options, Target
from compiler.types import Type
from compiler.verify import verify
from frontend.elaborate import elaborate
from passes.expose import expose
from passes.inline import inlined
from runtime.gguf import Checkpoint, Unsupported, open_checkpoint


@dataclass(frozen=True)
class Model:
    """An elaborated program and the checkpoint that it was elaborated with, if any."""

    program: Program
    checkpoint: Checkpoint | None = None

    @property
    def weights(self) -> Checkpoint:
        """The checkpoint. UserError where there is none."""
        if self.checkpoint is None:
            raise UserError(f"{self.program.name}: a checkpoint is needed (--weights FILE)")
        return self.checkpoint


@dataclass(frozen=True)
class Stage:
    """A pass that ran: its name, the graphs before and behind it."""

    name: str
    before: Graph
    after: Graph


@dataclass(frozen=True)
class Compiled:
    """A compilation: what came in, every stage, the plan and the `.cu`.

    model: what came in, real numbers. lowered: behind lower-numerics, bits. program: what is
    planned, each value with the name that the `.cu` and its dumps know it by.
    seconds: what each step took.
    """

    model: Model
    lowered: Program
    program: Program
    options: Options
    target: Target
    stages: tuple[Stage, ...]
    plan: planning.Plan
    text: str
    seconds: Mapping[str, float]

    def line(self, name: str) -> str:
        """The statement that computes a value, `file:line  text`; "" where none is known."""
        known = {n: v for v, n in names_of(self.program.graph).items()}
        if name not in known:
            return ""
        value = inlined(self.program.graph)[known[name]]
        graph = self.lowered.graph if value.node in self.lowered.graph.notes else self.program.graph
        return origin_text(graph, value if graph is self.lowered.graph else known[name])


def load(model: str | Path | None, weights: str | Path | Checkpoint | None = None) -> Model:
    """A program and its checkpoint, opened or not.

    model: a `.model` file, an example's name, a program's text (it has more than one line), a
    checkpoint, or None: the example that the checkpoint's general.architecture names.
    Raises UserError; ProgramError with all errors of the program.
    """
    if isinstance(model, Path | str) and is_checkpoint(model):
        if weights is not None:
            given = weights.path if isinstance(weights, Checkpoint) else weights
            raise UserError(f"one checkpoint is needed, {model} and {given} were given")
        model, weights = None, model
    if model is None and weights is None:
        raise UserError("a .model, an example's name or a checkpoint is needed, none was given")
    checkpoint = open_checkpoint(weights) if isinstance(weights, str | Path) else weights
    metadata = None if checkpoint is None else metadata_of(checkpoint)
    if model is None:
        assert checkpoint is not None
        model = example_of(checkpoint)
    file, source = read_model(model)
    return Model(_elaborate(file, source, metadata), checkpoint)


def is_checkpoint(path: str | Path) -> bool:
    return str(path).endswith(".gguf")


def example_of(checkpoint: Checkpoint) -> Path:
    """The example that is called as the checkpoint's architecture. UserError: those there are."""
    name = checkpoint.architecture
    models = [e for e in examples.names() if "def forward" in examples.find(e).read_text()]
    if name not in models:
        raise UserError(
            f"{checkpoint.path}: no example is for the architecture {name}, there are "
            f"{', '.join(models)}; give a .model of your own",
            CHECKPOINT,
        )
    return examples.find(name)


def read_model(model: str | Path) -> tuple[str, str]:
    """(file, text) of a `.model` file, an example or a text of several lines."""
    if isinstance(model, str) and "\n" in model:
        return "<text>", model
    path = Path(model)
    if not path.exists() and len(path.parts) == 1 and path.suffix in ("", ".model"):
        path = examples.find(str(model))
    try:
        return str(path), path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: a .model file is needed: {cause(error)}") from None


def _elaborate(file: str, source: str, metadata: Metadata | None) -> Program:
    """Spans know the file by its last name: no path gets into a `.cu`. Errors show the path."""
    short = Path(file).name
    try:
        return elaborate(source, short, metadata)
    except ProgramError as error:
        where = {
            d: replace(d.span, file=file) if d.span.file == short else d.span
            for d in error.diagnostics
        }
        found = [replace(d, span=where[d]) for d in error.diagnostics]
        raise ProgramError(found, source, error.code) from None


def metadata_of(checkpoint: Checkpoint) -> Metadata:
    """What elaboration may know of a checkpoint."""
    tensors = {
        name: t.format.name if isinstance(t.format, Unsupported) else Type(t.format.name, t.shape)
        for name, t in checkpoint.tensors.items()
    }
    return Metadata(checkpoint.path.name, cast(dict[str, MetaValue], checkpoint.meta), tensors)


def lower(program: Program, options: Options, target: Target) -> tuple[Program, tuple[Stage, ...]]:
    """The program behind its passes, verified and named, and each pass that ran."""
    stages: list[Stage] = []

    def seen(name: str, before: Graph, after: Graph) -> None:
        stages.append(Stage(name, before, verify(after) if knobs.VERIFY.on else after))

    graph = passes.run(program.graph, options, target, seen)
    graph = verify(expose(graph) if options.dump else graph)
    return program.with_graph(named(graph)), tuple(stages)


def named(graph: Graph) -> Graph:
    """The graph whose every value has the unique name by which it is printed."""
    names = text.value_names(graph)
    notes = {n: graph.note(n) for n in graph.nodes()}
    for n, note in notes.items():
        given = tuple(names.get(n.result(i)) for i in range(len(n.types)))
        notes[n] = replace(note, names=given)
    return graph.with_notes(notes)


def names_of(graph: Graph) -> dict[Value, str]:
    """The names of a `named` graph by value."""
    table: dict[Value, str] = {}
    for n in graph.nodes():
        table |= {n.result(i): name for i, name in enumerate(graph.note(n).names) if name}
    return table


def compile_model(model: Model, options: Options, target: Target) -> Compiled:
    """All stages from the elaborated program on. ProgramError lists what the target cannot do."""
    seconds: dict[str, float] = {}
    with timed(seconds, "passes"):
        planned, stages = lower(model.program, options, target)
    with timed(seconds, "plan"):
        plan = planning.plan(planned, target, options, names_of(planned.graph))
    with timed(seconds, "render"):
        emitted = render.render(plan)
    lowered = planned.with_graph(named(stages[0].after))
    return Compiled(model, lowered, planned, options, target, stages, plan, emitted, seconds)


@contextmanager
def timed(seconds: dict[str, float], name: str) -> Generator[None]:
    """Adds what the block took to `seconds[name]`."""
    start = time.perf_counter()
    yield
    seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start


def origin_text(graph: Graph, value: Value) -> str:
    """The statement that made a value, `file:line  text`; of several the last, which ends it."""
    sources = dict(graph.sources)
    spans = sorted((o[-1].span for o in graph.note(value.node).origins), reverse=True)
    for span in spans:
        lines = sources.get(span.file, "").splitlines()
        if 0 < span.line <= len(lines):
            return f"{span.file}:{span.line}  {lines[span.line - 1].strip()}"
    return ""
