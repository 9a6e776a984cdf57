"""The reference VM: a walk over a graph's nodes that asks each op's record for its value.

`run` evaluates any graph, fused or not, before or behind any pass: exactly, or by meaning in
float64. `Session` drives a model: steps of token rows over caches that it keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from compiler import exact, ops
from compiler.diagnostics import UserError
from compiler.formats import F16, F32
from compiler.graph import Function, Graph, Node
from compiler.graph import Value as Ref
from compiler.program import Program
from compiler.types import FLOATS
from compiler.values import Cache, Rows, Value, Weight
from runtime.inputs import default_inputs

__all__ = ["Environment", "Session", "caches_of", "default_inputs", "run", "run_program"]

NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": np.float32, "i32": np.int32, "i64": np.int64}
Trace = Callable[[Ref, Value], None]


@dataclass(frozen=True)
class Environment:
    """What leaves stand for. Caches are updated in place: a second run goes on from the first."""

    inputs: Mapping[str, Value] = field(default_factory=dict[str, Value])
    weight: Callable[[str], Weight] | None = None
    caches: Mapping[str, Cache] = field(default_factory=dict[str, Cache])


@dataclass(frozen=True)
class Schedule:
    """Nodes in program order, and which nodes' values nobody reads after each of them."""

    nodes: tuple[Node, ...]
    last_read: tuple[tuple[Node, ...], ...]


class RealCache(Cache):
    """A cache of float64 entries, for runs by meaning."""

    @property
    def _dtype(self) -> type[np.floating]:
        return np.float64


def run(
    graph: Graph, env: Environment, meaning: bool = False, trace: Trace | None = None
) -> dict[str, Value]:
    """The graph's results by name; exact values, or with `meaning` float64 ones.

    trace(value, what it holds) is called for every named result of an op, in program order.
    """
    return _run(graph, schedule(graph), env, meaning, trace)


def run_program(
    program: Program, overrides: Mapping[str, NDArray[Any]] | None = None, meaning: bool = False
) -> dict[str, Value]:
    """An op program's results, from its inputs' arrays, literals or default pattern."""
    inputs = default_inputs(program, overrides)
    return run(program.graph, Environment(inputs, None, caches_of(program.graph, meaning)), meaning)


def schedule(graph: Graph) -> Schedule:
    return _schedule(graph.nodes(), graph.roots)


def caches_of(graph: Graph, meaning: bool = False) -> dict[str, Cache]:
    """An empty cache for each that the graph names."""
    made: dict[str, Cache] = {}
    for n in graph.nodes():
        if n.op == "cache":
            kind = F16 if n.types[0].dtype == "cache_f16" else F32
            entry = cast(tuple[int, ...], n.types[0].shape)
            made[str(n.attr("name"))] = (RealCache if meaning else Cache)(entry, kind)
    return made


def _run(
    graph: Graph, order: Schedule, env: Environment, meaning: bool, trace: Trace | None
) -> dict[str, Value]:
    def seen(n: Node, results: tuple[Value, ...]) -> None:
        if trace is None or not n.operands:
            return
        for index, name in enumerate(graph.note(n).names):
            if name is not None:
                trace(n.result(index), results[index])

    with np.errstate(all="ignore"):
        values = _walk(order, (), env, meaning, seen)
    return {name: values[v.node][v.index] for name, v in graph.results}


Results = dict[Node, tuple[Value, ...]]


def _walk(
    order: Schedule,
    arguments: tuple[Value, ...],
    env: Environment,
    meaning: bool,
    seen: Callable[[Node, tuple[Value, ...]], None] | None = None,
) -> Results:
    """Every node once; values that are read no more are dropped, results and effects stay."""
    values: Results = {}
    for n, dead in zip(order.nodes, order.last_read, strict=True):
        if n.op == "param":
            values[n] = (arguments[int(cast(int, n.attr("index")))],)
        elif not n.operands:
            values[n] = (_leaf(n, env, meaning),)
        else:
            operands = [values[v.node][v.index] for v in n.operands]
            values[n] = _compute(n, operands, env, meaning)
        if seen is not None:
            seen(n, values[n])
        for d in dead:
            del values[d]
    return values


def _compute(
    n: Node, operands: Sequence[Value], env: Environment, meaning: bool
) -> tuple[Value, ...]:
    if n.op == "call":
        inner = _walk(_of_function(n.function), tuple(operands), env, meaning)
        return tuple(inner[v.node][v.index] for v in n.function.results)
    op = ops.get(n.op)
    if "weight" not in op.traits:
        operands = [_plain(v, meaning) if isinstance(v, Weight) else v for v in operands]
    compute = op.meaning if meaning else op.exact
    result = compute(**ops.bound(op, operands, dict(n.attrs)))
    return result if isinstance(result, tuple) else (result,)


def _leaf(n: Node, env: Environment, meaning: bool) -> Value:
    if n.op == "const":
        dtype = n.types[0].dtype
        real = meaning and dtype in FLOATS
        value = np.asarray(n.attr("value"), np.float64 if real else NUMPY[dtype])
        return exact.round_bf16(value) if dtype == "bf16" and not real else value
    name = str(n.attr("name"))
    if n.op == "cache":
        return env.caches[name]
    if n.op == "weight":
        assert env.weight is not None, name
        return env.weight(name)
    value = env.inputs[name]
    if meaning and isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value.astype(np.float64)
    return value


def _plain(weight: Weight, meaning: bool) -> Value:
    """A weight of plain elements as the array that ops other than projections take."""
    if meaning:
        return weight.prepared("real", lambda: weight.values().astype(np.float64))
    if weight.format is F16:
        return weight.prepared("plain", lambda: exact.to_f16(weight.values()))
    return weight.prepared("plain", weight.values)


@cache
def _of_function(fn: Function) -> Schedule:
    """Params, then constants, which are no members of a body, then the body."""
    read = (v.node for n in fn.body for v in n.operands)
    constants = dict.fromkeys(n for n in read if n.op == "const")
    return _schedule((*fn.params, *constants, *fn.body), fn.results)


def _schedule(nodes: tuple[Node, ...], kept: Iterable[Ref]) -> Schedule:
    last = {n: at for at, n in enumerate(nodes)}
    for at, n in enumerate(nodes):
        last |= {v.node: at for v in n.operands}
    roots = {v.node for v in kept}
    dead: list[list[Node]] = [[] for _ in nodes]
    for n, at in last.items():
        if n not in roots:
            dead[at].append(n)
    return Schedule(nodes, tuple(map(tuple, dead)))


class Session:
    """A model with its weights and the caches of its sequences.

    program: a model whose graph has the results "logits" and "next". weight: a tensor by name,
    asked for once each. context: positions that a sequence may have.
    """

    def __init__(
        self,
        program: Program,
        weight: Callable[[str], Weight],
        context: int | None = None,
        meaning: bool = False,
    ) -> None:
        self.program = program
        self.context = context or program.context_length
        self._meaning = meaning
        self._order = schedule(program.graph)
        self._caches = caches_of(program.graph, meaning)
        self._weight = cache(weight)
        self._length: dict[int, int] = {}

    def step(
        self,
        tokens: Sequence[int],
        seqs: Sequence[int],
        positions: Sequence[int],
        wanted: Sequence[int],
        trace: Trace | None = None,
    ) -> tuple[NDArray[np.floating], NDArray[np.int32]]:
        """One step of rows, row t being token t at its position of its sequence.

        Returns logits [R, V] and next tokens i32[R] of the rows `wanted`.
        """
        if not len(tokens) == len(seqs) == len(positions):
            counts = f"{len(tokens)}, {len(seqs)} and {len(positions)}"
            raise UserError(f"a step needs a token, a sequence and a position a row, got {counts}")
        self._reserve(seqs, positions)
        rows = Rows(*(np.asarray(v, np.int32) for v in (seqs, positions, wanted)))
        inputs = {"token": np.asarray(tokens, np.int32), "rows": rows}
        env = Environment(inputs, self._weight, self._caches)
        results = _run(self.program.graph, self._order, env, self._meaning, trace)
        return cast(Any, results["logits"]), cast(Any, results["next"])

    def drop(self, seq: int) -> None:
        """Forgets a sequence, so that it may start again at position 0."""
        self._length.pop(seq, None)
        for held in self._caches.values():
            held.drop(seq)

    def generate(
        self, prompts: Sequence[Sequence[int]], n: int, chunk: int = 64
    ) -> list[list[int]]:
        """n tokens for each prompt, greedily; prompt i is sequence i; `chunk`: rows a step."""
        out: list[list[int]] = [[] for _ in prompts]
        for seq, token in self.stream(prompts, n, chunk):
            out[seq].append(token)
        return out

    def stream(
        self, prompts: Sequence[Sequence[int]], n: int, chunk: int = 64
    ) -> Iterator[tuple[int, int]]:
        """(sequence, token) as they come: prompts in chunks, then one row a sequence a step."""
        if not all(len(p) for p in prompts):
            raise UserError("a prompt needs at least one token")
        if n < 1:
            return
        last: dict[int, int] = {}
        rows = [(t, s, p) for s, prompt in enumerate(prompts) for p, t in enumerate(prompt)]
        for at in range(0, len(rows), chunk):
            yield from self._emit(rows[at : at + chunk], prompts, last)
        for k in range(n - 1):
            rows = [(last[s], s, len(p) + k) for s, p in enumerate(prompts)]
            for at in range(0, len(rows), chunk):
                yield from self._emit(rows[at : at + chunk], prompts, last)

    def _emit(
        self,
        rows: Sequence[tuple[int, int, int]],
        prompts: Sequence[Sequence[int]],
        last: dict[int, int],
    ) -> Iterator[tuple[int, int]]:
        """A step of (token, sequence, position); next tokens of rows that end their sequence."""
        wanted = [t for t, (_, s, p) in enumerate(rows) if p >= len(prompts[s]) - 1]
        tokens, seqs, positions = zip(*rows, strict=True)
        _, chosen = self.step(tokens, seqs, positions, wanted)
        for t, token in zip(wanted, chosen.tolist(), strict=True):
            last[rows[t][1]] = token
            yield rows[t][1], token

    def _reserve(self, seqs: Sequence[int], positions: Sequence[int]) -> None:
        """UserError where a row is not its sequence's next, or the context is full."""
        for seq, pos in zip(seqs, positions, strict=True):
            length = self._length.get(seq, 0)
            if pos != length:
                raise UserError(f"sequence {seq} needs position {length} next, got {pos}")
            if self.context is not None and pos >= self.context:
                raise UserError(f"position {pos} needs a context above {self.context} tokens")
            self._length[seq] = length + 1
