"""Samples of ops and examples as fuzz cases: in process, by the launches that a GPU would get."""

from __future__ import annotations

from collections import Counter

from compiler.fuzz.check import How, check
from compiler.fuzz.generate import UNIT
from compiler.fuzz.known import known_programs, known_units
from compiler.ops import load


def test_every_sample_and_every_example_of_ops_is_known() -> None:
    names = Counter(case.name.rpartition("-")[0] for case in known_programs())
    assert all(names[name] == len(op.samples) for name, op in load().items())
    assert {"moe_block", "transformer_block"} <= {case.name for case in known_programs()}


def test_units_are_of_one_set_of_rows() -> None:
    for unit in known_units():
        assert len(unit) <= UNIT
        assert len({case.places.tobytes() for case in unit}) == 1
        assert len({(c.options.numerics, c.options.hold) for c in unit}) == 1


def test_examples_have_the_bits_of_the_vm_by_the_launches_of_a_gpu() -> None:
    """Together with samples of the same rows; in this process, as a GPU's tools need it."""
    unit = next(u for u in known_units() if any(c.name.startswith("transformer_block") for c in u))
    report = check(unit, ("twin",), how=How(isolated=False))
    assert not report.failures, "\n".join(map(str, report.failures))
    assert report.programs == len(unit)
    assert report.launches > 10
