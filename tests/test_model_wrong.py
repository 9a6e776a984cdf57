"""A wrong build of a model is found: a constant of its `.cu` changed, diff names value and line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import examples
from compiler.command.main import main
from compiler.diagnostics import DIFFERENCES, OK
from runtime.synthetic import write_synthetic

TOKENS = [3, 1, 4, 1, 5, 9]
COUNT = 2
DIFFERENCE = re.compile(
    r"(?P<name>\S+)\[(?P<index>[\d, ]+)\]: \S+ expected, \S+ given, \d+ ulps apart; "
    r"\d+ of (?P<size>\d+) values differ; (?P<names>\d+) named values differ"
)


@dataclass(frozen=True)
class Wrong:
    """What is changed, `old` being its last place in the text, and what must be said of it.

    row: the first row in which it matters.
    """

    old: str
    new: str
    value: str
    row: int
    statement: str


CASES = {
    # The second of 8 frequencies, a millionth too fast; row 0 is not turned at all.
    "rope frequency": Wrong(
        "0x1.43d136248490fp-2", "0x1.43d146248490fp-2", "l0.attend.q", 1, "return rope(x, theta"
    ),
    "rms eps of the last norm": Wrong(
        "embed_norm_2, 1.0e-5f)",
        "embed_norm_2, 1.1e-5f)",
        "embed_norm",
        0,
        "rmsnorm(wanted(x), output_norm, eps)",
    ),
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_synthetic(tmp_path_factory.mktemp("weights") / "m.gguf", "tiny-llama", "q8_0"))


@pytest.fixture(scope="module")
def emitted(weights: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("emitted") / "llama.cu"
    flags = ["--numerics", "f32", "--target", "host", "--dump"]
    assert main(["compile", weights, *flags, "-o", str(path)]) == OK
    return path.read_text()


@pytest.mark.parametrize("case", CASES)
def test_diff_names_the_value_and_its_line(
    case: str, weights: str, emitted: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = CASES[case]
    before, old, behind = emitted.rpartition(wrong.old)
    assert old, f"{wrong.old} is not in the .cu: the test is out of date"
    edited = tmp_path / "edited.cu"
    edited.write_text(before + wrong.new + behind)
    tokens = ["--tokens", ",".join(map(str, TOKENS)), "-n", str(COUNT)]
    flags = ["--numerics", "f32", "--target", "host", "--cu", str(edited)]
    capfd.readouterr()
    assert main(["diff", weights, *tokens, *flags]) == DIFFERENCES
    first, line = capfd.readouterr().out.splitlines()
    found = DIFFERENCE.fullmatch(first)
    assert found, first
    assert found["name"] == wrong.value
    assert int(found["index"].split(",")[0]) == wrong.row
    assert int(found["size"]) == (len(TOKENS) + COUNT - 1) * 64
    assert int(found["names"]) > 1
    assert line.strip() == f"llama.model:{line_of(wrong.statement)}"


def line_of(statement: str) -> str:
    """`number  text` of the only line of llama.model that holds it."""
    lines = examples.find("llama").read_text().splitlines()
    (number,) = (n for n, text in enumerate(lines, 1) if statement in text)
    return f"{number}  {lines[number - 1].strip()}"
