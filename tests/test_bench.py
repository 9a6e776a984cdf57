"""monocu bench: llama-bench's tests on the host target, its table, what it refuses."""

from __future__ import annotations

import json
import shlex
from argparse import Namespace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import examples
from compiler import pipeline
from compiler.api import benching
from compiler.api.costs import caches_read, weights_read
from compiler.command import bench, bench_table
from compiler.command.main import main
from compiler.command.parser import Parser
from compiler.diagnostics import OK, USAGE
from compiler.pipeline import Compiled
from compiler.target import HOST, Options
from runtime.binary import Finished, capture
from runtime.hashed_weights import open_synthetic
from runtime.synthetic import PRESETS
from tests.golden_files import Golden
from tests.test_results import SCHEMA, faults

GOLDEN = Path(__file__).parent / "golden"
TINY = ("bench", "--synthetic", "tiny-qwen3moe:q8_0", "--target", "host", "--max-rows", "64")


@cache
def compiled(spelled: str) -> Compiled:
    model = pipeline.load(None, open_synthetic(spelled))
    return pipeline.compile_model(model, Options(max_rows=64), HOST)


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main([*TINY, *words, "-o", "json"]) == OK
    return json.loads(capsys.readouterr().out)


def test_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "-p", "70,8", "-n", "4", "-d", "0,100", "-r", "2")
    names = ["pp70", "pp8", "tg4", "pp70 @ d100", "pp8 @ d100", "tg4 @ d100"]
    assert [t["test"] for t in found["tests"]] == names
    for test in found["tests"]:
        assert len(test["samples_ts"]) == len(test["samples_ns"]) == 2
        assert min(test["samples_ns"]) > 0 and test["stddev_ts"] >= 0
        assert min(test["samples_ts"]) <= test["median_ts"] <= max(test["samples_ts"])
        assert (test["n_gen"] > 0) == (test["bytes_per_token"] is not None)
    assert (found["schema"], found["target"], found["device"]) == (benching.SCHEMA, "host", "host")
    assert found["model"] == "tiny-qwen3moe-q8_0"
    for positive in ("read_bytes_per_second", "peak_bytes", "compile_seconds", "build_seconds",
                     "load_seconds", "model_size", "model_n_params"):  # fmt: skip
        assert found[positive] > 0, positive
    assert found["command"].endswith("-p 70,8 -n 4 -d 0,100 -r 2 --target host --numerics int8 "
                                     "--max-rows 64")  # fmt: skip


def test_shares_are_of_the_reads_of_the_same_run(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "-p", "8", "-n", "4", "-r", "1")
    decode = found["tests"][1]
    share = decode["bytes_per_token"] * decode["median_ts"] / found["read_bytes_per_second"]
    assert decode["bandwidth_share"] == pytest.approx(share, abs=1e-4)


def test_a_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TINY, "-p", "8", "-n", "4", "-r", "1"]) == OK
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("| model ") and out[2].startswith("| tiny-qwen3moe-q8_0 |")
    assert [line.split("|")[6].strip() for line in out[2:4]] == ["pp8", "tg4"]


def test_without_memory_for_reads_there_are_speeds_and_no_share(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any) -> Finished:
        done = capture(*args)
        report = {k: v for k, v in done.report().items() if k != "read_bytes_per_second"}
        return Finished(done.out, json.dumps(report))

    monkeypatch.setattr(benching, "capture", full)
    found = document(capsys, "-p", "8", "-n", "4", "-r", "1")
    assert found["read_bytes_per_second"] is None
    assert [t["bandwidth_share"] for t in found["tests"]] == [None, None]
    assert found["tests"][1]["bytes_per_token"] > 0 and found["tests"][1]["median_ts"] > 0
    assert not list(faults({"part": "", "runs": [found], "failed": []}, SCHEMA))
    shown = bench_table.markdown(found)
    assert "plain reads not measured, for want of memory;" in shown and "%" not in shown


def test_the_commit_is_of_our_own_tree_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installed inside of a user's project, there is none."""
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    benching.git(tmp_path, "init")
    benching.git(tmp_path, *author, "commit", "--allow-empty", "-m", "theirs")
    for place, known in ((".", True), (".venv/lib", False)):
        folder = tmp_path / place / "compiler" / "api"
        folder.mkdir(parents=True)
        monkeypatch.setattr(benching, "__file__", str(folder / "benching.py"))
        assert bool(benching.commit()) == known, place


@pytest.mark.parametrize("spelled", ["tiny-llama:q8_0", "tiny-qwen3:f16", "tiny-qwen3moe:q4_0"])
def test_bytes_are_those_of_the_tensors_and_the_plan(spelled: str) -> None:
    made, dims = compiled(spelled), PRESETS[spelled.partition(":")[0]]
    tensors = made.model.weights.tensors
    table = tensors["token_embd.weight"].nbytes
    expected = sum(t.nbytes for name, t in tensors.items() if "_exps" not in name)
    expected += table // dims.vocab - (0 if dims.tied else table)  # a row; the head reads it all
    experts = sum(t.nbytes for name, t in tensors.items() if "_exps" in name)
    if dims.experts:
        expected += experts * dims.picks // dims.experts
    graph = made.lowered.graph
    assert weights_read(graph) == expected
    assert caches_read(graph, 1) == made.plan.cache_bytes
    assert caches_read(graph, 50) == 50 * made.plan.cache_bytes
    # Rows at positions 10 to 13 see 11 to 14 of them.
    read = benching.bytes_per_token(made, benching.Test(0, 4, 10))
    assert read == expected + made.plan.cache_bytes * 25 // 2


def test_a_window_ends_the_growth_of_what_is_read(tmp_path: Path) -> None:
    """Of windows as long as 6, positions 3 to 10 read 3, 4, 5 and five times 6."""
    text = examples.find("llama").read_text()
    path = tmp_path / "windowed.model"
    path.write_text(text.replace("c.k, c.v)", "c.k, c.v, window=6)"))
    model = pipeline.load(str(path), open_synthetic("tiny-llama:q8_0"))
    made = pipeline.compile_model(model, Options(), HOST)
    read = benching.bytes_per_token(made, benching.Test(0, 8, 2))
    assert read == weights_read(made.lowered.graph) + made.plan.cache_bytes * (12 + 30) // 8


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-p", "0"), "-p: a whole number from 1 to 2147483647 is needed, '0' was given"),
        (("-n", "8,x"), "-n: a whole number from 1 to 2147483647 is needed, 'x' was given"),
        (("-d", "-1"), "-d: a whole number from 0 to 2147483647 is needed, '-1' was given"),
        (("-r", "0"), "-r: a whole number from 1 to 1000 is needed, '0' was given"),
        (("-o", "csv"), "-o: invalid choice: 'csv'"),
        (("-p", "8", "-n", "4", "-d", "249"), "pp8 @ d249: a context of 257 tokens is needed, "
         "tiny-qwen3moe-q8_0 is trained for 256; a smaller -p, -n or -d is needed"),
        (("-p", "257"), "pp257: a context of 257 tokens is needed"),
        (("--weights", "w.gguf"), "one checkpoint is needed, w.gguf and --synthetic were given"),
        (("norm_matmul_softmax",), "a model is needed, norm_matmul_softmax is an op program"),
    ],
)  # fmt: skip
def test_refused(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TINY, *words]) == USAGE
    assert message in capsys.readouterr().err


def parsed(*words: str) -> Namespace:
    parser = Parser("monocu bench", "")
    bench.arguments(parser)
    return parser.parse(words)


@pytest.mark.parametrize(
    "words",
    [
        ("--synthetic", "qwen3-8b:q8_0", "--target", "cuda", "--arch", "sm_90a,sm_80"),
        ("qwen3", "--weights", "a b.gguf", "--max-seqs", "4", "--max-rows", "64", "--kv", "f32"),
        ("a.gguf", "-p", "8,9", "-n", "4", "-d", "0,7", "-r", "2", "--numerics", "f32",
         "--hold", "glu,head-choose"),
    ],
)  # fmt: skip
def test_the_command_holds_all_that_was_asked_for(words: tuple[str, ...]) -> None:
    asked = parsed(*words)
    again = shlex.split(bench.command(asked))
    assert again[:2] == ["monocu", "bench"] and parsed(*again[2:]) == asked


FIXED: dict[str, Any] = {
    "model": "qwen3-8b-q8_0", "model_size": 8704811008, "model_n_params": 8190735360,
    "target": "cuda", "numerics": "int8", "device": "NVIDIA H200", "driver": "580.1",
    "read_bytes_per_second": 4.529e12, "peak_bytes": 12 << 30, "compile_seconds": 3.1,
    "build_seconds": 61.25, "load_seconds": 1.5, "capture_seconds": 0.03, "commit": "0123456789ab",
    "command": "monocu bench --synthetic qwen3-8b:q8_0 -p 512 -n 128 -d 0,4096 -r 5",
    "tests": [
        {"test": "pp512", "median_ts": 9374.2, "stddev_ts": 41.7, "bytes_per_token": None,
         "bandwidth_share": None},
        {"test": "tg128 @ d4096", "median_ts": 383.456, "stddev_ts": 0.4,
         "bytes_per_token": 8650000000, "bandwidth_share": 0.7324},
    ],
}  # fmt: skip


def test_the_table_is_llama_bench_s(golden: Golden) -> None:
    golden(GOLDEN / "bench.md", bench_table.markdown(FIXED) + "\n")


def test_models_of_less_than_a_gib_or_a_billion() -> None:
    assert bench_table.size(633500000) == "604.15 MiB"
    assert bench_table.parameters(596049920) == "596.05 M"
