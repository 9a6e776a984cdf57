"""Special values through whole programs: binary = VM, bit for bit, for all pairs of 64 of them.

The cases are known ones, so that benchmarks/gpu_fuzz.py runs them on a GPU, too.
"""

from __future__ import annotations

import numpy as np

from compiler.fuzz.check import check
from compiler.fuzz.generate import Case
from compiler.fuzz.known import known_units
from compiler.fuzz.special_cases import rows_of, special_cases
from compiler.fuzz.truths import truth_cases
from compiler.ops import load
from tests.awkward import EDGES, SPECIAL


def test_the_host_gives_the_bits_of_the_vm() -> None:
    """Together with the truth lines of op records; programs of the same rows are one binary."""
    units: dict[bytes, list[Case]] = {}
    for case in (*special_cases(), *truth_cases()):
        units.setdefault(case.places.tobytes(), []).append(case)
    for unit in units.values():
        report = check(unit, ("host",))
        assert not report.failures, "\n".join(map(str, report.failures))
        assert not report.refused


def test_every_op_of_elements_and_of_rows_has_cases() -> None:
    found = {case.name.split(".")[0] for case in special_cases()}
    wanted = {name for name, op in load().items() if op.traits & {"elementwise", "row"}}
    assert found == wanted
    known = {case.name.split("-")[0] for unit in known_units() for case in unit}
    assert {f"{name}.special" for name in wanted} <= known
    assert {case.name.split("-")[0] for case in truth_cases()} <= known


def test_there_are_64_of_both_signs_and_of_every_kind() -> None:
    assert len(set(SPECIAL.view(np.uint32).tolist())) == len(SPECIAL) == 64
    bits = EDGES.view(np.uint32)
    assert set(bits.tolist()) >= set(SPECIAL.view(np.uint32).tolist())
    assert set((bits ^ np.uint32(0x80000000)).tolist()) == set(bits.tolist())
    kinds = (np.isnan, np.isinf, np.isfinite, np.signbit)
    assert all(kind(SPECIAL).any() and not kind(SPECIAL).all() for kind in kinds)
    smallest = np.finfo(np.float32).smallest_normal
    assert ((SPECIAL > 0) & (smallest > SPECIAL)).sum() >= 2


def test_rows_hold_each_pair_and_each_value_alone() -> None:
    rows = rows_of(5).view(np.uint32)
    special = SPECIAL.view(np.uint32)
    where = np.isin(rows[: -len(special)], special)
    pairs = {tuple(sorted(row[at].tolist())) for row, at in zip(rows, where, strict=False)}
    assert len(pairs) == 64 * 65 // 2
    assert (rows[-len(special) :] == special[:, None]).all()
    assert rows_of(1).shape == (len(EDGES), 1)
