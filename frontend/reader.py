"""Dumps back to graphs: the text of a graph gives the same nodes, at whatever stage it was made."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from compiler.diagnostics import Span
from compiler.graph import (
    LEAVES,
    Function,
    Graph,
    Node,
    Value,
    call,
    consumers,
    function,
    leaf,
    param,
)
from compiler.ops import load
from compiler.text import Names
from compiler.types import CACHES, Type
from frontend import tree
from frontend.bind import Given
from frontend.expressions import Expressions
from frontend.syntax import parse
from frontend.things import BUILTINS, POISON, Fault, Poison, Results, Stop, Thing, describe, nearest
from frontend.trace import Level

FORWARD = "forward"


def parse_graph(text: str, file: str = "<text>") -> Graph:
    """The graph that `print_graph` printed; types on targets are checked. Raises ProgramError."""
    load()
    parsed = parse(text, file)
    reader = Reader(file)
    with suppress(Stop):
        reader.read(parsed)
    reader.stop_on_faults(parsed.text)
    return replace(reader.graph(), sources=((file, parsed.text),))


class Reader(Expressions):
    """Reads kernels in order; `forward` is the graph, the others are its fused functions."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.kernels: dict[str, Function] = {}
        self.made: dict[Node, None] = {}  # of the kernel at hand, in order
        self.results: list[tuple[str, Value]] = []

    def rows(self) -> Value | None:
        return None  # a dump names its rows

    def read(self, parsed: tree.Tree) -> None:
        for item in parsed.items:
            if isinstance(item, tree.Kernel):
                self._kernel(item)
            else:
                self.trace.levels = [Level(None, {}, item.span, self.file)]
                self.report(Fault("a dump holds kernels, got something else"), item.span)
        if not any(isinstance(i, tree.Kernel) and i.name == FORWARD for i in parsed.items):
            self.trace.levels = []
            self.report(Fault("a dump needs a kernel forward"), Span(self.file, 1, 1, 1))

    def graph(self) -> Graph:
        """Effects are the caches that nothing writes over."""
        notes = self.trace.notes()
        caches = [
            n.result(i) for n in self.made for i, t in enumerate(n.types) if t.dtype in CACHES
        ]
        writers = consumers(self.made)
        effects = tuple(v for v in caches if v not in writers)
        graph = Graph(tuple(self.results), effects, notes)
        reached = graph.nodes()
        place = {n: i for i, n in enumerate(reached)}
        order = sorted(effects, key=lambda v: (place[v.node], v.index))
        kept = {n: notes[n] for n in reached if n in notes}
        return replace(graph, effects=tuple(order), notes=kept)

    # kernels

    def _kernel(self, item: tree.Kernel) -> None:
        scope: dict[str, Thing] = {}
        params: list[Node] = []
        self.trace.levels = [Level(None, scope, item.span, self.file)]
        self.made, self.trace.unique = {}, Names().unique  # each kernel has names of its own
        for index, typed in enumerate(item.params):
            type_ = self.type(typed.type, dynamic=True)
            made = None if type_ is None else param(index, type_)
            params += [made] if made else []
            scope[typed.name] = made.result() if made else POISON
        values = self._body(item)
        if values is None or len(params) < len(item.params):
            return
        if item.name == FORWARD:
            self.results = values
            return
        kind = re.sub(r"_\d+$", "", item.name).replace("_", "-")
        body = [n for n in self.made if n.op not in LEAVES]
        self.kernels[item.name] = function(kind, params, body, [v for _, v in values])

    def _body(self, item: tree.Kernel) -> list[tuple[str, Value]] | None:
        """Runs a kernel's statements; what it returns, by name, None where that is wrong."""
        *statements, last = item.body.statements or (None,)
        for statement in statements:
            self._statement(statement)
        if not isinstance(last, tree.Return):
            self.report(Fault(f"{item.name} needs a return at its end"), item.span)
            return None
        self.trace.level.statement = last.span
        results: list[tuple[str, Value]] = []
        for arg in last.values:
            thing = self.thing(arg.value)
            spelled = spell(arg.value) if isinstance(arg.value, tree.Path) else "result"
            if isinstance(thing, Value):
                results.append((arg.name or spelled, thing))
            elif not isinstance(thing, Poison):
                self.report(Fault(f"a value is needed, got {describe(thing)}"), arg.span)
        return results if len(results) == len(last.values) else None

    def _statement(self, statement: tree.Statement | None) -> None:
        if not isinstance(statement, tree.Assign):
            if statement is not None:
                self.report(Fault("a kernel holds assignments and a return"), statement.span)
            return
        self.trace.level.statement = statement.span
        try:
            things = self._values(statement)
        except Fault as fault:
            self.report(fault, statement.span)
            things = [POISON] * len(statement.targets)
        for target, thing in zip(statement.targets, things, strict=True):
            try:
                self._bind(target, thing)
            except Fault as fault:
                self.report(fault, target.span)

    def _values(self, statement: tree.Assign) -> Sequence[Thing]:
        """One thing a target."""
        targets, value = statement.targets, statement.value
        if isinstance(value, tree.Path) and value.name in LEAVES and value.args is not None:
            return [self._leaf(value, targets)]
        thing = self.thing(value)
        things = thing.values if isinstance(thing, Results) else [thing]
        if isinstance(thing, Poison):
            things = [POISON] * len(targets)
        if len(things) != len(targets):
            raise Fault(f"a name for each value is needed, got {len(things)} for {len(targets)}")
        return things

    def _leaf(self, path: tree.Path, targets: Sequence[tree.Target]) -> Thing:
        """`x: f32[4, 8] = input("x")`"""
        assert path.args is not None
        things = [self.thing(arg.value) for arg in path.args]
        type_ = self.type(targets[0].type, dynamic=True) if targets[0].type else None
        if len(targets) != 1 or targets[0].type is None or len(things) != 1:
            raise Fault(f'a leaf needs a name and a type, as in x: f32[4] = {path.name}("x")')
        if not isinstance(things[0], str) or path.name not in ("weight", "input", "cache"):
            raise Fault('weight("name"), input("name") or cache("name") is needed')
        if type_ is None:
            return POISON
        value = leaf(path.name, things[0], type_)
        self.note(value.node)
        return value

    def _bind(self, target: tree.Target, thing: Thing) -> None:
        name = spell(target)
        scope = self.trace.level.scope
        if name in scope:
            raise Fault(f"{name} has a value already, a name of its own is needed")
        scope[name] = POISON
        wanted = None if target.type is None else self.type(target.type, dynamic=True)
        if isinstance(thing, int | float) and wanted is not None:
            scope[name] = self.number(thing, wanted, target.span)
        elif isinstance(thing, Value):
            if wanted is not None and thing.type != wanted:
                raise Fault(f"{name} is written {wanted}, its rule says {thing.type}")
            scope[name] = thing
            if thing.node.op != "param":
                self.trace.name(thing, name, whole=True)
        elif not isinstance(thing, Poison):
            raise Fault(f"a value is needed, got {describe(thing)}")

    # expressions

    def note(self, made: Node) -> None:
        super().note(made)
        self.made[made] = None

    def path(self, path: tree.Path) -> Thing:
        if path.args is not None:
            return self._call(path)
        name = spell(path)
        scope = self.trace.level.scope
        if name in scope:
            return scope[name]
        if name in BUILTINS:
            return BUILTINS[name]
        raise Fault(f"there is no {name} here{nearest(name, list(scope))}")

    def _call(self, path: tree.Path) -> Thing:
        assert path.args is not None
        fn = self.kernels.get(path.name)
        if fn is None:
            return self.call_op(path, list(self.kernels))
        given = self.given(path.args)
        if any(isinstance(g.thing, Poison) for g in given):
            return POISON
        if len(given) != len(fn.params):
            needs = f"{path.name} takes {len(fn.params)} values"
            raise Fault(f"{needs}, got {len(given)}")
        made = call(
            fn, [self._operand(g, p.types[0]) for g, p in zip(given, fn.params, strict=True)]
        )
        self.note(made)
        if len(made.types) == 1:
            return made.result()
        return Results(path.name, tuple(made.result(i) for i in range(len(made.types))))

    def _operand(self, given: Given, type_: Type) -> Value:
        if isinstance(given.thing, int | float):
            return self.number(given.thing, type_, given.span)
        if not isinstance(given.thing, Value) or given.thing.type != type_:
            raise Fault(f"{type_} is needed, got {describe(given.thing)}", given.span)
        return given.thing


def spell(place: tree.Path | tree.Target) -> str:
    """A place as one name: `l3.attend.q`, `kv[3].k`."""
    out = place.name
    for sub in place.subs:
        if isinstance(sub, tree.Member):
            out += f".{sub.name}"
        else:
            index = [str(v.value) if isinstance(v, tree.Literal) else "?" for v in sub.values]
            out += f"[{', '.join(index)}]"
    return out
