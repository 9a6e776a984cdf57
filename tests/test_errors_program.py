"""Bad programs: each file of tests/errors says on its bad lines what the error is, all of them.

`# error: message` stands on the line that is to blame (twice for two errors), `# code: 3` where
only the checkpoint is, `# no checkpoint` where there is none.
"""

import re
from pathlib import Path

import pytest
from errors_metadata import METADATA

from compiler.diagnostics import ProgramError
from frontend.elaborate import elaborate

FILES = sorted((Path(__file__).parent / "errors").glob("*.model"))
TOPICS = [
    "syntax", "name", "shape", "dtype", "arity", "recursion", "loop", "dim", "meta", "weight",
    "cache", "input", "result",
]  # fmt: skip
NEEDS = "linear needs w[..., N, K] for x[..., K], got f32[4, 5] and f32[5, 8]"
MARK = re.compile(r"  # error: (.*?)(?=  # (?:error|code):|  # no checkpoint|$)")


def expected(text: str) -> list[tuple[int, str]]:
    lines = enumerate(text.split("\n"), 1)
    return [(number, message) for number, line in lines for message in MARK.findall(line)]


def errors_of(path: Path) -> ProgramError:
    text = path.read_text()
    metadata = None if "# no checkpoint" in text else METADATA
    with pytest.raises(ProgramError) as caught:
        elaborate(text, path.name, metadata)
    return caught.value


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_bad_program_is_refused_with_its_errors(path: Path):
    error, wanted = errors_of(path), expected(path.read_text())
    assert wanted, "a bad program names its errors"
    assert [(d.span.line, d.message) for d in error.diagnostics] == wanted
    assert error.code == (3 if "# code: 3" in path.read_text() else 2)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_carets_stand_under_the_source(path: Path):
    lines = path.read_text().split("\n")
    for d in errors_of(path).diagnostics:
        assert d.span.file == path.name
        code = re.split(r"  # (?:error|code)", lines[d.span.line - 1])[0]
        assert 1 <= d.span.col <= len(code) + 1
        assert d.span.end >= d.span.col


def test_every_topic_has_its_programs():
    assert len(FILES) >= 40
    assert {t for t in TOPICS if not any(f.stem.startswith(t) for f in FILES)} == set()


def test_the_text_that_people_read():
    assert str(errors_of(next(f for f in FILES if f.stem == "def_inside"))) == (
        f"def_inside.model:5:10: error: {NEEDS}\n"
        f"      return linear(h, up)  # error: {NEEDS}\n"
        "             ^^^^^^^^^^^^^\n"
        "  def_inside.model:4:3: note: x is f32[4, 5]\n"
        "  def_inside.model:2:1: note: w is f32[5, 8]\n"
        "  def_inside.model:7:1: note: in mlp, called here"
    )


def test_an_error_of_the_prelude_points_at_the_caller():
    (d,) = errors_of(next(f for f in FILES if f.stem == "moe_prelude")).diagnostics
    assert d.span.line == 4
    assert any("in moe, at <prelude>:" in note for _, note in d.notes)


def test_an_op_of_a_scalar_weight_is_refused_too():
    with pytest.raises(ProgramError, match="linear needs w"):
        elaborate("input x: f32[4]\ninput w: f32\nreturn linear(x, w)\n")
