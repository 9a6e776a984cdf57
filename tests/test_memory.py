"""Buffers: every launch of every example finds the values that it needs, whatever shares memory."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

import examples
import passes
from codegen import families, memory, render
from codegen import layers as tables_of_layers
from codegen import plan as planning
from codegen.memory import ALIGN, Lifetime
from codegen.plan import Plan
from compiler import pipeline
from compiler.graph import Value, leaf
from compiler.program import Input, Program
from compiler.target import HOST, NUMERICS, Options
from compiler.types import Type
from tests.random_programs import random_graph
from tests.replay import promised, replay
from tests.samples import program_of
from tests.small_models import MODELS, SMALL, program, retyped

each_numerics = pytest.mark.parametrize("numerics", NUMERICS)
each_example = pytest.mark.parametrize("name", examples.names())


def plan_of(program: Program, **options: object) -> Plan:
    """Without its text."""
    given = Options(**options)  # type: ignore[arg-type]
    lowered, _ = pipeline.lower(program, given, HOST)
    return planning.plan(lowered, HOST, given, pipeline.names_of(lowered.graph))


# every example


@each_numerics
@each_example
def test_every_launch_finds_its_values(name: str, numerics: str) -> None:
    for layers, rows in ((1, 64), (2, 3), (4, 256)) if name in SMALL else ((1, 64),):
        for hold in ((), passes.names()):
            made = plan_of(program(name, layers), numerics=numerics, hold=hold, max_rows=rows)
            assert replay(made) == []


@each_example
def test_a_dump_has_every_value_where_it_says(name: str) -> None:
    for numerics in NUMERICS:
        made = plan_of(program(name, 3), numerics=numerics, dump=True)
        assert replay(made) == []
        stored = {n for v, n in made.names.items() if v.node.operands and not is_inside(v)}
        assert stored == promised(made)


def is_inside(value: Value) -> bool:
    """Caches are no values of a dump; a projection keeps a norm's factor in each of its blocks."""
    own = value.node.function.results[value.index] if value.node.op == "call" else value
    return value.type.dtype.startswith("cache") or own.node.op == "root_factor"


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int) -> None:
    graph = random_graph(seed, steps=random.Random(seed).choice((6, 12, 24)))
    leaves = [n for n in graph.nodes() if n.op == "input"]
    inputs = tuple(Input(str(n.attr("name")), n.types[0]) for n in leaves)
    for hold, dump in ((), False), ((), True), (passes.names(), False):
        whole = Program("random", graph, inputs)
        made = plan_of(whole, numerics=NUMERICS[seed % 3], hold=hold, dump=dump)
        assert replay(made) == []


def alternating(name: str, dtype: str) -> str:
    """Another format in every second layer, and for one kind of tensor in one layer."""
    if "norm" in name or "inp" in name or not name.startswith("blk."):
        return dtype
    layer = int(name.split(".")[1])
    if "attn_v" in name and layer == 3:
        return "f16"
    return "q4_1" if layer % 2 else dtype


def mixture(name: str, dtype: str) -> str:
    """As of a Q4_K_M file: more bits for some tensors of the first and the last layers."""
    inner = name.startswith(("blk.2.", "blk.3.", "blk.4.")) and ("attn_v" in name or "down" in name)
    return "q4_0" if inner else dtype


@pytest.mark.parametrize("change", [alternating, mixture])
@pytest.mark.parametrize("name", MODELS)
def test_layers_of_different_formats(name: str, change: Callable[[str, str], str]) -> None:
    for numerics in NUMERICS:
        made = plan_of(retyped(name, 6, change), numerics=numerics)
        assert replay(made) == []
        assert made.loops, "layers that differ in formats alone share a loop"


@pytest.mark.parametrize("name", MODELS)
def test_a_mixture_is_one_loop_as_a_single_format_is(name: str) -> None:
    one, mixed = plan_of(program(name, 6)), plan_of(retyped(name, 6, mixture))
    assert mixed.loops == one.loops
    assert len(tables_of_layers.of(mixed.families).tables) == 2
    text = render.render(mixed)
    assert "_OF[l].family.type == Q" in text


@pytest.mark.parametrize("name", MODELS)
def test_memory_does_not_grow_with_layers(name: str) -> None:
    few, many = (plan_of(program(name, layers)) for layers in (4, 40))
    assert few.buffer_bytes == many.buffer_bytes
    assert sum(b.nbytes for b in few.buffers) > few.buffer_bytes, "no buffer shares memory"


# what the replay refuses


def test_the_replay_sees_two_values_in_one_place() -> None:
    """Buffers moved onto others: what remains right was never alive together."""
    made = plan_of(program("transformer_block"), numerics="int8x2")
    assert replay(made) == []
    at = {b.offset for b in made.buffers}
    found = [bool(replay(moved(made, i, o))) for i in range(len(made.buffers)) for o in at]
    assert sum(found) > len(found) / 2


def moved(plan: Plan, at: int, offset: int) -> Plan:
    buffers = list(plan.buffers)
    buffers[at] = replace(buffers[at], offset=offset)
    return replace(plan, buffers=tuple(buffers))


def test_the_replay_sees_a_wrong_order() -> None:
    made = plan_of(program("transformer_block"))
    launches = list(made.launches)
    launches[-1], launches[-2] = launches[-2], launches[-1]
    assert replay(replace(made, launches=tuple(launches)))


def test_the_replay_sees_another_layer_s_weight() -> None:
    made = plan_of(program("llama", 3))
    first, second = (
        next(k for k in made.weights if k[0].node.attr("name") == f"blk.{i}.attn_output.weight")
        for i in (0, 1)
    )
    swapped = dict(made.weights) | {first: made.weights[second], second: made.weights[first]}
    assert replay(made) == [] and replay(replace(made, weights=swapped))


# placing


def random_lives(rng: random.Random) -> list[Lifetime]:
    lives: list[Lifetime] = []
    for number in range(rng.randrange(1, 30)):
        first = rng.randrange(40)
        last = first + rng.choice((0, 1, 2, 5, 40))
        lives.append(Lifetime((number, 0), first, last, rng.choice((0, 1, 256, 300, 5000))))
    return lives


def overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


@pytest.mark.parametrize("reuse", [True, False])
def test_slots_that_live_together_lie_apart(reuse: bool) -> None:
    rng, saved = random.Random(7), 0
    for _ in range(200):
        lives = random_lives(rng)
        offsets, total = memory.place(lives, reuse)
        ranges = {x.slot: (offsets[x.slot], offsets[x.slot] + max(1, x.nbytes)) for x in lives}
        assert all(low % ALIGN == 0 and high <= total for low, high in ranges.values())
        for i, a in enumerate(lives):
            for b in lives[i + 1 :]:
                together = a.first <= b.last and b.first <= a.last
                if together or not reuse:
                    assert not overlap(ranges[a.slot], ranges[b.slot]), (a, b)
        saved += total < sum(max(1, x.nbytes) for x in lives)
    assert (saved > 0) == reuse


# weights


def test_layers_with_a_gap_between_them_are_two_families() -> None:
    kind = Type("q8_0", (8, 32))
    leaves = [leaf("weight", f"blk.{i}.w.weight", kind) for i in (0, 1, 3)]
    made, where, _ = families.weight_families((v, families.TILES) for v in leaves)
    assert [(f.first, f.count) for f in made] == [(0, 2), (3, 1)]
    assert [where[v, families.TILES].index for v in leaves] == [0, 1, 0]


def test_matrices_have_room_for_whole_tiles() -> None:
    """Of 8 rows and 512 inputs, whose 4 segments have 4 scales each."""
    for shape, tiles in (((8, 512), 1), ((9, 512), 2), ((1, 544), 2), ((3, 17, 32), 9)):
        assert families.tile_bytes(Type("q8_0", shape)) == tiles * (8 * 512 + 8 * 4 * 4 * 2)


# results that take over an operand's memory


def in_place(text: str) -> set[str]:
    made = plan_of(program_of(text), numerics="f32")
    last = made.launches[-1].launch
    return {made.names[v] for v in last.in_place}


def test_only_what_is_read_before_the_first_store_is_taken_over() -> None:
    """A thread that has stored a value may not read an operand whose memory the value has."""
    assert in_place("input x: f32[3, 8]\nreturn softmax(x)\n") == {"x"}
    assert in_place("input x: f32[3, 8]\ninput g: f32[8]\nreturn x * g\n") == {"x"}
    assert in_place("input x: f32[8]\ninput g: f32[3, 8]\nreturn x * g\n") == {"g"}
    twice = "input x: f32[3, 64]\ninput w: f32[64, 64]\ninput g: f32[3, 64]\n"
    assert in_place(f"{twice}return g + linear(x, w)\n") == {"g"}
    assert in_place(f"{twice}return x + linear(x, w)\n") == set(), "other blocks read x"
    late = "input a: f32[3, 8]\ninput x: f32[3, 8]\nb = silu(a)\nc = b * 2.0\ny = b + x\n"
    assert in_place(f"{late}return b, y\n") == {"a"}
    assert in_place(f"{late}return y\n") == {"a", "x"}


def test_operands_of_kernels_that_gather_are_never_taken_over() -> None:
    for op in (
        "transpose(x)",
        "slice(x, axis=1, start=0, stop=8)",
        "matmul(x, x)",
        "sum(x, axis=0)",
    ):
        assert in_place(f"input x: f32[8, 8]\nreturn {op}\n") == set()
