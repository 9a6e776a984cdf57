"""What a case must give: its unfused program on the VM; and what its fused one gives there."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

import passes
from compiler.fuzz.draw import Array
from compiler.fuzz.generate import Case
from compiler.graph import Graph
from compiler.program import Input
from compiler.target import HOST, Target
from compiler.types import ROWS
from compiler.values import Rows, Value
from compiler.verify import verify
from passes.expose import expose
from runtime.inputs import value_of
from runtime.vm import Environment, caches_of, run


@dataclass(frozen=True)
class Lowered:
    """A case behind its passes: `plain` with every fusion held back, `fused` as it is compiled.

    fired: how often each pass fused something, each rule rewrote.
    """

    case: Case
    plain: Graph
    fused: Graph
    fired: Counter[str] = field(default_factory=Counter[str])


def lowered(case: Case, target: Target = HOST) -> Lowered:
    """Both graphs, verified."""
    fired: Counter[str] = Counter()

    def passed(name: str, before: Graph, after: Graph) -> None:
        fired[name] += len(calls(after) - calls(before))

    def ruled(name: str) -> None:
        fired[name] += 1

    bare = replace(case.options, hold=passes.names(), dump=False)
    graph = case.program.graph
    plain = passes.run(graph, bare, target)
    fused = passes.run(graph, case.options, target, passed, ruled)
    fused = expose(fused) if case.options.dump else fused
    return Lowered(case, verify(plain), verify(fused), fired)


def calls(graph: Graph) -> set[object]:
    return {n for n in graph.nodes() if n.op == "call"}


def expected(case: Case, graph: Graph) -> dict[str, Array]:
    """The graph's results on the VM, all rows in one step."""
    program = case.program.with_graph(graph)
    env = Environment(inputs_of(case), None, caches_of(program.graph))
    return cast(dict[str, Array], run(graph, env))


def inputs_of(case: Case) -> dict[str, Value]:
    """The VM's values of the inputs; T counts all rows."""
    rows = sum(step.rows for step in case.steps)
    out = {i.name: value_of(fixed(i, rows), case.inputs[i.name]) for i in case.program.inputs}
    if case.steps and "rows" in out:
        pairs = case.inputs["rows"]
        out["rows"] = Rows(pairs[:, 0].copy(), pairs[:, 1].copy(), wanted_rows(case))
    return out


def fixed(declared: Input, rows: int) -> Input:
    """The input with T as a number."""
    shape = tuple(rows if d == ROWS else d for d in declared.type.shape)
    return replace(declared, type=declared.type.with_shape(*shape))


def wanted_rows(case: Case) -> NDArray[np.int32]:
    """The wanted rows of all steps, counted over all rows."""
    starts = np.cumsum([0, *(step.rows for step in case.steps)])
    found = [
        start + row
        for start, step in zip(starts[:-1], case.steps, strict=True)
        for row in step.wanted
    ]
    return np.array(found, np.int32)
