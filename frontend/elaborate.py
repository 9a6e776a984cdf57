"""A `.model` with a checkpoint's metadata to a Program: one graph, everything static unrolled.

All errors are reported at once: a wrong value is poison, which silences what is made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from compiler.diagnostics import CHECKPOINT, UserError
from compiler.graph import Frame, Graph, Node, Value, consumers, leaf
from compiler.ops import OPS, build, load
from compiler.program import Metadata, Program
from compiler.text import Names
from compiler.types import CACHES, ROWS, WANTED, Type
from frontend import checkpoint, tree
from frontend.calls import META
from frontend.declarations import Declarations
from frontend.syntax import parse
from frontend.things import Fault, Poison, Results, Stop, Thing, describe
from frontend.trace import Level

PRELUDE = Path(__file__).with_name("prelude.model")
FORWARD = "forward"
DECLARATIONS = (
    tree.Constant, tree.Weights, tree.Cache, tree.State, tree.Input, tree.Ignore, tree.Def,
    tree.Kernel,
)  # fmt: skip


@lru_cache
def prelude() -> tree.Tree:
    return parse(PRELUDE.read_text(), "<prelude>")


def elaborate(text: str, file: str = "<text>", metadata: Metadata | None = None) -> Program:
    """The program that a text describes.

    Raises ProgramError with every error (its code is CHECKPOINT where only the checkpoint is to
    blame), UserError where a model comes without a checkpoint.
    """
    load()
    parsed = parse(text, file)
    model = any(isinstance(item, tree.Def) and item.name == FORWARD for item in parsed.items)
    if model and metadata is None:
        raise UserError(f"{file}: a checkpoint is needed (it has a forward), got none")
    return Elaborator(parsed, metadata, model).program()


class Elaborator(Declarations):
    """One elaboration of one file."""

    def __init__(self, parsed: tree.Tree, metadata: Metadata | None, model: bool) -> None:
        super().__init__(parsed.file, metadata, model)
        self.parsed = parsed
        self.results: list[tuple[str, Value]] = []
        self.step_rows: Value | None = None
        self.prelude = {
            item.name: (item, prelude().file)
            for item in prelude().items
            if isinstance(item, tree.Def)
        }

    def program(self) -> Program:
        """Raises ProgramError."""
        try:
            with suppress(Stop):
                self._run()
        except RecursionError:  # blocks in defs in blocks, from a caller that is deep itself
            self.depth = 0
            self.report(Fault("defs and blocks are nested too deep"), self.here)
        self.stop_on_faults(self.parsed.text)
        graph = self._graph()
        self._check_caches(graph)
        self._check_weights(graph)
        self.stop_on_faults(self.parsed.text)
        return Program(
            Path(self.file).stem, graph, tuple(self.inputs), self.model, self._context(),
            self.read_meta,
        )  # fmt: skip

    def rows(self) -> Value | None:
        """A model's rows; an op program's, if it has one input of rows."""
        if self.step_rows is None and not self.model:
            given = [i for i in self.inputs if i.type.dtype == "rows"]
            return leaf("input", given[0].name, given[0].type) if len(given) == 1 else None
        return self.step_rows

    def call_op(self, path: tree.Path, known: Sequence[str]) -> Thing:
        op = OPS.get(path.name)
        if self.model and op is not None and "internal" in op.traits:
            raise Fault(f"{path.name} is made by passes, a model does not call it")
        return super().call_op(path, known)

    def _run(self) -> None:
        first = self.parsed.items[0].span if self.parsed.items else self.trace.user_span(self.file)
        top = Level(None, {}, first, self.file)
        self.trace.levels.append(top)
        self._collect_defs()
        for item in self.parsed.items:
            if isinstance(item, DECLARATIONS):
                self.declare(item)
            elif top.result is not None:
                self.report(Fault("nothing is needed after a return"), item.span)
            else:
                self._statement(item)
        if self.model:
            self._forward()
        elif top.result is None:
            needs = "a program needs a return at its end (or a def forward, if it is a model)"
            self.report(Fault(needs), self.parsed.items[-1].span if self.parsed.items else first)

    def _collect_defs(self) -> None:
        for item in self.parsed.items:
            if not isinstance(item, tree.Def):
                continue
            self.trace.level.statement = item.span
            try:
                self._collect(item)
            except Fault as fault:
                self.report(fault, item.span)

    def _collect(self, item: tree.Def) -> None:
        self.check_free(item.name, item.span)
        if item.name in OPS or item.name in META:
            raise Fault(f"another name is needed: {item.name} is an op")
        if item.name in self.defs:
            first = self.defs[item.name][0].span
            raise Fault(f"another name is needed: {item.name} is defined", None, [(first, "here")])
        names = [param.name for param in item.params]
        for param in item.params:
            if names.count(param.name) > 1:
                raise Fault(f"each parameter needs a name of its own: {param.name}", param.span)
            self.check_free(param.name, param.span)
        self.defs[item.name] = (item, self.file)
        self.fixed[item.name] = item.span

    def _statement(self, item: tree.Statement) -> None:
        if self.model:
            self.report(Fault("a model's statements stand in its defs"), item.span)
        else:
            self.statement(item)

    # a model's forward

    def _forward(self) -> None:
        if FORWARD not in self.defs:
            return  # its fault is reported
        made, _ = self.defs[FORWARD]
        given = [leaf("input", "token", Type("i32", (ROWS,)))]
        given.append(leaf("input", "rows", Type("rows", (ROWS,))))
        for value, name in zip(given, ("token", "rows"), strict=True):
            self.trace.add(value.node, (Frame(made.span),))
            self.trace.name(value, name, whole=True)
        self.step_rows = given[1]
        self.globals.setdefault("rows", given[1])
        if not 1 <= len(made.params) <= 2:
            needs = "forward takes token (and rows, if it names them)"
            return self.report(Fault(f"{needs}, {len(made.params)} are declared"), made.span)
        scope: dict[str, Thing] = {p.name: v for p, v in zip(made.params, given, strict=False)}
        level = Level(None, scope, made.span, self.file)
        self.trace.levels = [level]  # declarations are no part of an origin
        self.block(made.body)
        if level.result is None:
            self.report(Fault("forward needs a return of its logits"), made.span)

    def return_(self, statement: tree.Return) -> None:
        super().return_(statement)
        result = self.trace.level.result
        if len(self.trace.levels) > 1 or result is None:
            return
        things = result.values if isinstance(result, Results) else [result]
        if self.model:
            return self._logits(things, statement)
        unique = Names().unique
        for thing, arg in zip(things, statement.values, strict=True):
            if isinstance(thing, Value) and thing.type.is_number:
                name = unique(result_name(arg))
                self.results.append((name, thing))
                self.trace.name(thing, name, whole=True)
            elif not isinstance(thing, Poison):
                fault = Fault(f"a value of plain numbers is needed, got {describe(thing)}")
                self.report(fault, arg.span)

    def _logits(self, things: Sequence[Thing], statement: tree.Return) -> None:
        """The model's result, and the choice of the next token from it."""
        if any(isinstance(thing, Poison) for thing in things):
            return
        logits = things[0] if len(things) == 1 else None
        if not isinstance(logits, Value) or not is_logits(logits.type):
            given = " and ".join(map(describe, things))
            needs = "forward returns logits, f32[R, V] (wanted(x) takes the R wanted rows)"
            return self.report(Fault(f"{needs}; got {given}"), statement.span)
        chosen = build("choose", [logits])
        self.note(chosen)
        self.results = [("logits", logits), ("next", chosen.result())]
        for name, value in self.results:
            self.trace.name(value, name, whole=True)

    # the end

    def _graph(self) -> Graph:
        effects = [v for r in self.records for v in r.members.values() if isinstance(v, Value)]
        sources = [(self.parsed.file, self.parsed.text)]
        notes = self.trace.notes()
        graph = Graph(tuple(self.results), tuple(effects), notes)
        place = {n: i for i, n in enumerate(graph.nodes())}
        kept = {n: notes[n] for n in place if n in notes}  # constants have none
        used = {frame.span.file for note in kept.values() for o in note.origins for frame in o}
        if prelude().file in used:
            sources.append((prelude().file, prelude().text))
        return replace(
            graph,
            effects=tuple(sorted(effects, key=lambda v: (place[v.node], v.index))),
            notes=kept,
            sources=tuple(sources),
        )

    def _check_caches(self, graph: Graph) -> None:
        """Every version of a cache is written over once, the last one is the cache's.

        In a model the last one alone is read: an earlier one has some rows of a prompt or not, by
        how it is cut into steps.
        """
        made = list(self.trace.origins)
        writers = consumers(made)
        for value, over in writers.items():
            if len(over) > 1:
                self._twice(value, over)
            for n in made if self.model else ():
                if value in n.operands and n not in over:
                    self._early(value, n, over[0])
        if self.found:
            return
        for n in made:
            lost = n.types[0].dtype in CACHES and n.result() not in {*writers, *graph.effects}
            if lost:
                needs = "append gives a new version of a cache, which has to be bound"
                self._blame(Fault(f"{needs}, as in c.k = append(c.k, x)"), n)

    def _twice(self, value: Value, writers: Sequence[Node]) -> None:
        name = self.trace.names.get(value)
        notes = [(self.trace.born(writers[0], self.file), "the first one is here")]
        fault = Fault(f"a version of a cache is written over once, {name} is twice", None, notes)
        self._blame(fault, writers[1])

    def _early(self, value: Value, reader: Node, writer: Node) -> None:
        name, place = self.trace.names.get(value), self.trace.born(writer, self.file)
        needs = "the rows of a step are appended to a cache before it is read"
        fault = Fault(f"{needs}, {name} is read first", None, [(place, "it is appended to here")])
        self._blame(fault, reader)

    def _blame(self, fault: Fault, n: Node) -> None:
        self.trace.levels = []
        self.report(fault, self.trace.born(n, self.file) or self.trace.user_span(self.file))

    def _check_weights(self, graph: Graph) -> None:
        """A model reads all of its checkpoint, save what it ignores."""
        if not self.model or self.metadata is None:
            return
        leaves = {str(n.attr("name")): n for n in self.trace.origins if n.op == "weight"}
        read = {name for name, n in leaves.items() if n in graph.notes}
        lost: list[str] = []
        for name, message in checkpoint.unread(self.metadata, read, self.ignored):
            if name in leaves:
                self._blame(Fault(message), leaves[name])
            else:
                lost.append(message)
        if lost:
            notes = [(None, message) for message in lost[1:]]
            made, _ = self.defs[FORWARD]
            self.trace.levels = []
            self.report(Fault(lost[0], None, notes, CHECKPOINT), made.span)

    def _context(self) -> int | None:
        if self.metadata is None:
            return None
        kind = self.metadata.meta.get("general.architecture")
        length = self.metadata.meta.get(f"{kind}.context_length")
        return length if isinstance(length, int) else None


def is_logits(type_: Type) -> bool:
    return type_.dtype == "f32" and type_.rank == 2 and type_.shape[0] == WANTED


def result_name(arg: tree.Arg) -> str:
    """What a returned value is called: as told, after its variable, its member or its op."""
    if arg.name is not None:
        return arg.name
    if not isinstance(arg.value, tree.Path):
        return "result"
    members = [sub.name for sub in arg.value.subs if isinstance(sub, tree.Member)]
    return members[-1] if members else arg.value.name
