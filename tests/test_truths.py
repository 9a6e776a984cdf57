"""The truth lines of op records: what each op gives for nan, inf and zeros.

`monocu ops NAME` prints them. tests/test_special_values.py runs them on the host.
"""

from __future__ import annotations

import numpy as np
import pytest

from compiler.command.main import main
from compiler.fuzz.draw import Array
from compiler.fuzz.reference import expected
from compiler.fuzz.truths import Truth, truth, truths
from compiler.ops import Op, bound, get, load
from compiler.ops.rules import real
from tests.awkward import differing
from tests.op_programs import computes

TRUTHS = list(truths())


def given(line: Truth) -> tuple[Array, ...]:
    """What the VM gives; the numbers that a quantized value means."""
    if line.case is not None:
        return tuple(expected(line.case, line.case.program.graph).values())
    op = get(line.line.split("(")[0])
    defaults = {p.name: p.default for p in op.params if not p.is_operand}
    quantized = op.exact(**bound(op, list(line.given.values()), defaults))
    with np.errstate(invalid="ignore"):
        return (real(quantized).astype(np.float32),)


def holds(line: Truth) -> bool:
    got = given(line)
    return len(got) == len(line.want) and all(map(same, got, line.want))


def same(got: Array, want: Array) -> bool:
    if got.shape != want.shape or got.dtype.kind != want.dtype.kind:
        return False
    if got.dtype.kind == "i":
        return np.array_equal(got, want)
    return differing(got.astype(np.float32), want.astype(np.float32)) == 0


@pytest.mark.parametrize("line", TRUTHS, ids=lambda line: line.line)
def test_a_line_holds(line: Truth) -> None:
    assert holds(line), given(line)


@pytest.mark.parametrize(
    "line",
    [
        "max([nan, 1.0]) = 1.0",
        "maximum([-0.0], [-0.0]) = [0.0]",
        "neg([inf]) = [inf]",
        "argmax([1.0, nan]) = 0",
        "top_k([nan, 1.0], k=1) = [nan], [1]",
        "softmax([nan, 1.0]) = nan",
    ],
)
def test_a_wrong_line_does_not(line: str) -> None:
    assert not holds(truth(line))


@pytest.mark.parametrize("op", load().values(), ids=lambda op: op.name)
def test_ops_that_compute_say_what_they_give(op: Op) -> None:
    for value in ("nan", "inf", "-0.0") if computes(op) else ():
        assert any(value in line.split(" = ")[0] for line in op.truths), f"{op.name} of {value}"
    assert all(line.startswith(f"{op.name}(") for line in op.truths)


def test_the_command_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "softmax"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {line}\n" in out for line in get("softmax").truths)
