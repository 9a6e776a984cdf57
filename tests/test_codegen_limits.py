"""What kernels refuse: a table of programs a step beyond each limit, and of those just within."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from codegen import limits
from codegen import plan as planning
from codegen.kernel import Context
from compiler import pipeline
from compiler.command.main import main
from compiler.diagnostics import USAGE, ProgramError
from compiler.program import Program
from compiler.target import CUDA, HOST, SM_80, Options, Target
from tests.samples import program_of
from tests.small_models import program

LINEAR = "input x: f32[{rows}, {k}]\ninput w: f32[8, {k}]\nreturn linear(x, w)\n".format
GLU = (
    "input x: f32[8, {k}]\ninput w: f32[8, {k}]\ninput u: f32[8, {k}]\n"
    "return silu(linear(x, w)) * linear(x, u)\n"
).format
EXPERTS = (
    "input x: f32[1, {k}]\ninput w: f32[1, {n}, {k}]\ninput i: i32[1, 1] = 0\n"
    "return expert_linear(x, w, i)\n"
).format
ATTENTION = (
    "input q: f32[1, {h}, {d}]\ninput r: rows[1]\ncache c {{ k [1, {d}] }}\n"
    "return attention(q, c.k, c.k)\n"
).format
SOFTMAX = "input x: f32[2, {n}]\nreturn softmax(x)\n".format
TOP_K = "input x: f32[2, 3000]\nv, i = top_k(x, {k})\nreturn v, i\n".format
ROPE = "input x: f32[2, 1, {d}]\ninput r: rows[2]\nreturn rope(x, 1e4)\n".format
MATMUL = "input a: f32[{b}, 1, 1]\ninput b: f32[{b}, 1, {n}]\nreturn matmul(a, b)\n".format
EXP = "input x: f32[{n}]\nreturn exp(x)\n".format
TRANSPOSE = "input x: f32[{n}, 46341]\nreturn transpose(x)\n".format


def concat(count: int) -> str:
    return f"input x: f32[2, 1]\nreturn concat({', '.join(['x'] * count)})\n"


Text = Callable[..., str]
LIMITS: list[tuple[Text, dict[str, object], dict[str, object], str]] = [
    (SOFTMAX, {"n": 262144}, {"n": 262145}, "softmax takes rows of at most 262144"),
    (LINEAR, {"rows": 4, "k": 65536}, {"rows": 4, "k": 65537}, "linear needs at most 65536 inputs"),
    (LINEAR, {"rows": 524280, "k": 8}, {"rows": 524281, "k": 8}, "linear takes at most 65535"),
    (GLU, {"k": 57000}, {"k": 65536}, "glu takes at most 232448 bytes of shared memory"),
    (EXPERTS, {"k": 512, "n": 4194240}, {"k": 512, "n": 4194241}, "4194240 outputs"),
    (EXPERTS, {"k": 65536, "n": 1}, {"k": 65537, "n": 1}, "at most 65536 inputs"),
    (ATTENTION, {"h": 1, "d": 256}, {"h": 1, "d": 257}, "heads of at most 256 dims"),
    (ATTENTION, {"h": 65535, "d": 1}, {"h": 65536, "d": 1}, "65535 heads"),
    (TOP_K, {"k": 1024}, {"k": 1025}, "top_k picks at most 1024, got k=1025"),
    (ROPE, {"d": 1024}, {"d": 1026}, "rope turns at most 1024 dims"),
    (MATMUL, {"b": 1, "n": 1048560}, {"b": 1, "n": 1048561}, "matmul takes at most 1048560"),
    (MATMUL, {"b": 65535, "n": 1}, {"b": 65536, "n": 1}, "matmul takes at most 65535"),
    (EXP, {"n": 67107840}, {"n": 67107841}, "exp takes at most 65535"),
    (TRANSPOSE, {"n": 46340}, {"n": 46341}, "transpose handles at most 2147483647 elements"),
    (concat, {"count": 64}, {"count": 65}, "concat takes at most 64 values, got 65"),
]  # fmt: skip


def planned(given: Program, target: Target = HOST, options: Options | None = None) -> object:
    options = options or Options("f32")
    lowered, _ = pipeline.lower(given, options, target)
    return planning.plan(lowered, target, options, pipeline.names_of(lowered.graph))


@pytest.mark.parametrize(("text", "within", "beyond", "said"), LIMITS, ids=range(len(LIMITS)))
def test_a_limit_is_refused_by_name_and_reached(
    text: Text, within: dict[str, object], beyond: dict[str, object], said: str
) -> None:
    planned(program_of(text(**within)))
    with pytest.raises(ProgramError) as caught:
        planned(program_of(text(**beyond)))
    assert caught.value.code == USAGE
    (found,) = caught.value.diagnostics
    assert said in found.message and found.message.startswith("host cannot compute this: ")
    assert found.span.line == 1 + text(**beyond).splitlines().index(last_statement(text(**beyond)))


def last_statement(text: str) -> str:
    lines = text.splitlines()
    return next(line for line in lines if "top_k" in line) if "top_k" in text else lines[-1]


def test_a_smaller_target_has_smaller_limits() -> None:
    """compute_80 gives a block 163 KiB, compute_90 227."""
    glu = program_of(GLU(k=50000))
    planned(glu, CUDA)
    with pytest.raises(ProgramError, match="cuda cannot compute this: glu takes at most 166912"):
        planned(glu, SM_80)


THREE = """input x: f32[2, 262145]
y = softmax(x)
input t: f32[2, 3000]
v, i = top_k(t, 2000)
fine = silu(t)
z = softmax(y)
return z, v, i, fine
"""


def test_all_refusals_come_at_once_with_their_lines() -> None:
    with pytest.raises(ProgramError) as caught:
        planned(program_of(THREE))
    assert [d.span.line for d in caught.value.diagnostics] == [2, 4, 6]
    assert "y = softmax(x)\n    ^" in str(caught.value)


def test_the_command_ends_with_2_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "three.model"
    source.write_text(THREE)
    out = tmp_path / "three.cu"
    assert main(["compile", str(source), "-o", str(out), "--target", "host"]) == USAGE
    assert capsys.readouterr().err.count("host cannot compute this") == 3
    assert [p.name for p in tmp_path.iterdir()] == ["three.model"]


# a launch's shape, for every kernel


def test_expressions_are_worked_out_at_the_greatest_counts() -> None:
    context = Context(HOST, Options(max_rows=100, max_seqs=7))
    for text, most in (
        ("1", 1),
        ("rows * wanted", 700),
        ("ceil_div(rows, ROWS)", 13),
        ("ceil_div(576, 32) + ceil_div(rows * 64, 256)", 18 + 25),
        ("32 * (8 + 8 * (ROWS == 1))", 512),
        ("ROWS * 1000", 8000),
        ("sizeof(Turns<32>)", None),
        ("__import__('os')", None),
    ):
        assert limits.greatest(text, context) == most, text


def test_threads_are_limited() -> None:
    with pytest.raises(ProgramError, match="silu takes at most 16 threads a block, got 32"):
        planned(program_of("input x: f32[2]\nreturn silu(x)\n"), replace(HOST, max_threads=16))


def test_rows_count_at_their_greatest() -> None:
    """What depends on T is refused for the rows that the options allow."""
    planned(program("llama"), options=Options("f32", max_rows=500_000))
    with pytest.raises(ProgramError, match="takes at most 65535 blocks side by side"):
        planned(program("llama"), options=Options("f32", max_rows=600_000))
