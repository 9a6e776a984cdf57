"""`diff --bisect` on planted faults: every pass and every rule, each found by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passes
from compiler.api.bisect_passes import Reference, Tried, try_passes
from compiler.exact import round_bf16
from compiler.graph import Graph, Node, Value, node, rebuild
from compiler.ops import apply
from compiler.pipeline import Model
from compiler.program import Program
from compiler.target import HOST, Options
from compiler.types import INTEGERS
from compiler.verify import functions
from frontend.elaborate import elaborate
from passes import lower_numerics
from passes.context import Context
from runtime.inputs import plain_dtype, plain_shape
from tests.planted_faults import FAULTS, Wrong, operator, plant, plant_rule, planted, scaled, who
from tests.small_models import MODELS, model
from tests.test_passes import FILES, MARK, program

FIRE = [p for p in FILES if p.parent.name in passes.names() and not p.stem.startswith("not-")]
LOWERING = [p for p in FILES if p.parent.name == "lower-numerics"]
RULES = tuple(dict.fromkeys(r.name for w in (1, 0) for t in lower_numerics.tables(w) for r in t))


def of_file(path: Path) -> tuple[Program, Options]:
    """An op program of tests/passes and the options that show its pass alone."""
    text = path.read_text().partition(MARK)[0]
    hold = tuple(n for n in passes.names() if n != path.parent.name)
    return elaborate(text), replace(program(text)[1], hold=hold)


def tried(p: Program, options: Options) -> Tried:
    return try_passes(Reference(Model(p), options, random_inputs(p), None, 0), options, HOST)


def random_inputs(p: Program) -> dict[str, Any]:
    """Arrays for the inputs that a program reads, rows apart: no two alike."""
    read = {n.attr("name") for n in p.graph.nodes() if n.op == "input"}
    rng = np.random.default_rng(7)
    out: dict[str, Any] = {}
    for i in p.inputs:
        made = rng.uniform(1, 5, plain_shape(i.type))
        signs = 1 if i.type.dtype in INTEGERS else rng.choice([-0.5, 0.5], made.shape)
        if i.type.dtype != "rows" and i.name in read:
            array = (made * signs).astype(plain_dtype(i.type))
            out[i.name] = round_bf16(array) if i.type.dtype == "bf16" else array
    return out


def test_right_passes_are_not_blamed() -> None:
    for path in FILES:
        assert who(tried(*of_file(path))) == [], path


def applies(path: Path, fault: Wrong) -> bool:
    p, options = of_file(path)
    made = passes.run(p.graph, options, HOST)
    return any(fn.kind == path.parent.name and fault(fn) for fn in functions(made))


@pytest.mark.parametrize("path", FIRE, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_wrong_pass_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    p, options = of_file(path)
    name = path.parent.name
    faults = [fault for fault in FAULTS if applies(path, fault)]
    assert faults
    for fault in faults:
        with monkeypatch.context() as patch:
            plant(patch, name, lambda one, fault=fault: planted(one, fault))
            found = tried(p, options)
        assert who(found) == [f"the pass {name}"], fault.__name__
        assert "expected, " in found.guilty[0].why and found.guilty[0].shown


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_each_fault_is_planted_in_several_passes(fault: Wrong) -> None:
    assert len({path.parent.name for path in FIRE if applies(path, fault)}) >= 2


@pytest.mark.parametrize("name", MODELS)
def test_a_wrong_pass_of_a_model_is_named_with_its_line(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, "linear-residual", lambda one: planted(one, operator))
    reference = Reference(model(name), Options(), {}, [[1, 2, 3], [4]], 2)
    found = try_passes(reference, Options(), HOST)
    assert who(found) == ["the pass linear-residual"]
    (guilty,) = found.guilty
    assert guilty.why.startswith("l0.x[0, 0]: ") and guilty.line.startswith(f"{name}.model:")
    assert guilty.shown[0].startswith("kernel linear_residual(")


def raises(graph: Graph, context: Context) -> Graph:
    raise KeyError("a member")


def breaks(graph: Graph, context: Context) -> Graph:
    """An effect that is none."""
    return replace(graph, effects=tuple(v for _, v in graph.results))


@pytest.mark.parametrize(
    ("run", "says"), [(raises, "KeyError: 'a member'"), (breaks, "VerifyError: effects: ")]
)
def test_a_pass_that_breaks_is_named(
    run: Callable[[Graph, Context], Graph], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, "norm-quant", lambda one: replace(one, run=run))
    path = next(p for p in FIRE if p.parent.name == "norm-quant")
    found = tried(*of_file(path))
    assert who(found) == ["the pass norm-quant"]
    assert found.guilty[0].why.startswith(says)


def test_two_wrong_passes_are_both_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("glu", "linear-residual"):
        plant(monkeypatch, name, lambda one: planted(one, operator))
    reference = Reference(model("llama"), Options(), {}, [[1, 2, 3]], 0)
    found = try_passes(reference, Options(), HOST)
    assert who(found) == ["the pass glu", "the pass linear-residual"]


def fired(path: Path) -> Iterator[str]:
    p, options = of_file(path)
    names: list[str] = []
    passes.run(p.graph, options, HOST, None, names.append)
    yield from dict.fromkeys(names)


@pytest.mark.parametrize("name", RULES)
def test_a_wrong_rule_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [path for path in LOWERING if name in fired(path)]
    plant_rule(monkeypatch, name, scaled)
    if not paths:  # of models alone
        found = try_passes(Reference(model("llama"), Options(), {}, [[1, 2]], 0), Options(), HOST)
        assert who(found) == [f"the rule {name} of the pass lower-numerics"]
    for path in paths:
        found = tried(*of_file(path))
        assert who(found) == [f"the rule {name} of the pass lower-numerics"], path


def test_a_rule_that_changes_a_type_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    path = next(path for path in LOWERING if "quantize-input" in fired(path))
    plant_rule(monkeypatch, "quantize-input", lambda v: apply("cast", v, dtype="f16"))
    found = tried(*of_file(path))
    assert who(found) == ["the rule quantize-input of the pass lower-numerics"]
    assert "changed a type: " in found.guilty[0].why


def test_what_lowering_does_outside_of_its_rules_is_the_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = lower_numerics.store_caches

    def wrong(graph: Graph, dtype: str) -> Graph:
        def change(old: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
            made = node(old.op, operands, dict(old.attrs), old.types)
            return (scaled(made.result()),) if old.op == "rope" else (made.result(),)

        return store(rebuild(graph, change), dtype)

    monkeypatch.setattr(lower_numerics, "store_caches", wrong)
    reference = Reference(model("llama"), Options(), {}, [[1, 2, 3]], 0)
    found = try_passes(reference, Options(), HOST)
    assert who(found) == ["the pass lower-numerics"]
