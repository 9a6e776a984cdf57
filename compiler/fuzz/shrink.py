"""A failing case made small: each step is a simpler case that fails in the same way.

Candidates of one kind are tried together, in one translation unit where they share rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

import passes
from compiler.fuzz.check import Failure, Report, check
from compiler.fuzz.draw import Array
from compiler.fuzz.generate import Case, inputs_of
from compiler.fuzz.reference import inputs_of as vm_inputs
from compiler.fuzz.spell import static
from compiler.graph import Graph, Node, Note, Value, leaf, node, rebuild
from compiler.ops import OpError, build
from compiler.verify import VerifyError, verify
from runtime.vm import Environment, caches_of, run

BATCH = 16  # candidates a try
Candidates = Iterator[Case]


@dataclass(frozen=True)
class Small:
    """What is left of a case, how it fails, how many candidates were tried."""

    case: Case
    failure: Failure
    tried: int


def shrink(case: Case, targets: Sequence[str], seconds: float = 240.0) -> Small | None:
    """The case made small; None where it does not fail here."""
    failure = fails([case], targets)[0]
    if failure is None:
        return None
    small, until = Small(case, failure, 1), time.monotonic() + seconds
    kinds = list(KINDS)
    while kinds and time.monotonic() < until:
        better = _step(small, kinds[0], targets)
        if better.case is small.case:
            small = better
            kinds.pop(0)
        else:
            small, kinds = better, list(KINDS)
    return small


def _step(small: Small, kind: Callable[[Case], Candidates], targets: Sequence[str]) -> Small:
    """The simplest candidate of a kind that fails alike, or the same case again."""
    candidates = [c for c in kind(small.case) if legal(c)]
    tried = small.tried
    for at in range(0, len(candidates), BATCH):
        part = [replace(c, name=f"c{i}") for i, c in enumerate(candidates[at : at + BATCH])]
        tried += len(part)
        for made, found in zip(part, fails(part, targets), strict=True):
            if found is not None and alike(found, small.failure):
                named = replace(made, name=small.case.name)
                return Small(named, replace(found, case=small.case.name), tried)
    return replace(small, tried=tried)


def legal(case: Case) -> bool:
    try:
        verify(case.program.graph)
    except VerifyError:
        return False
    return bool(case.program.graph.results)


def alike(a: Failure, b: Failure) -> bool:
    """Whether two failures are of one kind: found the same way, an error of the same type."""
    return _kind(a) == _kind(b)


def _kind(failure: Failure) -> tuple[str, str]:
    differs = "expected" in failure.text and "given" in failure.text
    word = failure.text.split(":")[0].split("(")[0]
    return failure.way.split(",")[0], "differs" if differs else word


def fails(cases: Sequence[Case], targets: Sequence[str]) -> list[Failure | None]:
    """How each of the cases fails, None where it does not."""
    found: dict[str, Failure] = {}
    groups: dict[object, list[Case]] = {}
    for c in cases:
        limits = (c.options.max_rows, c.options.dump)
        groups.setdefault((c.places.tobytes(), c.steps, limits), []).append(c)
    for group in groups.values():
        for failure in check(group, targets, Report()).failures:
            found.setdefault(failure.case, failure)
    return [found.get(c.name) for c in cases]


def with_graph(case: Case, graph: Graph, arrays: dict[str, Array] | None = None) -> Case:
    """The case of another graph, its inputs those that the graph reads."""
    inputs = inputs_of(graph.nodes())
    held = {**case.inputs, **(arrays or {})}
    program = replace(case.program, graph=graph, inputs=inputs)
    return replace(case, program=program, inputs={i.name: held[i.name] for i in inputs})


def ops_of(graph: Graph) -> list[Node]:
    return [n for n in graph.nodes() if n.operands]


def _options(case: Case) -> Candidates:
    """One option at a time back to its default."""
    plain = replace(case.options, kv="")
    for options in (
        replace(plain, numerics="f32", hold=()),
        replace(case.options, hold=()),
        replace(case.options, numerics="f32"),
        replace(case.options, numerics="int8"),
        replace(case.options, dump=False),
        replace(case.options, hold=passes.names()),
        plain,
    ):
        if _weight(options) < _weight(case.options):
            yield replace(case, options=options)


def _weight(options: Any) -> tuple[int, ...]:
    held = len(options.hold) if options.hold != passes.names() else 1
    return (("f32", "int8", "int8x2").index(options.numerics), held, bool(options.kv), options.dump)


def _fixed_rows(case: Case) -> Candidates:
    """The same rows in one step of a fixed count."""
    made = static(case) if case.steps else None
    if made is not None:
        yield made


def _results(case: Case) -> Candidates:
    """One result alone, or without one of them."""
    results = case.program.graph.results
    if len(results) > 1:
        for kept in results:
            yield with_graph(case, replace(case.program.graph, results=(kept,)))
        for left in results:
            rest = tuple(r for r in results if r is not left)
            yield with_graph(case, replace(case.program.graph, results=rest))


def _effects(case: Case) -> Candidates:
    """Without a cache version that nothing needs."""
    for v in case.program.graph.effects:
        rest = tuple(e for e in case.program.graph.effects if e != v)
        yield with_graph(case, replace(case.program.graph, effects=rest))


def _earlier(case: Case) -> Candidates:
    """A result moved up to what it is made of."""
    results = case.program.graph.results
    for at, (name, v) in enumerate(results):
        for operand in dict.fromkeys(v.node.operands):
            if operand.type.is_number and operand.node.op != "const":
                moved = (*results[:at], (name, operand), *results[at + 1 :])
                yield with_graph(case, replace(case.program.graph, results=moved))


def _cut(case: Case) -> Candidates:
    """A value inside as an input, with the numbers that the VM gives it."""
    graph = case.program.graph
    held: dict[Value, Any] = {}
    env = Environment(vm_inputs(case), None, caches_of(graph))
    try:
        run(graph, env, trace=lambda v, array: held.setdefault(v, array))
    except Exception:
        return
    made: list[Case] = []
    for v, array in held.items():
        if not isinstance(array, np.ndarray) or not v.type.is_number:
            continue
        name = f"y{sum(1 for i in case.program.inputs if i.name.startswith('y'))}"
        while any(i.name == name for i in case.program.inputs):
            name += "_"
        taken = replaced(graph, {v: leaf("input", name, v.type)})
        made.append(with_graph(case, taken, {name: array}))
    yield from sorted(made, key=lambda c: len(ops_of(c.program.graph)))


def _bypass(case: Case) -> Candidates:
    """An op's operand in its place."""
    graph = case.program.graph
    for n in reversed(ops_of(graph)):
        for operand in dict.fromkeys(n.operands):
            if operand.type == n.types[0]:
                yield with_graph(case, replaced(graph, {n.result(): operand}))


def replaced(graph: Graph, others: dict[Value, Value]) -> Graph:
    """The graph with other values in the place of some."""

    def change(old: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        made = node(old.op, operands, dict(old.attrs), old.types)
        return tuple(others.get(old.result(i), made.result(i)) for i in range(len(old.types)))

    new = rebuild(graph, change)
    leaves = {v.node: Note((str(v.node.attr("name")),)) for v in others.values() if is_input(v)}
    return new.with_notes({**new.notes, **leaves})


def is_input(v: Value) -> bool:
    return v.node.op == "input"


def _dims(case: Case) -> Candidates:
    """One size smaller, wherever it stands."""
    found = {d for n in case.program.graph.nodes() if not n.operands for d in n.types[0].shape}
    for d in sorted((d for d in found if isinstance(d, int) and d > 1), reverse=True):
        for smaller in dict.fromkeys((1, 2, 32, 64, d // 2, d - 32, d - 1)):
            if 0 < smaller < d and (made := resized(case, d, smaller)) is not None:
                yield made


def resized(case: Case, old: int, new: int) -> Case | None:
    """Every axis of one size at another; None where an op does not take that."""
    rows = not case.steps and len(case.places) == old

    def shape(dims: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(new if d == old else d for d in dims)

    def change(n: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        if not n.operands:
            types = [t.with_shape(*shape(t.shape)) for t in n.types]
            return (node(n.op, (), dict(n.attrs), types).result(),)
        attrs: dict[str, Any] = dict(n.attrs)
        try:
            made = build(n.op, operands, attrs)
        except OpError:
            made = build(n.op, operands, {k: _resized(v, old, new) for k, v in attrs.items()})
        return tuple(made.result(i) for i in range(len(made.types)))

    try:
        graph = rebuild(case.program.graph, change)
    except OpError:
        return None
    arrays: dict[str, Array] = {}
    for declared in case.program.inputs:
        if declared.name in case.inputs:
            array = case.inputs[declared.name]
            axes = [d == old for d in declared.type.shape] + [False] * array.ndim
            arrays[declared.name] = array[
                tuple(slice(new if a else None) for a in axes[: array.ndim])
            ]
    made = with_graph(replace(case, inputs=arrays), graph)
    places = case.places[:new] if rows else case.places
    return replace(made, places=places, options=replace(made.options, max_rows=max(1, len(places))))


def _resized(value: Any, old: int, new: int) -> Any:
    if isinstance(value, tuple):
        return tuple(new if v == old else v for v in value)
    return new if value == old and isinstance(value, int) else value


def _values(case: Case) -> Candidates:
    """Inputs of plainer numbers: all of them, then one at a time."""
    floats = {n: a for n, a in case.inputs.items() if a.dtype.kind == "f"}
    for plainer in (_pattern, _ones, _finite, _rounded):
        done = {n: plainer(a) for n, a in floats.items()}
        changed = {n: a for n, a in done.items() if a.tobytes() != floats[n].tobytes()}
        if changed:
            yield replace(case, inputs={**case.inputs, **changed})
        for n, a in islice(changed.items(), BATCH):
            yield replace(case, inputs={**case.inputs, n: a})


def _pattern(a: Array) -> Array:
    return (((np.arange(a.size) % 7) - 3) * 0.5).astype(a.dtype).reshape(a.shape)


def _ones(a: Array) -> Array:
    return a if (a == _pattern(a)).all() else np.ones_like(a)


def _finite(a: Array) -> Array:
    return np.where(np.isfinite(a), a, 1).astype(a.dtype)


def _rounded(a: Array) -> Array:
    plain = (a == _pattern(a)).all() or (a == 1).all()
    return a if plain else np.clip(np.rint(4 * _finite(a)) / 4, -8, 8).astype(a.dtype)


KINDS: tuple[Callable[[Case], Candidates], ...] = (
    _options, _fixed_rows, _results, _cut, _earlier, _effects, _bypass, _dims, _values,
)  # fmt: skip
