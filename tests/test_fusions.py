"""Fusions keep bits, whatever the program: random programs, every pass alone and held back."""

from __future__ import annotations

import random
from collections import Counter
from graphlib import CycleError, TopologicalSorter

import numpy as np
import pytest

import passes
from compiler.encode import encode
from compiler.formats import FORMATS
from compiler.graph import Graph, Node, leaf
from compiler.ops import apply
from compiler.target import HOST, NUMERICS, Options
from compiler.types import Type
from compiler.values import Rows, Value, Weight
from compiler.verify import verify
from frontend.elaborate import elaborate
from passes.outline import Units
from runtime.vm import Environment, caches_of, run
from tests.random_programs import ROWS, random_graph

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


x = leaf("input", "x", Type("f32", (ROWS, 64)))
rows = leaf("input", "rows", Type("rows", (ROWS,)))


def test_units_refuse_ways_out_and_back() -> None:
    a, b = apply("silu", x), apply("exp", x)
    between = apply("softmax", a)
    last = apply("add", between, a)
    units = Units(Graph((("y", apply("mul", last, b)),)))
    assert not units.join((a.node, last.node))
    assert units.join((a.node, b.node))
    assert units.of(a.node) == {a.node, b.node}
    assert units.join((between.node, last.node, a.node))
    assert len(units.of(b.node)) == 4
    assert units.fused() == [units.of(last.node)]


def acyclic(units: Units, joined: frozenset[Node]) -> bool:
    """Whether the graph of units, `joined` being one of them, has an order: the plain way."""
    sorter: TopologicalSorter[frozenset[Node]] = TopologicalSorter()
    unit = {n: joined if n in joined else units.of(n) for n in units.order}
    for n, readers in units.after.items():
        for reader in readers:
            if unit[n] is not unit[reader]:
                sorter.add(unit[reader], unit[n])
    try:
        sorter.prepare()
    except CycleError:
        return False
    return True


@pytest.mark.parametrize("seed", range(12))
def test_units_refuse_just_what_has_no_order(seed: int) -> None:
    units, rng, answers = Units(random_graph(seed, 16)), random.Random(seed), Counter[bool]()
    nodes = [n for n in units.order if n.operands]
    for _ in range(60):
        pair = rng.sample(nodes, 2)
        joined = frozenset().union(*map(units.of, pair))
        answers[units.joinable(pair)] += 1
        assert units.joinable(pair) == acyclic(units, joined)
        if len(joined) < 5:
            units.join(pair)
    assert min(answers[True], answers[False]) > 5


def test_units_refuse_two_that_stand_before_each_other() -> None:
    """a -> b and c -> d; once a and d are one, b and c cannot be."""
    a, c = apply("silu", x), apply("exp", x)
    b, d = apply("softmax", a), apply("softmax", c)
    units = Units(Graph((("b", b), ("d", d))))
    assert units.joinable((b.node, c.node))
    assert units.join((a.node, d.node))
    assert not units.joinable((b.node, c.node))
    assert not units.join((b.node, c.node))
    assert units.of(b.node) == {b.node}


def test_units_keep_readers_before_what_writes_over_a_cache() -> None:
    """`early` reads a version that is then written over: its query may not wait for `late`."""
    cache = leaf("cache", "c", Type("cache_f32", (2, 32)))
    query = apply("neg", x)
    early = apply("attention", apply("heads", query, count=2), cache, cache, rows)
    version = apply("append", cache, apply("heads", x, count=2), rows)
    heads = apply("heads", x, count=2)
    late = apply("silu", apply("attention", heads, version, version, rows))
    graph = Graph((("early", early), ("late", late)), (version,))
    units = Units(graph)
    assert not units.joinable((query.node, late.node))
    assert units.joinable((query.node, heads.node))
    order = list(graph.nodes())
    assert order.index(early.node) < order.index(version.node)


def test_equal_parts_are_one_function_and_names_are_the_results() -> None:
    inputs = "input a: f32[4, 64]\ninput b: f32[4, 64]\n"
    text = "p = exp(silu(a))\nq = exp(silu(b))\nreturn p, q\n"
    graph = passes.run(elaborate(inputs + text).graph, Options(), HOST)
    calls = [n for n in graph.nodes() if n.op == "call"]
    assert [graph.note(n).names for n in calls] == [("p",), ("q",)]
    assert calls[0].function is calls[1].function
    lines = [{frame.span.line for o in graph.note(n).origins for frame in o} for n in calls]
    assert lines == [{3}, {4}]
