"""A toy model under the driver: tokens, steps, logits, values against NumPy, and how runs end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import driver_toy as toy
import numpy as np
import pytest

PROMPTS = ([1, 2, 3], [4], [5, 6, 7, 8, 9, 10, 11], [12, 0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("toy")
    toy.write_checkpoint(place / "toy.gguf")
    (place / "seqs").write_text("\n".join(map(toy.line, PROMPTS)))
    return place


def run(folder: Path, *words: object, sanitize: bool = False) -> toy.Ran:
    ran = toy.run("model", "--weights", folder / "toy.gguf", *words, sanitize=sanitize)
    assert ran.code == 0, ran.err
    return ran


def test_one_sequence(folder: Path) -> None:
    ran = run(folder, "--tokens", "1,2,3", "-n", 20, "--json")
    assert ran.out == toy.line(toy.generated([1, 2, 3], 20)) + "\n"
    first = "toy: numerics f32, kv f32, weights f32, target host, context 23"
    assert ran.err.splitlines()[0] == first


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("more", [(), ("--logits", "all"), ("--no-graph",), ("--host-seed", "5")])
def test_any_chunk_gives_the_same_tokens(folder: Path, chunk: int, more: tuple[str, ...]) -> None:
    prompt = [i % 17 for i in range(40)]
    ran = run(folder, "--tokens", toy.line(prompt), "-n", 5, "--chunk", chunk, *more)
    assert ran.out == toy.line(toy.generated(prompt, 5)) + "\n"


def test_sequences_take_the_longest_one_s_steps(folder: Path) -> None:
    ran = run(folder, "--seqs", folder / "seqs", "-n", 6, "--json")
    assert ran.out.splitlines() == [toy.line(toy.generated(p, 6)) for p in PROMPTS]
    report = ran.report
    # 13 rows of four prompts fit into one step; five decode steps of all four follow.
    assert (report["steps"], report["prefill_steps"]) == (6, 1)
    assert report["tokens"] == [toy.generated(p, 6) for p in PROMPTS]
    assert report["launches"] == 6 * 7
    assert (report["graph_captures"], report["graph_replays"]) == (2, 6)
    # The first decode step's table goes up; the device moves it on from there.
    assert report["step_uploads"] == 2
    assert (report["prompt_tokens"], report["generated_tokens"]) == (13, 24)


def test_a_long_prompt_beside_decoding_ones(folder: Path, tmp_path: Path) -> None:
    prompts = [[1], [2, 3], [i % 17 for i in range(50)]]
    (tmp_path / "seqs").write_text("".join(toy.line(p) + "\r\n" for p in prompts))
    ran = run(folder, "--seqs", tmp_path / "seqs", "-n", 9, "--chunk", 6, "--json")
    assert ran.out.splitlines() == [toy.line(toy.generated(p, 9)) for p in prompts]
    assert ran.report["steps"] == 9 + 8  # 50 rows by six, then eight more of its own


def test_more_sequences_than_slots_wait_their_turn(folder: Path, tmp_path: Path) -> None:
    prompts = [[i % 17] * (1 + i % 5) for i in range(11)]
    (tmp_path / "seqs").write_text("".join(toy.line(p) + "\n" for p in prompts))
    ran = run(folder, "--seqs", tmp_path / "seqs", "-n", 4, "--json")
    assert ran.out.splitlines() == [toy.line(toy.generated(p, 4)) for p in prompts]
    assert ran.report["steps"] == 12


def test_stop_ids_end_each_sequence_by_itself(folder: Path) -> None:
    made = [toy.generated(p, 12) for p in PROMPTS]
    stop = made[0][1]
    kept = [m[: m.index(stop)] if stop in m else m for m in made]
    assert len({len(k) for k in kept}) > 1
    ran = run(folder, "--seqs", folder / "seqs", "-n", 12, "--stop", f"{stop}", "--json")
    assert ran.out.split("\n")[:-1] == [toy.line(k) for k in kept]
    assert ran.report["ends"] == ["stop" if stop in m else "length" for m in made]
    rows = [len(p) + len(k) - (stop not in m) for p, k, m in zip(PROMPTS, kept, made, strict=True)]
    assert ran.report["rows"] == rows


@pytest.mark.parametrize("seed", range(10))
def test_random_batches(folder: Path, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, n, chunk = (int(rng.integers(1, top)) for top in (10, 8, 17))
    prompts = [rng.integers(0, 17, rng.integers(1, 40)).tolist() for _ in range(count)]
    (tmp_path / "seqs").write_text("".join(toy.line(p) + "\n" for p in prompts))
    words = ["--seqs", tmp_path / "seqs", "-n", n, "--chunk", chunk, "--host-seed", seed]
    if seed % 2:
        words += ["--logits", "all"]
    ran = run(folder, *words)
    assert ran.out.splitlines() == [toy.line(toy.generated(p, n)) for p in prompts]


def test_no_tokens_asked_for(folder: Path) -> None:
    ran = run(folder, "--tokens", "1,2,3", "-n", 0, "--json")
    assert (ran.out, ran.report["steps"], ran.report["tokens"]) == ("\n", 1, [[]])


def test_text_streams_whole_characters(folder: Path) -> None:
    ids = toy.generated([1, 2, 3], 20)
    ran = run(folder, "--tokens", "1,2,3", "-n", 20, "--text")
    words = {0: b"a", 1: b"b", 2: b" c", 3: b"\xbf", 4: b"\xc3", 5: b"\xa9"}
    text = b"".join(words.get(i, f"w{i - 6}".encode()) for i in ids)
    assert ran.out == text.decode(errors="replace") + "\n"


def logits_of(tokens: list[int]) -> np.ndarray:
    return toy.hidden(tokens) @ toy.TABLE.T


@pytest.mark.parametrize("chunk", [2, 16])
def test_logits_of_every_row(folder: Path, tmp_path: Path, chunk: int) -> None:
    out = tmp_path / "all.npy"
    words = ("--seqs", folder / "seqs", "-n", 3, "--logits", "all", "--logits-file", out)
    run(folder, *words, "--chunk", chunk)
    whole = [logits_of([*p, *toy.generated(p, 2)]) for p in PROMPTS]
    np.testing.assert_array_equal(np.load(out), np.concatenate(whole))
    assert np.load(out).dtype == np.float32


def test_logits_of_last_rows_and_an_early_stop(folder: Path, tmp_path: Path) -> None:
    made = [toy.generated(p, 8) for p in PROMPTS]
    stop = made[0][1]
    kept = [m[: m.index(stop)] if stop in m else m[:7] for m in made]
    out = tmp_path / "last.npy"
    words = ("--seqs", folder / "seqs", "-n", 8, "--stop", stop, "--logits-file", out)
    run(folder, *words)
    whole = [logits_of([*p, *k])[len(p) - 1 :] for p, k in zip(PROMPTS, kept, strict=True)]
    np.testing.assert_array_equal(np.load(out), np.concatenate(whole))
    assert [f.name for f in tmp_path.iterdir()] == ["last.npy"]


@pytest.mark.parametrize("chunk", [3, 16])
def test_dumped_values(folder: Path, tmp_path: Path, chunk: int) -> None:
    out = tmp_path / "dump"
    words = ("--seqs", folder / "seqs", "-n", 3, "--chunk", chunk)
    run(folder, *words, "--dump", "l*.h,n,logits,x", "--dump-dir", out)
    names = ("l0.h", "l1.h", "logits", "n.scales", "n.sums", "n.words", "x")
    assert sorted(f.name for f in out.iterdir()) == [f"{n}.npy" for n in names]
    got = {n: np.load(out / f"{n}.npy") for n in names}
    tokens = [[*p, *toy.generated(p, 2)] for p in PROMPTS]
    h = np.concatenate([toy.hidden(t) for t in tokens])
    np.testing.assert_array_equal(got["x"], toy.TABLE[np.concatenate(tokens)])
    np.testing.assert_array_equal(got["l1.h"], h)
    np.testing.assert_array_equal(got["l0.h"], h - toy.BIASES[1])
    words_of = np.fmod(h, 100)
    np.testing.assert_array_equal(got["n.words"], words_of.astype(np.int8))
    assert got["n.words"].dtype == np.int8
    np.testing.assert_array_equal(got["n.scales"], np.full((len(h), 1), 2, np.float32))
    np.testing.assert_array_equal(got["n.sums"], 2 * words_of.sum(1, keepdims=True))
    last = [logits_of(t)[len(p) - 1 :] for p, t in zip(PROMPTS, tokens, strict=True)]
    np.testing.assert_array_equal(got["logits"], np.concatenate(last))


def test_all_dumps_every_value_and_uses_no_graph(folder: Path, tmp_path: Path) -> None:
    words = ("--tokens", "1", "-n", 2, "--dump", "all", "--dump-dir", tmp_path, "--json")
    assert run(folder, *words).report["graph_replays"] == 0
    assert len(list(tmp_path.iterdir())) == 7


BAD_TENSORS = (
    ({"table__weight": None}, 'tensor "table.weight": f32[17, 32] is needed, it is not there'),
    ({"blk__1__bias": None}, 'tensor "blk.1.bias": f32[32] is needed, it is not there'),
    ({"blk__0__bias": np.zeros(31, np.float32)}, "f32[32] is needed, f32[31] was given"),
    ({"table__weight": np.zeros((32, 17), np.float32)}, "is needed, f32[32, 17] was given"),
    ({"table__weight": np.zeros((1, 17, 32), np.float32)}, "is needed, f32[1, 17, 32] was given"),
    ({"table__weight": np.zeros((17, 32), np.float16)}, "is needed, type 1[17, 32] was given"),
)


@pytest.mark.parametrize(("changes", "message"), BAD_TENSORS)
def test_another_checkpoint_is_refused(
    tmp_path: Path, changes: dict[str, np.ndarray | None], message: str
) -> None:
    weights = toy.write_checkpoint(tmp_path / "other.gguf", **changes)
    ran = toy.run("model", "--weights", weights, "--tokens", "1", "--logits-file", tmp_path / "l")
    assert (ran.code, ran.out) == (3, "")
    assert "not the checkpoint that this program was compiled for" in ran.err
    assert message in ran.err
    assert [f.name for f in tmp_path.iterdir()] == ["other.gguf"]


BAD_METADATA = (
    ({"layers": 3}, 'key "toy.layers": 2 is needed, 3 was given'),
    ({"eps": 1e-6}, 'key "toy.eps": 9.99999975e-06 is needed, 9.99999997e-07 was given'),
    ({"kind": "dense"}, "key \"toy.kind\": 'mixed' is needed, 'dense' was given"),
    ({"kind": 7}, "key \"toy.kind\": 'mixed' is needed, 7 was given"),
    ({"windows": [4, 1]}, 'key "toy.windows": [4, 0] is needed, [4, 1] was given'),
    ({"windows": [4]}, 'key "toy.windows": [4, 0] is needed, [4] was given'),
    ({"windows": list(range(300))}, "[4, 0] is needed, [300 elements] was given"),
    ({"scale": 2.0}, 'key "toy.scale": none is needed, 2 was given'),
    ({"layers": None}, 'key "toy.layers": 2 is needed, it is not there'),
)


@pytest.mark.parametrize(("changes", "message"), BAD_METADATA)
def test_other_metadata_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    meta = {k: v for k, v in (toy.META | changes).items() if v is not None}
    weights = toy.write_checkpoint(tmp_path / "other.gguf", meta)
    ran = toy.run("model", "--weights", weights, "--tokens", "1")
    assert (ran.code, ran.out) == (3, "")
    assert "not the checkpoint that this program was compiled for" in ran.err
    assert message in ran.err


def test_a_number_may_be_stored_as_another_type(tmp_path: Path) -> None:
    weights = toy.write_checkpoint(tmp_path / "other.gguf", {**toy.META, "layers": 2.0})
    assert toy.run("model", "--weights", weights, "--tokens", "1", "-n", 1).code == 0


def test_faults_of_a_checkpoint_stand_in_one_line(tmp_path: Path) -> None:
    gone = {"table__weight": None, "blk__0__bias": None, "blk__1__bias": None}
    weights = toy.write_checkpoint(tmp_path / "t.gguf", **gone, x=np.zeros(1, np.float32))
    last = toy.run("model", "--weights", weights, "--tokens", "1").err.splitlines()[-1]
    assert [name in last for name in ("table.weight", "blk.0.bias", "blk.1.bias")] == [True] * 3


def test_tensors_that_nobody_reads_are_fine(tmp_path: Path) -> None:
    weights = toy.write_checkpoint(tmp_path / "more.gguf", other=np.zeros(3, np.float32))
    assert toy.run("model", "--weights", weights, "--tokens", "1", "-n", 1).code == 0


def test_a_closed_reader_ends_the_run(folder: Path) -> None:
    words = ("--weights", folder / "toy.gguf", "--tokens", "1", "-n", 10**6, "--context", 2 * 10**6)
    command = [toy.binary("model"), *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        assert p.stdout and p.stderr
        p.stdout.read(8)
        p.stdout.close()
        errors = p.stderr.read()
        assert p.wait(10) == 0  # as `monocu vm`: the reader has what it wants
    assert "error" not in errors


def test_files_are_written_though_the_reader_has_gone(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "logits.npy"
    words = ("--weights", folder / "toy.gguf", "--tokens", "1", "-n", 100, "--logits-file", out)
    command = [toy.binary("model"), *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        assert p.stdout and p.stderr
        p.stdout.close()
        errors = p.stderr.read()
        assert p.wait(20) == 0, errors
    assert len(np.load(out)) == 100


@pytest.mark.parametrize("several", [False, True])
def test_an_interrupt_keeps_what_there_is(folder: Path, tmp_path: Path, several: bool) -> None:
    prompts = ("--seqs", folder / "seqs") if several else ("--tokens", "1,2,3")
    words = (*prompts, "-n", 10**6, "--context", 2 * 10**6, "--logits-file", tmp_path / "l.npy")
    command = [toy.binary("model"), "--weights", folder / "toy.gguf", *map(str, words), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        assert p.stdout and p.stderr
        while not any(f.stat().st_size > 10**4 for f in tmp_path.iterdir()):
            time.sleep(0.05)
        p.send_signal(signal.SIGINT)
        out, errors = p.communicate(timeout=20)
    assert p.returncode == 130
    lines = out.splitlines()
    assert len(lines) == (4 if several else 1)
    expected = toy.generated([1, 2, 3], 30)
    assert lines[0].startswith(toy.line(expected))
    assert '"ends": ["interrupted"' in errors.splitlines()[-1]
    assert not list(tmp_path.iterdir())  # no file that is not whole


def test_clean_under_sanitizers(folder: Path, tmp_path: Path) -> None:
    words = ("--seqs", folder / "seqs", "-n", 5, "--json", "--text", "--logits", "all")
    ran = run(folder, *words, "--logits-file", tmp_path / "l.npy", sanitize=True)
    assert len(ran.report["tokens"]) == 4  # type: ignore[arg-type]
    dump = ("--dump", "all", "--dump-dir", tmp_path / "d", "--stop", "1,2")
    run(folder, "--tokens", "1,2,3", "-n", 5, *dump, sanitize=True)


def test_no_write_reaches_a_full_disk_unseen(folder: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    command = [toy.binary("model"), "--weights", folder / "toy.gguf", "--tokens", "1", "-n", "2"]
    with open("/dev/full", "w") as full:
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == 4
    assert "standard output: No space left" in ran.stderr
