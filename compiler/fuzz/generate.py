"""A case of a seed: a random program, what feeds it, how it is compiled and cut into steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

import numpy as np

import passes
from compiler.fuzz import draw
from compiler.fuzz.builder import Builder
from compiler.fuzz.calls import random_call
from compiler.fuzz.draw import Array
from compiler.fuzz.fragments import random_fragment
from compiler.graph import Node
from compiler.ops import load
from compiler.program import Input, Program
from compiler.target import NUMERICS, Options
from compiler.types import ROWS, Type

UNIT = 50  # cases that share rows, and so a translation unit
MANY = (17, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 130, 257, 260)  # 17, 257: wider row tiles
# Names that emitted text might use itself; a program's values may be called so all the same.
WORDS = (
    *("w", "x", "y", "s", "n", "r", "d", "i", "l", "q", "k", "v", "b", "at", "dot", "row", "rows"),
    *("block", "lane", "first", "step", "sum", "count", "index", "output", "factor", "scale"),
    *("early", "int", "exp", "float"),
)


@dataclass(frozen=True)
class Step:
    """A step of a program whose rows come in several: how many rows, which of them are wanted."""

    rows: int
    wanted: tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A program and all that decides its bits.

    inputs: a plain array for each input, `rows` as int32[n, 2]; those of T rows hold all steps'.
    places: the rows, sequence and position of each, also where the program does not read them.
    steps: how T rows are cut; empty for programs of fixed rows. weights: names of the inputs that
    may as well be a checkpoint's tensors.
    """

    name: str
    program: Program
    inputs: Mapping[str, Array]
    places: Array
    options: Options
    steps: tuple[Step, ...] = ()
    weights: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Shared:
    """What the cases of a unit have in common: the rows, their steps, whether values are dumped,
    what values are called, which sizes come often."""

    rows: Array
    words: tuple[str, str, str]
    menu: draw.Menu
    steps: tuple[Step, ...] = ()
    dump: bool = field(default=False)


def shared_of(seed: int, unit: int, in_steps: bool | None = None) -> Shared:
    """The rows of a unit; in_steps: whether they come in several steps (None: drawn)."""
    rng = Random(f"{seed}.{unit}")
    stepped = rng.random() < 0.4 if in_steps is None else in_steps
    dump = rng.random() < 0.15
    words = (rng.choice(WORDS), rng.choice(WORDS), rng.choice(WORDS))
    menu = draw.menu(rng)
    many = rng.random()
    if not stepped:
        count = rng.choice(MANY) if many < 0.2 else rng.choice((*draw.COUNTS, 6, 33))
        return Shared(draw.places(count, rng, ordered=False), words, menu, (), dump)
    sizes = [rng.choice((1, 1, 2, 3, 4, 5, 8, 9, 17)) for _ in range(rng.randint(1, 4))]
    if many < 0.3:
        sizes[rng.randrange(len(sizes))] = rng.choice(MANY)
    steps = tuple(Step(n, _wanted(n, rng)) for n in sizes)
    return Shared(draw.places(sum(sizes), rng, ordered=True), words, menu, steps, dump)


def _wanted(rows: int, rng: Random) -> tuple[int, ...]:
    """At least one of the rows, at most 8."""
    return tuple(sorted(rng.sample(range(rows), rng.randint(1, min(rows, 8)))))


def case_of(seed: int, number: int, numerics: str = "all", in_steps: bool | None = None) -> Case:
    """Case `number` of a seed; `numerics`: one, or "all" of them in turn."""
    shared = shared_of(seed, number // UNIT, in_steps)
    for attempt in range(100):
        rng = Random(f"{seed}.{number}.{attempt}")
        rows = ROWS if shared.steps else len(shared.rows)
        b = Builder(rng, rows, words=shared.words, menu=shared.menu)
        _fill(b)
        graph = b.graph()
        if graph.results:
            break
    else:
        raise AssertionError("no program came of a hundred attempts")
    how = draw.style(rng)
    program = Program(f"fuzz_{seed}_{number}", graph, inputs_of(graph.nodes()))
    arrays = _arrays(b, program, how, shared, np.random.default_rng([seed & 0xFFFFFFFF, number]))
    options = _options(rng, numerics, shared)
    return Case(
        program.name, program, arrays, shared.rows, options, shared.steps, frozenset(b.weights)
    )  # fmt: skip


def _fill(b: Builder) -> None:
    """A few fragments and calls; small programs more often."""
    names = sorted(load())
    for _ in range(b.rng.choice((1, 1, 2, 2, 3, 4, 6))):
        if b.chance(0.3):
            random_fragment(b)
        else:
            random_call(b, b.rng.choice(names))


def inputs_of(nodes: tuple[Node, ...]) -> tuple[Input, ...]:
    """The input leaves of a graph, as a program declares them."""
    leaves = [n for n in nodes if n.op == "input"]
    return tuple(Input(str(n.attr("name")), n.types[0]) for n in leaves)


def _arrays(
    b: Builder, program: Program, how: str, shared: Shared, rng: np.random.Generator
) -> dict[str, Array]:
    bounds = {str(v.node.attr("name")): bound for v, bound in b.bounds.items()}
    out: dict[str, Array] = {}
    for declared in program.inputs:
        shape = _shape(declared.type, len(shared.rows))
        if declared.type.dtype == "rows":
            out[declared.name] = shared.rows
        elif declared.name in bounds:
            out[declared.name] = rng.integers(0, bounds[declared.name], shape).astype(np.int32)
        else:
            chosen = how if how == "ties" or rng.random() < 0.5 else "normal"
            out[declared.name] = draw.values(declared.type, shape, chosen, rng)
    return out


def _shape(type_: Type, rows: int) -> tuple[int, ...]:
    return tuple(rows if d == ROWS else int(d) for d in type_.shape)


def _options(rng: Random, numerics: str, shared: Shared) -> Options:
    chosen = rng.choice(NUMERICS) if numerics == "all" else numerics
    names = passes.names()
    kind = rng.random()
    if kind < 0.5:
        hold: tuple[str, ...] = ()
    elif kind < 0.6:
        hold = names
    else:
        hold = tuple(n for n in names if rng.random() < 0.3)
    rows = max((s.rows for s in shared.steps), default=len(shared.rows))
    return Options(chosen, rng.choice(("", "", "f16", "f32")), max(rows, 1), 8, hold, shared.dump)
