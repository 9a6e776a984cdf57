"""`monocu profile`: every launch of a step is timed, in order, and times add up to the step.

Builds: two of a tiny model with clocks, one for one sequence at once; each is cached.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import examples
from codegen.driver import LINE, driver_text
from compiler import pipeline
from compiler.api.building import build
from compiler.api.costs import Statements, bytes_of
from compiler.api.profiling import Asked, Profile, plain_rate, profile, timed
from compiler.command import explaining, profiling, show
from compiler.command.main import main
from compiler.diagnostics import OK, USAGE, UserError
from compiler.pipeline import Compiled
from compiler.target import CUDA, HOST, Options
from runtime import toolchain
from runtime.binary import capture
from tests.small_models import checkpoint, model
from tests.test_explain import compiled as real_shapes

MODEL = "qwen3"
DECODE = Asked(context=3, n=9)
PREFILL = Asked(context=70, n=3, prefill=True)
ONLY = "glu_ffn_gate_ffn_up"
Capture = pytest.CaptureFixture[str]


@cache
def plain(seqs: int = 8) -> Compiled:
    return pipeline.compile_model(model(MODEL), Options(max_seqs=seqs), HOST)


@cache
def found(asked: Asked) -> Profile:
    made = timed(plain(1 if asked.prefill else 8))
    return profile(made, asked, build(made))


@pytest.mark.parametrize("asked", [DECODE, PREFILL], ids=["decode", "prefill"])
def test_every_launch_of_every_step_is_there(asked: Asked) -> None:
    of = found(asked)
    if asked.prefill:
        assert [(s.rows, s.position) for s in of.steps] == [(64, 64), (6, 70)] * 2 + [(64, 64)]
        assert (of.rows, of.position) == (64, 64)
    else:
        assert [(s.rows, s.position) for s in of.steps] == [(3, 3)] + [
            (1, 3 + i) for i in range(1, 8)
        ]
    for step in of.steps:
        assert len(step.came) == len(of.made.plan.step(step.rows)) + 2
        assert (step.came <= step.waited).all()
    ends = [t for s in of.steps for t in s.waited.tolist()]
    assert ends == sorted(ends)


def test_steps_of_one_row_have_launches_of_their_own() -> None:
    of = found(DECODE)
    names = [[p.kernel for p in of.made.plan.step(rows)] for rows in (1, 3)]
    assert "row_attention" in names[0] and "heads" not in names[0]
    assert "row_attention" not in names[1] and "heads" in names[1]
    pair = next(p for p in of.launches if p.kernel == "row_attention")
    assert len(pair.nodes) == 2


@pytest.mark.parametrize("asked", [DECODE, PREFILL], ids=["decode", "prefill"])
def test_times_add_up_to_the_step(asked: Asked) -> None:
    of = found(asked)
    for step in of.steps:
        assert step.spans.sum() == step.until - step.waited[0]
    *rows, total = profiling.kernels(of)
    sums = [sum(float(str(row[column]).replace(",", "") or 0) for row in rows) for column in (3, 4)]
    step = np.mean([s.until - s.waited[0] for s in of.counted]) / 1000
    np.testing.assert_allclose(sums, [step, 100], rtol=5e-3)
    np.testing.assert_allclose(float(str(total[3])), step, atol=0.06)
    lines = [float(str(row[0])) for row in profiling.statements(of)]
    np.testing.assert_allclose(sum(lines), step, rtol=5e-3)


def test_a_line_for_each_kernel_and_each_statement() -> None:
    of = found(DECODE)
    launches = Counter(p.kernel for p in of.launches)
    rows = profiling.kernels(of)
    assert [(r[0], r[1]) for r in rows[:-3]] == list(launches.items())
    assert [(r[0], r[1]) for r in rows[-3:]] == [
        ("advance", 1), (profiling.GAP, ""), ("step", len(of.launches) + 1)
    ]  # fmt: skip
    source = examples.find(MODEL).read_text().splitlines()
    shown = [str(row[2]) for row in profiling.statements(of)][:-1]
    numbers = [int(line.split(":")[1].split()[0]) for line in shown]
    assert len(numbers) >= 12 and numbers == sorted(numbers)
    assert all(
        source[n - 1].split("#")[0].strip() in line for n, line in zip(numbers, shown, strict=True)
    )


def test_shares_of_statements_add_up_and_follow_the_weights() -> None:
    """gate and up are one statement; q, k and v three, whose projections are one launch."""
    of = found(DECODE)
    known = Statements(of.made)
    for p in of.launches:
        shares = [share for _, share in known.shares(p, 1, 5).values()]
        assert shares and abs(sum(shares) - 1) < 1e-9
    qkv = next(p for p in of.launches if p.kernel == "linear_attn_q_attn_k_attn_v")
    shares = {text.split("  ")[1][0:3]: share for text, share in known.shares(qkv, 1, 5).values()}
    assert shares["q ="] > shares["k ="] > 0 and shares["c.v"] > 0


def test_a_projection_of_a_normed_value_is_the_projections() -> None:
    made = real_shapes("qwen3-0.6b", layers=4)
    known, times = Statements(made), Counter[str]()
    for p in made.plan.step(1):
        for text, share in known.shares(p, 1, 65).values():
            times[text.split("  ")[1].split(" = ")[0]] += share * bytes_of(p, 1, 65)
    assert times["n"] < 0.05 * times["q"] and times["q"] > 1.9 * times["k"] > 0
    assert sum(times.values()) == pytest.approx(explaining.totals(made.plan, 1).bytes, rel=0.01)


def test_what_one_launch_hands_on_in_itself_is_not_moved() -> None:
    pair = next(p for p in found(DECODE).launches if p.kernel == "row_attention")
    apart = sum(bytes_of(replace(pair, before=None, node=n), 1, 9) for n in pair.nodes)
    assert apart - bytes_of(pair, 1, 9) == 2 * 4 * 32 * 4  # q, written and read: 4 heads, f32


def test_without_a_rate_of_reads_floors_are_left_out() -> None:
    of = replace(found(DECODE), read_rate=0.0)
    floors = profiling.HEAD.index("floor us")
    assert {row[floors] for row in profiling.kernels(of)} == {""}
    assert profiling.reading(of).endswith("too little was free")


def test_bytes_grow_with_the_positions_that_attention_reads() -> None:
    of = found(DECODE)
    growing = {p.kernel for p in of.launches if bytes_of(p, 1, 100) > bytes_of(p, 1, 1)}
    assert growing == {"row_attention"}
    p = next(p for p in of.launches if p.kernel == "row_attention")
    assert bytes_of(p, 1, 101) - bytes_of(p, 1, 1) == 100 * 2 * 2 * 32 * 2  # k and v, 2 heads, f16


def test_the_memorys_rate_is_measured() -> None:
    assert 1e6 < found(DECODE).read_rate < 1e13


def test_the_build_with_clocks_computes_the_same() -> None:
    argv = ["--weights", str(checkpoint(MODEL)), "--tokens", "1,8,15", "-n", "9"]
    tokens = [capture(build(made), argv).out for made in (plain(), timed(plain()))]
    assert tokens[0] == tokens[1]
    assert plain_rate(plain(), DECODE) > 0


def test_a_rate_says_a_step_where_all_have_equal_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    for of in (found(PREFILL), found(DECODE)):

        def measured(args: argparse.Namespace, of: Profile = of) -> tuple[Profile, float]:
            return of, 100.0

        monkeypatch.setattr("compiler.command.profile.measured", measured)
        assert main(words()) == OK
    lines = [t for t in capsys.readouterr().out.splitlines() if t.startswith("without clocks")]
    rate = "without clocks: 100.0 tokens/s"
    assert lines == [rate, f"{rate}, 10,000.0 us a step"]
    even = [replace(found(PREFILL), asked=replace(PREFILL, context=n)).even for n in (6, 65, 128)]
    assert even == [True, False, True]


# the trace


def test_the_trace_is_one_of_chromes() -> None:
    of = found(DECODE)
    events: list[dict[str, Any]] = json.loads(profiling.trace(of))["traceEvents"]
    timed_ = [e for e in events if e["ph"] == "X"]
    assert {e["ph"] for e in events} == {"X", "M"}
    assert all({"name", "ts", "dur", "pid", "tid"} <= e.keys() for e in timed_)
    assert all(e["ts"] >= 0 and e["dur"] >= 0 for e in timed_)
    steps, launches = ([e for e in timed_ if e["tid"] == tid] for tid in (0, 1))
    assert len(steps) == len(of.steps)
    assert len(launches) == sum(len(of.made.plan.step(s.rows)) + 1 for s in of.steps)
    for step in steps:
        inside = [e for e in launches if step["ts"] <= e["ts"] < step["ts"] + step["dur"]]
        assert abs(sum(e["dur"] for e in inside) - step["dur"]) < 1e-3
    lines = {line for e in launches for line in e["args"].get("lines", ())}
    assert any("w.ffn_gate" in line for line in lines)


# one kernel alone


@pytest.mark.parametrize("prefill", [False, True], ids=["decode", "prefill"])
def test_only_repeats_one_kernel(prefill: bool) -> None:
    context, n = (70, 3) if prefill else (3, 9)
    of = found(Asked(context, n, prefill, only=ONLY, repeat=7))
    assert len(of.repeated) == 7 and all(ns > 0 for ns in of.repeated)
    assert of.last == ((6, 70) if prefill else (1, 11))
    said = profiling.repeated(of)
    assert said.startswith(f"{ONLY}: 7 launches, 2 of a step in turn: median ")
    assert "GB/s, floor " in said


# the command


def words(*more: str) -> list[str]:
    return ["profile", str(checkpoint(MODEL)), "--target", "host", *more]


def test_the_command_prints_plain_tables_into_a_pipe(tmp_path: Path, capfd: Capture) -> None:
    path = tmp_path / "trace.json"
    assert main(words("-n", "6", "--trace", str(path))) == OK
    out, _ = capfd.readouterr()
    assert out.startswith("== a step of 1 row, ") and "\n== statements\n" in out
    assert ONLY in out and "plain reads of the memory" in out and "\x1b" not in out
    assert json.loads(path.read_text())["traceEvents"]


def test_on_a_terminal_tables_are_drawn(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show.print_table("of [T] rows", ("a", "b [R]"), [("x", 1), ("y", 22)], right=(1,))
    out = capsys.readouterr().out
    assert "of [T] rows" in out and "b [R]" in out and "\u2500" in out and "== " not in out


def test_an_edited_file_is_profiled(tmp_path: Path, capfd: Capture) -> None:
    cu, other = tmp_path / "q.cu", tmp_path / "plain.cu"
    for path, more in ((cu, ["--timed"]), (other, [])):
        compile_ = ["compile", str(checkpoint(MODEL)), "--target", "host", "-o", str(path), *more]
        assert main(compile_) == OK
    assert main(words("--cu", str(cu), "--only", ONLY, "--repeat", "3")) == OK
    assert capfd.readouterr().out.startswith(f"{ONLY}: 3 launches")
    assert main(words("--cu", str(other))) == USAGE
    assert "what `monocu compile --timed` has written is needed" in capfd.readouterr().err


# what is emitted


def test_a_plain_file_has_nothing_of_it() -> None:
    text = plain().text
    clocks = timed(plain(), ranges=True).text
    for word in ("launch_times", "nanoseconds", "ProfilerRange", "--times", "only"):
        assert word in clocks
        assert word not in text or word == "only"
    assert LINE not in clocks + text
    assert driver_text(True) in text


def test_ranges_are_skipped_by_name_without_their_header(capfd: Capture) -> None:
    assert main(words("--nvtx", "-n", "6")) == OK
    assert "NVTX ranges are left out: nvtx3/nvToolsExt.h was not there" in capfd.readouterr().err


@pytest.mark.nvcc
def test_nvcc_compiles_clocks_and_ranges() -> None:
    try:
        toolchain.find_nvcc()
    except UserError as error:
        pytest.skip(str(error))
    made = timed(pipeline.compile_model(model(MODEL), Options(), CUDA), ranges=True)
    assert toolchain.build(made.text, "cuda", ("sm_80", "sm_90a")).exists()
