"""benchmarks/sanitize.py: what it would run, and what it makes of what the tools say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import sanitize
from benchmarks.exact_cases import OP_PROGRAMS, ModelCase
from tests.op_programs import named_programs
from tests.small_models import checkpoint

CLEAN = "========= COMPUTE-SANITIZER\nRan.\n========= ERROR SUMMARY: 0 errors\n"
RACES = "========= RACECHECK SUMMARY: 3 hazards displayed (2 errors, 1 warning)\n"
FOUND = "========= Invalid __global__ read of size 4 bytes\n========= ERROR SUMMARY: 1 error\n"
SAID = [
    (0, CLEAN, 0, "0 found"),
    (0, RACES.replace("3", "0"), 0, "0 found displayed (2 errors, 1 warning)"),
    (9, RACES, 3, "3 found displayed (2 errors, 1 warning)"),
    (9, FOUND, 1, "1 found"),
    (0, FOUND, 1, "1 found"),
    (4, CLEAN, None, "0 found, exit code 4: ========= ERROR SUMMARY: 0 errors"),
    (9, CLEAN, None, "0 found, exit code 9: ========= ERROR SUMMARY: 0 errors"),
    (0, "Ran.\n\n", None, "no summary, exit code 0: Ran."),
    (-11, "", None, "no summary, exit code -11: nothing was printed"),
]


@pytest.mark.parametrize(("code", "output", "findings", "said"), SAID)
def test_only_a_summary_without_findings_is_clean(
    code: int, output: str, findings: int | None, said: str
) -> None:
    got = sanitize.verdict(code, output)
    assert (got.findings, got.said) == (findings, said)
    assert got.clean == (findings == 0)


def test_every_op_and_every_example_is_in_a_binary() -> None:
    found = {(n, p.name) for _, n, programs in sanitize.op_units() for p in programs}
    assert {("f32", p.name) for p in named_programs()} < found
    assert {(n, name) for n in sanitize.NUMERICS for name in OP_PROGRAMS} < found
    assert len(found) == sum(len(programs) for *_, programs in sanitize.op_units())
    assert ("int8", "attention-0") in found and ("int8", "exp-0") not in found


def test_an_op_subject_s_rows_are_files(tmp_path: Path) -> None:
    unit = next(u for u in sanitize.op_units() if any(p.name == "append-0" for p in u[2]))
    made = sanitize.op_subject(unit, tmp_path)
    assert "__global__" in made.text
    for _, words in made.runs:
        assert words[2] == "--input" and Path(words[3].partition("=")[2]).exists()


def test_a_model_runs_under_every_tool(tmp_path: Path) -> None:
    case = ModelCase("qwen3", checkpoint("qwen3", 1))
    made = sanitize.model_subject(case, "int8", tmp_path)
    runs = list(sanitize.runs_of(made, sanitize.TOOLS))
    assert len(runs) == 2 * 5
    assert {tool for _, tool, _ in runs} == set(sanitize.TOOLS)
    assert [name for name, _, words in runs if "--no-graph" not in words] == [
        "model qwen3 int8, three prompts, graphs",
        "model qwen3 int8, chunks of 33, graphs",
    ]
    lengths = [len(line.split(",")) for line in Path(made.runs[0][1][3]).read_text().splitlines()]
    assert lengths == [300, 20, 1]


def test_a_run_is_watched(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text(f'#!/bin/sh\necho "$@"\nprintf "{RACES}" >&2\nexit 9\n')
    tool.chmod(0o755)
    words = sanitize.command("racecheck", str(tool), Path("binary"), ["-n", "3"])
    found, output, _ = sanitize.watch(words)
    assert found.findings == 3
    assert output.startswith("--tool racecheck --error-exitcode 9 binary -n 3\n")
    assert sanitize.watch([sys.executable, "-c", ""])[0].findings is None
