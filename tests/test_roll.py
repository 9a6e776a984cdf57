"""Loops of the step: found where layers are equal, refused where memory or order would suffer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from codegen import roll
from codegen.roll import Item, Loop, Ref
from compiler import api, pipeline
from compiler.pipeline import Compiled
from compiler.target import HOST, NUMERICS, Options
from tests.merged import compiled
from tests.replay import replay
from tests.samples import program_of
from tests.small_models import MODELS, model, program


def made(launch: int, *reads: int | Ref, key: int = 0) -> Item:
    """A launch that reads results of others (in place where spelled so) and makes one value."""
    refs = [r if isinstance(r, Ref) else Ref("value", r) for r in reads]
    return Item(key, (*refs, Ref("value", launch, 0, True)))


def chain(count: int, key: int = 0, first: int = 0, entry: int = -1) -> list[Item]:
    """Each launch reads the one before it, and may take over its memory."""
    froms = [entry, *range(first, first + count - 1)]
    return [
        made(first + i, Ref("value", f, in_place=True), key=key) for i, f in enumerate(froms)
    ]  # fmt: skip


def found(items: Sequence[Item], *kept: int) -> list[tuple[int, int, int]]:
    loops = roll.loops(items, [(launch, 0) for launch in kept])
    return [(x.start, x.period, x.count) for x in loops]


# what is a loop


def test_a_chain_in_place_is_a_loop_of_one() -> None:
    assert found(chain(5), 4) == [(0, 1, 5)]


def test_a_chain_that_may_not_be_in_place_alternates_between_two_slots() -> None:
    assert found([made(i, i - 1) for i in range(6)], 5) == [(0, 2, 3)]


def test_kernels_must_be_the_same() -> None:
    assert found([*chain(3, key=1), *chain(2, key=2, first=3, entry=2)], 4) == [
        (0, 1, 3),
        (3, 1, 2),
    ]


def test_weights_of_consecutive_layers_march() -> None:
    def layer(i: int, index: int, family: int = 0) -> Item:
        return made(i, Ref("value", i - 1, in_place=True), Ref("member", family, index))

    assert found([layer(i, i) for i in range(4)], 3) == [(0, 1, 4)]
    assert found([layer(i, 7) for i in range(4)], 3) == [(0, 1, 4)], "one weight for all"
    assert found([layer(i, 2 * i) for i in range(4)], 3) == [], "every second layer"
    assert found([layer(i, 3 - i) for i in range(4)], 3) == [], "backwards"
    assert found([layer(i, i, family=i // 2) for i in range(4)], 3) == [(0, 1, 2), (2, 1, 2)]


def test_what_comes_before_the_loop_is_the_same_in_all_iterations() -> None:
    items = [made(0, -1, key=9)]
    items += [made(i, Ref("value", i - 1, in_place=True), 0) for i in range(2, 6)]
    items = [made(0, -1, key=9), made(1, -1, key=8), *items[1:]]
    assert found(items, 5) == [(2, 1, 4)]


# what is none, since one slot serves all iterations


def test_a_value_that_is_read_behind_the_loop_ends_it() -> None:
    """The value of launch 1 is read again by the last launch: launch 2 may not write over it."""
    assert found([*chain(5), made(5, 4, 1, key=3)], 5) == [(0, 1, 2), (3, 1, 2)]


def test_a_returned_value_ends_it() -> None:
    assert found(chain(6), 5) == [(0, 1, 6)]
    assert found(chain(6), 5, 2) == [(0, 1, 3), (4, 1, 2)]


def test_an_entry_value_that_is_read_later_is_not_written_over() -> None:
    items = [made(0, -1, key=9), *chain(4, first=1, entry=0)]
    assert found(items, 4) == [(1, 1, 4)]
    assert found([*items, made(5, 4, 0, key=3)], 5) == [(2, 1, 3)]
    assert found(items, 4, 0) == [(2, 1, 3)]


def test_a_carried_value_is_written_behind_its_last_reader() -> None:
    """y = f(x), x' = g(y): fine; x' = g(x), y = f(x): x' may not be where x is."""
    fine, wrong = [made(0, -1, key=9)], [made(0, -1, key=9)]
    for i in range(1, 9, 2):
        fine += [made(i, i - 1, key=1), made(i + 1, i, key=2)]
        entry = i - 2 if i > 1 else 0
        wrong += [made(i, entry, key=1), made(i + 1, entry, key=2)]
    assert found(fine, 8) == [(1, 2, 4)]
    assert all(period != 2 for _, period, _ in found(wrong, 7, 8))


def test_reaching_back_two_iterations_is_no_loop() -> None:
    items = [made(i, max(i - 2, -1), max(i - 1, -1)) for i in range(8)]
    for loop in roll.loops(items, [(7, 0)]):
        assert not roll.hazards(items, loop)
        assert loop.period >= 3


def test_hazards_are_seen_by_themselves() -> None:
    late = [*chain(4), made(4, 3, -1, key=3)]
    assert roll.hazards(late, Loop(0, 1, 4)), "the entry is read behind the loop"
    assert not roll.hazards(chain(4), Loop(0, 1, 4))
    assert roll.hazards([made(i, i - 1) for i in range(4)], Loop(0, 1, 4)), "not in place"
    both = [made(0, -1, -2), made(1, 0, 0), made(2, 1, 1)]
    assert roll.hazards(both, Loop(0, 1, 3)), "two entries for one carried value"


KEPT = "x{i} = silu(softmax(x{p}))\n"
TWICE = "x{i} = transpose(transpose(softmax(x{p})))\n"


@pytest.mark.parametrize("last", ["x4", "x4, x2", "x4, x0", "x4 + x2", "x4, x1, x3", "x2 + x0, x4"])
@pytest.mark.parametrize("layer", [KEPT, TWICE])
def test_programs_whose_layers_are_read_late(layer: str, last: str) -> None:
    layers = "".join(layer.format(i=i, p=i - 1) for i in range(1, 5))
    text = f"input x0: f32[3, 64]\n{layers}return {last}\n"
    for options in (Options("f32"), Options("f32", dump=True)):
        assert replay(compiled(program_of(text), options).plan) == []


# whole models


@pytest.mark.parametrize("numerics", NUMERICS)
@pytest.mark.parametrize("name", MODELS)
def test_more_layers_make_no_more_lines(name: str, numerics: str) -> None:
    few, many = (compiled(program(name, n), Options(numerics)) for n in (4, 40))
    assert len(few.text.splitlines()) == len(many.text.splitlines())
    assert [x.period for x in few.plan.loops] == [x.period for x in many.plan.loops]
    launches = len(many.plan.launches) - len(few.plan.launches)
    assert launches == 36 * few.plan.loops[0].period, "every layer's launches are there"


def test_rolled_and_unrolled_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    made = pipeline.compile_model(model("llama", 3), Options("int8", max_rows=8), HOST)
    monkeypatch.setattr(roll, "loops", lambda *_: ())
    flat = pipeline.compile_model(made.model, made.options, HOST)
    assert made.plan.loops and not flat.plan.loops
    assert len(flat.text.splitlines()) > len(made.text.splitlines())
    assert np.array_equal(*(logits(c).view(np.int32) for c in (made, flat)))


def logits(made: Compiled) -> np.ndarray:
    ran = api.run(made, prompts=[[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], [7]], n=3, logits=True)
    return np.concatenate(ran.logits)  # type: ignore[union-attr]
