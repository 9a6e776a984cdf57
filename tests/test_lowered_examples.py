"""The passes over all examples: bits fused and held back, shared functions, every pass in use."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import passes
from compiler.graph import Graph
from compiler.program import Metadata, Program
from compiler.target import HOST, NUMERICS, Options
from compiler.types import Type
from compiler.values import Value
from compiler.verify import functions, verify
from frontend.elaborate import elaborate
from frontend.parser import parse_graph
from passes.lower_numerics import tables
from runtime.gguf import Checkpoint, Unsupported, open_checkpoint
from runtime.synthetic import PRESETS, write_synthetic
from runtime.vm import Session, run_program
from tests.test_passes import program as read

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.model"))
SMALL = {dims.architecture: dims for name, dims in PRESETS.items() if name.startswith("tiny")}
HOLDS = ((), passes.names(), *((name,) for name in passes.names()))
STEPS = (  # tokens, sequences, positions, wanted rows: a prompt of two sequences, then one row each
    ([3, 1, 4, 1, 5], [0, 0, 1, 0, 1], [0, 1, 0, 2, 1], [3, 4]),
    ([9, 2], [1, 0], [2, 3], [0, 1]),
)

# Fusions of what the examples do not do, or whose place a larger one takes in all of them.
ELSEWHERE = {"add-norm-quant", "elementwise-chain", "norm-quant"}

each_example = pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
each_numerics = pytest.mark.parametrize("numerics", NUMERICS)


@cache
def checkpoint(architecture: str, layers: int, weights: str = "q8_0") -> Checkpoint:
    dims = replace(SMALL[architecture], layers=layers)
    with TemporaryDirectory() as folder:
        return open_checkpoint(write_synthetic(Path(folder) / "m.gguf", dims, weights))


def architecture(path: Path) -> str | None:
    """Whose metadata an example reads; None of an op program."""
    found = re.search(r'meta\("(\w+)\.', path.read_text())
    return found and found[1]


@cache
def program(path: Path, layers: int = 2) -> Program:
    arch = architecture(path)
    if arch is None:
        return elaborate(path.read_text(), path.name)
    held = checkpoint(arch, layers)
    tensors = {
        t.name: t.format.name if isinstance(t.format, Unsupported) else Type(t.format.name, t.shape)
        for t in held.tensors.values()
    }
    return elaborate(path.read_text(), path.name, Metadata(str(held.path), held.meta, tensors))


def bits(path: Path, graph: Graph) -> list[bytes]:
    arch, whole = architecture(path), program(path).with_graph(graph)
    if arch is None:
        return [_bits(v) for v in run_program(whole).values()]
    session = Session(whole, checkpoint(arch, 2).weight, context=64)
    return [_bits(v) for step in STEPS for v in session.step(*step)]


def _bits(value: Value) -> bytes:
    assert isinstance(value, np.ndarray)
    assert not np.isnan(value).any(), "an example's values are numbers"
    return value.tobytes()


@each_numerics
@each_example
def test_bits_are_those_of_the_ops_apart(path: Path, numerics: str) -> None:
    graph = verify(program(path).graph)

    def passed(hold: tuple[str, ...], dump: bool = False) -> Graph:
        options = Options(numerics=numerics, hold=hold, dump=dump)
        return passes.run(graph, options, HOST, lambda _, __, after: [verify(after)])

    want = bits(path, passed(passes.names()))
    for hold in HOLDS:
        assert bits(path, passed(hold)) == want, hold
    assert bits(path, passed((), dump=True)) == want


@each_numerics
@each_example
def test_every_stage_reads_back_as_the_same_nodes(path: Path, numerics: str) -> None:
    stages = [program(path).graph]
    options = Options(numerics=numerics)
    passes.run(stages[0], options, HOST, lambda _, __, after: stages.append(after))
    for graph in {id(g): g for g in stages}.values():
        back = parse_graph(str(graph), path.name)
        assert (back.results, back.effects) == (graph.results, graph.effects)
        assert str(back) == str(graph)


@each_numerics
@pytest.mark.parametrize("path", [p for p in EXAMPLES if architecture(p)], ids=lambda p: p.stem)
def test_layers_share_their_functions(path: Path, numerics: str) -> None:
    few, many = (
        passes.run(program(path, layers).graph, Options(numerics=numerics), HOST)
        for layers in (3, 30)
    )
    assert len(functions(few)) == len(functions(many)) > 0
    calls = Counter(n.function for n in many.nodes() if n.op == "call")
    assert max(calls.values()) >= 30


def test_every_fusion_fires_in_an_example_and_every_rule_there_or_in_its_files() -> None:
    fired: Counter[str] = Counter()
    for path in EXAMPLES:
        for numerics in NUMERICS:
            options = Options(numerics=numerics)
            graph = passes.run(
                program(path).graph, options, HOST, on_rule=lambda name: fired.update([name])
            )
            fired.update(n.function.kind for n in graph.nodes() if n.op == "call")
    assert set(passes.names()) - ELSEWHERE <= set(fired), fired
    for path in (Path(__file__).parent / "passes" / "lower-numerics").glob("*.model"):
        graph, options = read(path.read_text())
        passes.run(graph, options, HOST, on_rule=lambda name: fired.update([name]))
    assert {rule.name for table in tables(1) for rule in table} <= set(fired), fired
