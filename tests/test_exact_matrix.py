"""benchmarks/exact.py: what it builds and runs, and that it says so where bits differ."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from benchmarks import exact
from benchmarks.exact_cases import LENGTHS, ModelCase, OpsCase, Outcome, Way, op_cases
from compiler.diagnostics import UserError
from passes import names as fusions
from tests.small_models import OP_PROGRAMS, checkpoint

WAYS = ["fused", "apart", *(f"no {name}" for name in fusions())]


def test_every_pass_is_held_back_in_every_numerics() -> None:
    case = OpsCase("ops", ("rope",))
    found = exact.variants([case], ["f32", "int8"])
    assert [v.name for v in found] == [f"ops {n} {how}" for n in ("f32", "int8") for how in WAYS]
    texts = [exact.emit(v, "host") for v in found]
    assert [len(same) for same in exact.distinct(found, texts).values()] == [len(WAYS)] * 2
    other = exact.variants([OpsCase("ops", ("transformer_block",))], ["int8"])
    texts = [exact.emit(v, "host") for v in other]
    assert len(exact.distinct(other, texts)) > 4


def test_every_op_program_is_in_a_case() -> None:
    assert sorted(name for case in op_cases() for name in case.examples) == sorted(OP_PROGRAMS)


def test_the_ways_that_rows_come() -> None:
    case = ModelCase("qwen3", checkpoint("qwen3"))
    names = [way.name for way in case.ways("host", full=True)]
    assert {f"chunks of {n}" for n in (*range(1, 18), 64, 65, 200)} < set(names)
    assert {"batch of 5", *(f"run {k}" for k in range(20))} < set(names)
    assert {f"alone, {n} tokens" for n in LENGTHS[:3]} < set(names)
    seeds = {way.flags for way in case.ways("host", full=True) if way.name.startswith("run")}
    assert len(seeds) == 20 and not case.ways("cuda", full=True)[-1].flags
    assert len(case.ways("host", full=False)) < 16


class Wrong(OpsCase):
    """Results of which one differs, and a binary that fails."""

    def check(self, binary: Path, numerics: str, way: Way, folder: Path) -> Outcome:
        if numerics == "f32":
            raise UserError("a device is needed")
        return Outcome(100, 1)


@pytest.mark.parametrize("numerics", ["int8", "f32"])
def test_a_difference_and_a_failure_are_counted(numerics: str) -> None:
    variant = exact.Variant(Wrong("wrong", ()), numerics, (), "fused")
    outcome = exact.check(variant, Path("none"), Way("run 0"), Path("none"))
    report = exact.Report(io.StringIO())
    report.add("right", Outcome(10, 0))
    assert report.end(0.0) == 0
    report.add("wrong", outcome)
    assert report.end(0.0) == 1
    lines = report.file.getvalue().splitlines()  # type: ignore[attr-defined]
    differ = {"int8": "110 values: 1 differ", "f32": "10 values: 0 differ"}[numerics]
    assert lines[-1] == f"2 configurations, {differ}; 1 configurations are wrong"


def test_a_flipped_bit_of_a_reference_is_a_difference(tmp_path: Path) -> None:
    """What the host gives is held bit by bit against what was kept."""
    case = ModelCase("tiny", checkpoint("llama", 1))
    binary, _ = exact.build(case.emit("int8", (), "host"), "host", ())
    logits = case.kept("int8", tmp_path, 1)
    for part in case.references("int8", exact.Limits(LENGTHS[1])):
        if part.which == 1:  # type: ignore[attr-defined]
            part(tmp_path)
    way = Way("alone", (), (1,))
    right = case.check(binary, "int8", way, tmp_path)
    assert right.differing == 0 and right.values > 7 * 160
    kept = np.load(logits)
    kept.view(np.int32)[2, 5] ^= 1
    np.save(logits, kept)
    assert case.check(binary, "int8", way, tmp_path).differing == 1
