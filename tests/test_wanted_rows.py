"""Wanted rows that are not a step's first ones: gathered alone, and in the kernel of their norm."""

from __future__ import annotations

import numpy as np
import pytest

import passes
from compiler.fuzz.check import check
from compiler.fuzz.generate import Case, Step, inputs_of
from compiler.graph import Graph, leaf
from compiler.ops import apply
from compiler.program import Program
from compiler.target import Options
from compiler.types import ROWS, Type
from compiler.verify import verify

WIDTH = 64
# a prompt's last row; the last rows of three sequences; some of a chunk; one behind the first
STEPS = (Step(5, (4,)), Step(9, (1, 4, 8)), Step(17, (2, 3, 15)), Step(2, (1,)))
PLACES = np.array([(0, at) for at in range(sum(s.rows for s in STEPS))], np.int32)


def case(numerics: str, hold: tuple[str, ...]) -> Case:
    """x, a wanted row of it, and a projection of its norm, which one kernel may gather."""
    kinds = {"x": (ROWS, WIDTH), "g": (WIDTH,), "w": (40, WIDTH)}
    x, g, w = (leaf("input", name, Type("f32", shape)) for name, shape in kinds.items())
    picked = apply("wanted", x, leaf("input", "rows", Type("rows", (ROWS,))))
    y = apply("linear", apply("rmsnorm", picked, g, eps=1e-5), w)
    graph = verify(Graph((("picked", picked), ("y", y))))
    rng = np.random.default_rng(3)
    values = {
        name: rng.standard_normal([len(PLACES) if d == ROWS else d for d in shape]).astype("f4")
        for name, shape in kinds.items()
    }
    program = Program("wanted_rows", graph, inputs_of(graph.nodes()))
    options = Options(numerics, max_rows=17, max_seqs=8, hold=hold)
    return Case(program.name, program, {**values, "rows": PLACES}, PLACES, options, STEPS)


@pytest.mark.parametrize("hold", [(), passes.names()], ids=["fused", "held"])
def test_a_step_gives_the_rows_that_it_wants(hold: tuple[str, ...]) -> None:
    report = check([case("f32", hold)], ("host",))
    assert not report.failures, "\n".join(map(str, report.failures))
    assert not report.refused
    assert bool(report.fired["embed-norm"]) != bool(hold)
