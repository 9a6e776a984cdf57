"""Fusions keep bits, whatever the program: random programs, every pass alone and held back."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from random_programs import ROWS, random_graph

import passes
from compiler.encode import encode
from compiler.formats import FORMATS
from compiler.graph import Graph
from compiler.target import HOST, NUMERICS, Options
from compiler.values import Rows, Value, Weight
from compiler.verify import verify
from runtime.vm import Environment, caches_of, run

SEEDS = range(40)
FUSIONS = passes.names()
HOLDS = {"all": FUSIONS, "none": (), **{f"not {n}": (n,) for n in FUSIONS}} | {
    f"only {n}": tuple(m for m in FUSIONS if m != n) for n in FUSIONS
}


def environment(graph: Graph) -> Environment:
    """The same contents for the same leaves."""
    inputs: dict[str, Value] = {}
    weights: dict[str, Weight] = {}
    for n in graph.nodes():
        if n.op not in ("input", "weight"):
            continue
        name, t = str(n.attr("name")), n.types[0]
        if t.dtype == "rows":
            seq, pos = np.zeros(ROWS, np.int32), np.arange(ROWS, dtype=np.int32)
            inputs[name] = Rows(seq, pos, np.arange(ROWS, dtype=np.int32))
            continue
        rng = np.random.default_rng(sum(name.encode()))
        values = (rng.standard_normal(t.shape) / 4).astype(np.float32)
        if n.op == "weight":
            weights[name] = encode(FORMATS[t.dtype], values)
        else:
            inputs[name] = values
    return Environment(inputs, weights.__getitem__, caches_of(graph))


def bits(graph: Graph) -> dict[str, bytes]:
    return {name: _bits(v) for name, v in run(graph, environment(graph)).items()}


def _bits(value: Value) -> bytes:
    assert isinstance(value, np.ndarray)
    nan = np.isnan(value)
    return np.where(nan, np.float32(np.nan), value).tobytes() + nan.tobytes()


def passed(graph: Graph, numerics: str, hold: tuple[str, ...], dump: bool = False) -> Graph:
    """The graph behind all passes, verified after each."""
    options = Options(numerics=numerics, hold=hold, dump=dump)

    def check(name: str, before: Graph, after: Graph) -> None:
        assert [(n, v.type) for n, v in before.results] == [(n, v.type) for n, v in after.results]
        verify(after)

    return passes.run(graph, options, HOST, check)


def kinds(graph: Graph) -> Counter[str]:
    return Counter(n.function.kind for n in graph.nodes() if n.op == "call")


@pytest.mark.parametrize("seed", SEEDS)
def test_bits_of_random_programs(seed: int) -> None:
    graph = verify(random_graph(seed))
    numerics = NUMERICS[seed % len(NUMERICS)]
    want = bits(passed(graph, numerics, HOLDS["all"]))
    for name in ("none", *list(HOLDS)[2 + seed % 3 :: 3]):
        assert bits(passed(graph, numerics, HOLDS[name])) == want, name
    assert bits(passed(graph, numerics, HOLDS["none"], dump=True)) == want


def test_random_programs_make_every_pass_fire_alone_and_beside_others() -> None:
    beside, alone = Counter[str](), Counter[str]()
    for seed in SEEDS:
        numerics = NUMERICS[seed % len(NUMERICS)]
        graph = random_graph(seed)
        beside += kinds(passes.run(graph, Options(numerics=numerics), HOST))
        for name in FUSIONS:
            options = Options(numerics=numerics, hold=HOLDS[f"only {name}"])
            alone += kinds(passes.run(graph, options, HOST))
    assert set(beside) == set(alone) == set(FUSIONS), (beside, alone)
    assert min(*beside.values(), *alone.values()) >= 5, (beside, alone)
