"""Every sample of every op, and shapes beyond them, through all stages: host binary = VM, each bit,
under sanitizers with guards around every buffer.

No op is named: samples come from the op table, and `WIDE` adds sizes at which kernels loop, split a
row over blocks or take another form.
"""

from __future__ import annotations

import numpy as np
import pytest

from compiler.program import Program
from compiler.target import NUMERICS, Options
from runtime.compare import different
from runtime.vm import run_program
from tests.guarded import sanitized
from tests.merged import Array, compiled, groups, kinds_of_values, merged, rows_values, run
from tests.op_programs import is_other, lowered, named_programs

SEEDS = ((), ("--host-seed", "1"), ("--host-seed", "2"))


def units() -> list[object]:
    """(numerics, programs) of each binary; int8 and int8x2 where they make another graph."""
    out: list[object] = []
    for numerics in NUMERICS:
        programs = [p for p in named_programs() if numerics == "f32" or is_other(p, numerics)]
        out += [
            pytest.param(numerics, unit, id=f"{numerics}-{unit[0].name}")
            for unit in groups(programs)
        ]
    return out


def differences(
    unit: list[Program], want: dict[str, Array], got: dict[str, Array], how: str
) -> list[str]:
    assert got.keys() == want.keys()
    out: list[str] = []
    for name, array in want.items():
        given = got[name]
        assert (given.dtype, given.shape) == (array.dtype, array.shape), name
        wrong = different(array, given)
        if wrong.any():
            at = tuple(np.argwhere(wrong)[0].tolist())
            owner = unit[int(name[1:].split("_")[0])]
            out.append(
                f"{owner.name}, {how}: {wrong.sum()} of {wrong.size} differ, first {at}: "
                f"{array[at]!r} expected, {given[at]!r} given"
            )
    return out


@pytest.mark.parametrize(("numerics", "unit"), units())
def test_a_binary_gives_the_bits_of_the_vm(numerics: str, unit: list[Program]) -> None:
    whole = merged(unit)
    binary = sanitized(compiled(whole, Options(numerics, guard=True)).text)
    reference = lowered(whole, numerics)
    found: list[str] = []
    for rows in rows_values(unit):
        for kind, values in kinds_of_values(whole).items():
            inputs = {**values, **rows}
            want = run_program(reference, inputs)
            for flags in SEEDS:
                how = " ".join((kind, "values", *flags))
                found += differences(unit, want, run(binary, inputs, *flags), how)
    assert not found, "\n".join(found)
