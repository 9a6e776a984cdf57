"""How far ops are from their meaning: the bounds of their records, over samples and wide shapes.

No op is named. A bound must hold for every element, and mean something: in every program some
element comes near it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from compiler.command.main import main
from compiler.exact import round_bf16
from compiler.graph import Node
from compiler.ops import Error, Op, bound, load
from compiler.ops.rules import real
from compiler.program import Program
from runtime.inputs import default_inputs, plain_dtype, plain_shape
from runtime.vm import caches_of
from tests.op_programs import computes, named_programs

Floats = np.ndarray[Any, np.dtype[np.float64]]
KINDS = ("normal", "positive", "wide", "cancelling")
FAR = 1 / 250  # of its bound, at least, comes the worst error of every program that has one
NEAR = 1 / 20  # of every op


def drawn(shape: tuple[int, ...], kind: str, rng: np.random.Generator) -> Floats:
    x = rng.standard_normal(shape)
    if kind == "positive":  # sums grow, so that each rounding counts for the whole
        return np.abs(x) + 0.5
    if kind == "wide":
        return np.ldexp(x, rng.integers(-9, 10, shape))
    if kind == "cancelling" and x.ndim and x.shape[-1] > 1:
        half = x.shape[-1] // 2
        x[..., half : 2 * half] = -x[..., :half] * (1 + 2.0**-12 * x[..., half : 2 * half])
    return x


def inputs_of(program: Program, kind: str) -> dict[str, Any]:
    rng = np.random.default_rng([len(program.name), KINDS.index(kind)])
    given: dict[str, Any] = {}
    for declared in program.inputs:
        if declared.type.dtype not in ("rows", "i32", "i64"):
            values = drawn(plain_shape(declared.type), kind, rng).astype(np.float32)
            values = round_bf16(values) if declared.type.dtype == "bf16" else values
            given[declared.name] = values.astype(plain_dtype(declared.type))
    return default_inputs(program, given)


def calls(program: Program, inputs: dict[str, Any]) -> Iterator[tuple[Node, dict[str, Any], Any]]:
    """Each op's node with its operands and attributes, and what it gives exactly."""
    caches = caches_of(program.graph)
    values: dict[Node, tuple[Any, ...]] = {}
    for n in program.graph.nodes():
        if n.op == "const":
            values[n] = (np.asarray(n.attr("value"), np.float32),)
        elif not n.operands:
            name = str(n.attr("name"))
            values[n] = (caches[name] if n.op == "cache" else inputs[name],)
        else:
            op = load()[n.op]
            operands = [values[v.node][v.index] for v in n.operands]
            taken = bound(op, operands, dict(n.attrs))
            with np.errstate(all="ignore"):
                given = op.exact(**taken)
            values[n] = given if isinstance(given, tuple) else (given,)
            yield n, taken, values[n]


def widened(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value.astype(np.float64)
    return value


@dataclass(frozen=True)
class Seen:
    """Of one result of one op: elements beyond the bound, how near to it the nearest is, and the
    share of elements of which there is a bound."""

    beyond: int
    nearest: float
    bounded: float


def measured(op: Op, taken: dict[str, Any], given: tuple[Any, ...]) -> Iterator[Seen]:
    assert op.error is not None
    taken = {name: widened(value) for name, value in taken.items()}
    with np.errstate(all="ignore"):
        meant = op.meaning(**taken)
        limit = op.error.bound(**taken)
    for got, want in zip(given, meant if isinstance(meant, tuple) else (meant,), strict=True):
        exact = real(got)
        most = np.broadcast_to(limit, exact.shape)
        fine = np.isfinite(want) & np.isfinite(most)
        off, most = np.abs(exact - want)[fine], most[fine]
        ratio = np.divide(off, most, out=np.zeros_like(off), where=most > 0)
        yield Seen(int((off > most).sum()), float(ratio.max(initial=0.0)), float(fine.mean()))


Found = dict[str, dict[str, dict[str, list[Seen]]]]  # by op, program and kind


@pytest.fixture(scope="module")
def found() -> Found:
    out: Found = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for program in named_programs():
        for kind in KINDS:
            for n, taken, given in calls(program, inputs_of(program, kind)):
                op = load()[n.op]
                if op.error is not None:
                    out[n.op][program.name][kind] += measured(op, taken, given)
    return out


def loose(programs: dict[str, dict[str, list[Seen]]]) -> list[str]:
    """Programs with an error that is far below its bound for all kinds of values."""
    nearest = {
        name: max(seen.nearest for each in kinds.values() for seen in each)
        for name, kinds in programs.items()
    }
    if any(nearest.values()) and max(nearest.values()) < NEAR:
        return list(nearest)
    return [name for name, ratio in nearest.items() if 0 < ratio < FAR]


each_op = pytest.mark.parametrize(
    "op", [op for op in load().values() if op.error], ids=lambda o: o.name
)


@each_op
def test_no_element_is_beyond_its_bound(op: Op, found: Found) -> None:
    for name, kinds in found[op.name].items():
        for kind, each in kinds.items():
            assert not [s for s in each if s.beyond], (name, kind)
        assert all(s.bounded == 1 for s in kinds["positive"]), name


@each_op
def test_bounds_are_tight_enough_to_mean_something(op: Op, found: Found) -> None:
    assert found[op.name]
    assert loose(found[op.name]) == []


@pytest.mark.parametrize(("factor", "beyond", "far"), [(1.0, 0, 0), (0.01, 1, 0), (1e3, 0, 1)])
def test_wrong_bounds_are_seen(factor: float, beyond: int, far: int) -> None:
    program = next(p for p in named_programs() if p.name == "combine-1")
    op = load()["combine"]
    assert op.error is not None
    true = op.error.bound
    wrong = replace(op, error=Error("", lambda **taken: factor * true(**taken)))
    ((_, taken, given),) = calls(program, inputs_of(program, "positive"))
    seen = list(measured(wrong, taken, given))
    assert bool(seen[0].beyond) == bool(beyond)
    assert bool(loose({program.name: {"positive": seen}})) == bool(far)


@pytest.mark.parametrize("op", load().values(), ids=lambda op: op.name)
def test_ops_that_sum_or_choose_have_a_bound(op: Op) -> None:
    """Those that compute, but elementwise ones, whose functions have theirs in ulps."""
    assert op.error is not None or op.expression or not computes(op)


def test_the_command_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "combine"]) == 0
    out = capsys.readouterr().out
    assert "gamma(P) * sum |weight y|" in out and "u = 2^-24" in out
