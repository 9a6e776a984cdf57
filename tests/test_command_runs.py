"""The command on programs that run: VM and host binary print the same, `diff` finds what is wrong.

Builds: one for the op examples without rows, one for those with, two of a tiny model, its edit, and
one of a small program; each is cached.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import examples
from compiler import api, pipeline
from compiler.command import show
from compiler.command.main import main
from compiler.diagnostics import CHECKPOINT, DIFFERENCES, INTERRUPTED, OK, UserError
from compiler.pipeline import Model
from compiler.program import Program
from compiler.target import HOST as HOST_TARGET
from compiler.target import NUMERICS, Options
from runtime import toolchain
from runtime.binary import capture
from runtime.synthetic import PRESETS, write_synthetic
from runtime.vm import run_program
from tests.merged import compiled, groups, merged, rows_of, rows_values

ROOT = Path(__file__).parents[1]
HOST = ["--target", "host"]
EXAMPLES = {name: examples.find(name) for name in examples.names()}
OPS = [n for n, path in EXAMPLES.items() if "def forward" not in path.read_text()]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    return str(write_synthetic(path, "tiny-llama"))


def said(capture: Any, words: list[str]) -> str:
    """Standard output of a command line that ends well."""
    code = main(words)
    out, err = capture.readouterr()
    assert code == OK, err
    return out


def test_op_examples_print_the_same_by_vm_and_by_binary(tmp_path: Path) -> None:
    programs = [pipeline.load(name).program for name in OPS]
    assert len(programs) >= 10
    for group in groups(programs):
        binary = toolchain.build(compiled(merged(group), Options()).text)
        for feed in rows_values(group):
            expected = "".join(printed(number, p, feed) for number, p in enumerate(group))
            argv: list[str] = []
            for name, array in feed.items():
                np.save(tmp_path / f"{name}.npy", array)
                argv += ["--input", f"{name}={tmp_path / name}.npy"]
            assert capture(binary, argv).out.decode() == expected


def printed(number: int, program: Program, feed: dict[str, Any]) -> str:
    """What the VM prints of a program that is number `number` of a merged one."""
    rows = rows_of(program)
    lowered, _ = pipeline.lower(program, Options(), HOST_TARGET)
    arrays = run_program(lowered, {rows.name: feed["rows"]} if rows else {})
    return "".join(
        show.result(f"s{number}_{name}", value.type, np.asarray(arrays[name]))
        for name, value in program.graph.results
    )


def test_an_op_program_from_files_and_into_files(
    tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.model").write_text("input x: f32[2, 3]\nn = x * 2.5\nreturn n, sum(n)\n")
    np.save("x.npy", np.array([[1, 2, 3], [-0.0, np.inf, 1e-30]], np.float32))
    feed = ["--input", "x=x.npy"]
    printed = said(capfd, ["vm", "p.model", *feed])
    assert printed.splitlines()[:7] == [
        "n: f32[2, 3]", "2.5", "5", "7.5", "-0", "inf", "2.5e-30"
    ]  # fmt: skip
    assert said(capfd, ["run", "p.model", *feed, *HOST]) == printed
    for verb, more in (("vm", []), ("run", HOST)):
        assert said(capfd, [verb, "p.model", *feed, "--out", verb, *more]) == ""
    for name in ("n", "sum"):
        np.testing.assert_array_equal(np.load(f"vm/{name}.npy"), np.load(f"run/{name}.npy"))
    assert said(capfd, ["diff", "p.model", *feed, *HOST]) == "compared 8 values: 0 bits differ\n"
    real = said(capfd, ["vm", "p.model", *feed, "--float64"])
    assert real.startswith("n: f64[2, 3]\n2.5\n")


@pytest.mark.parametrize("numerics", NUMERICS)
def test_a_model_by_vm_binary_and_diff(tiny: str, numerics: str, capfd: Capture) -> None:
    words = [tiny, "--tokens", "1,2,3,4,5", "-n", "3", "--numerics", numerics]
    tokens = said(capfd, ["vm", *words])
    assert re.fullmatch(r"\d+,\d+,\d+\n", tokens)
    if numerics == "int8":  # the others' builds would cost ten seconds each
        assert said(capfd, ["run", *words, *HOST]) == tokens


def test_diff_compares_every_row_and_the_plain_build(tiny: str, capfd: Capture) -> None:
    words = ["diff", tiny, "--tokens", "1,2,3,4,5", "-n", "3", *HOST]
    found = re.fullmatch(r"compared (\d+) values: 0 bits differ\n", said(capfd, words))
    assert found
    rows, layer = 7, 2 * 64 + 2 * 64 + 96  # at least: two sums, q, attention, the gate
    assert int(found[1]) >= rows * (2 * layer + 2 * 160)


@pytest.fixture(scope="module")
def dumping(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("cu") / "llama.cu"
    assert main(["compile", tiny, "--dump", "-o", str(path), *HOST]) == OK
    return path.read_text()


def test_a_changed_constant_is_found_where_it_is(
    tiny: str, dumping: str, tmp_path: Path, capfd: Capture
) -> None:
    """The 1 of silu's 1 + exp(-x): what is right up to there is not reported."""
    assert dumping.count("(1.0f + exp32(-") == 1
    edited = tmp_path / "edited.cu"
    edited.write_text(dumping.replace("(1.0f + exp32(-", "(1.5f + exp32(-"))
    code = main(["diff", tiny, "--tokens", "1,2,3", "-n", "2", "--cu", str(edited), *HOST])
    out, _ = capfd.readouterr()
    assert code == DIFFERENCES
    first, line = out.splitlines()
    where = r"l0\.\w+\[0, 0\]: \S+ expected, \S+ given, \d+ ulps apart; "
    assert re.match(where + r"\d+ of 384 values differ; \d+ named values differ$", first)
    silu = "return linear(silu(linear(n, w.ffn_gate)) * linear(n, w.ffn_up), w.ffn_down)"
    number = 1 + EXAMPLES["llama"].read_text().split(silu)[0].count("\n")
    assert line.strip() == f"llama.model:{number}  {silu}"


def test_an_edited_file_that_is_of_another_program(
    tiny: str, tmp_path: Path, capfd: Capture
) -> None:
    edited = tmp_path / "other.cu"
    assert main(["compile", "transpose", "--dump", "-o", str(edited), *HOST]) == OK
    code = main(["diff", tiny, "--tokens", "1,2", "--cu", str(edited), *HOST])
    assert code == 2 and "a flag is needed" in capfd.readouterr().err


@pytest.mark.parametrize("rows", ["all", "last"])
@pytest.mark.parametrize("count", [0, 3])
def test_logits_by_vm_and_by_binary(
    rows: str, count: int, tiny: str, tmp_path: Path, capfd: Capture
) -> None:
    (tmp_path / "seqs").write_text("1,2,3,4,5\n7\n")
    words = [tiny, "--seqs", str(tmp_path / "seqs"), "-n", str(count), "--logits", rows]
    shown = [said(capfd, [*command, *words, "--logits-file", str(tmp_path / name)])
             for name, command in (("vm", ["vm"]), ("run", ["run", *HOST]))]  # fmt: skip
    assert shown[0] == shown[1]
    by_vm, by_binary = np.load(tmp_path / "vm"), np.load(tmp_path / "run")
    assert len(by_vm) == 2 * max(count, 1) + (4 if rows == "all" else 0)
    np.testing.assert_array_equal(by_vm, by_binary)
    said(capfd, ["vm", *words, "--float64", "--logits-file", str(tmp_path / "real")])
    real = np.load(tmp_path / "real")
    assert real.dtype == np.float64 and real.shape == by_vm.shape
    assert 0 < abs(real - by_vm).max() < 0.5


def test_score_by_vm_and_by_binary(tiny: str, capfd: Capture) -> None:
    words = ["score", tiny, "--tokens", "1,2,3,4,5"]
    by_vm = said(capfd, [*words, "--vm"])
    assert said(capfd, [*words, *HOST]) == by_vm
    head, *rows, total = by_vm.splitlines()
    scores = [float(row.split()[2]) for row in rows]
    assert head.split()[:3] == ["at", "token", "logprob"] and len(scores) == 4
    perplexity = float(total.split()[1])
    np.testing.assert_allclose(perplexity, np.exp(-np.mean(scores)), rtol=1e-5)
    assert all(score < 0 for score in scores)


def test_build_leaves_a_binary_that_runs_by_itself(
    tiny: str, tmp_path: Path, capfd: Capture
) -> None:
    path = tmp_path / "llama"
    assert said(capfd, ["build", tiny, "-o", str(path), *HOST]) == ""
    done = capture(path, ["--weights", tiny, "--tokens", "1,2,3,4,5", "-n", "3"])
    tokens = said(capfd, ["vm", tiny, "--tokens", "1,2,3,4,5", "-n", "3"])
    assert done.out.decode() == tokens
    code = main(["run", "--weights", tiny, "--tokens", "1", "-n", "300", *HOST, tiny])
    assert code == 2 and "one checkpoint is needed" in capfd.readouterr().err


def test_a_binary_refuses_a_checkpoint_with_other_metadata(
    tiny: str, tmp_path: Path, capfd: Capture
) -> None:
    """The same tensors, turned by other angles and divided otherwise into heads."""
    cu, path = tmp_path / "llama.cu", tmp_path / "other.gguf"
    assert main(["compile", tiny, "-o", str(cu), *HOST]) == OK
    dims = replace(PRESETS["tiny-llama"], theta=5e5, eps=1e-6)
    write_synthetic(path, dims)
    run = ["run", "--cu", str(cu), "--tokens", "1,2", "-n", "1", *HOST]
    assert main([*run, "--weights", tiny]) == OK
    capfd.readouterr()
    assert main([*run, "--weights", str(path)]) == CHECKPOINT
    err = capfd.readouterr().err
    assert 'key "llama.rope.freq_base": 10000 is needed, 500000 was given' in err
    eps = 'key "llama.attention.layer_norm_rms_epsilon": 9.99999975e-06 is needed, 9.99999997e-07'
    assert eps in err


def test_the_binarys_own_refusals_keep_their_code(tiny: str, capfd: Capture) -> None:
    code = main(["run", tiny, "--tokens", "1,2", "-n", "300", *HOST])
    assert code == 2 and "a context of 302 tokens is needed" in capfd.readouterr().err


def test_the_python_api(tiny: str) -> None:
    model = api.load(tiny)
    ours = api.compile(model, target="host")
    made: Any = api.run(ours, prompts=[[1, 2, 3, 4, 5], [7]], n=3, logits=True)
    by_vm: Any = api.vm(model, prompts=[[1, 2, 3, 4, 5], [7]], n=3, logits=True)
    assert made.tokens == by_vm.tokens
    np.testing.assert_array_equal(np.concatenate(made.logits), np.concatenate(by_vm.logits))
    assert [len(rows) for rows in made.logits] == [7, 3]
    assert made.tokens[0][-1] == made.logits[0][-1].argmax()
    assert str(api.diff(ours, prompts=[[1, 2, 3, 4, 5], [7]], n=3)).endswith("0 bits differ")
    with pytest.raises(UserError, match="takes inputs, not prompts"):
        api.vm("rope", prompts=[[1]])
    with pytest.raises(UserError, match="numerics is one of 'f32', 'int8', 'int8x2'; 'int9' was"):
        api.compile(model, numerics="int9")


def test_an_interrupt_ends_a_run_quietly(tiny: str) -> None:
    words = ["-m", "compiler.command", "vm", tiny, "--tokens", "1", "-n", "250"]
    process = subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.read(4)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (INTERRUPTED, b"")


def test_numbers_are_spelled_as_the_binary_spells_them() -> None:
    for value, text in (
        (1e5, "1e+05"), (123456, "123456"), (0.1, "0.1"), (1e-5, "1e-05"), (0.001, "0.001"),
        (16777216, "16777216"), (123456790, "123456792"), (-0.0, "-0"),
        (3.4028235e38, "3.4028235e+38"),
        (np.nan, "nan"), (-np.inf, "-inf"), (1.5, "1.5"), (1e-45, "1e-45"),
    ):  # fmt: skip
        assert show.number(np.float32(value)) == text
    assert show.number(np.float16(0.1)) == "0.099975586"
    assert show.number(np.int64(-(2**63))) == str(-(2**63))


def test_a_model_of_ones_own(tmp_path: Path, tiny: str) -> None:
    own = tmp_path / "own.model"
    own.write_text(EXAMPLES["llama"].read_text())
    assert isinstance(pipeline.load(own, tiny), Model)
