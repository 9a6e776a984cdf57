"""Command lines of binaries: every bad one has its exit code and its words, and leaves nothing."""

from __future__ import annotations

from pathlib import Path

import driver_toy as toy
import numpy as np
import pytest

RUN = ("--weights", "{w}", "--tokens", "1,2,3")
BENCH = ("--weights", "{w}", "--bench", "tg4")
USAGE, CHECKPOINT, DEVICE = 2, 3, 4

MODEL = (
    ((), USAGE, "--weights FILE or --synthetic SEED is needed, nothing was given"),
    (("--weights", "{w}"), USAGE, "one of --tokens and --seqs is needed, none was given"),
    ((*RUN, "--seqs", "{seqs}"), USAGE, "one of --tokens and --seqs is needed, both were given"),
    (
        (*RUN, "--wat"),
        USAGE,
        'a flag is needed, "--wat" was given; there are: --weights --synthetic',
    ),
    ((*RUN, "--wa\nt'\x1b[0m"), USAGE, r"--wa\x0at'\x1b[0m"),
    ((*RUN, "stray"), USAGE, 'a flag is needed, "stray" was given'),
    ((*RUN, "-h"), USAGE, 'a flag is needed, "-h" was given'),
    ((*RUN, "-n=3"), USAGE, 'a flag is needed, "-n=3" was given'),
    ((*RUN, "--temperature", "1"), USAGE, "--temperature: planned, not there yet"),
    ((*RUN, "--seed=1"), USAGE, "--seed: planned, not there yet"),
    ((*RUN, "--top-k", "1"), USAGE, "--top-k: planned, not there yet"),
    ((*RUN, "--top-p", "1"), USAGE, "--top-p: planned, not there yet"),
    ((*RUN, "--min-p", "1"), USAGE, "--min-p: planned, not there yet"),
    ((*RUN, "--profile"), USAGE, "--profile: planned, not there yet"),
    *(
        ((*BENCH, *words), USAGE, f"--bench: its tests alone are needed, {flag} was given, too")
        for flag, words in (
            ("--tokens", ("--tokens", "1")),
            ("--seqs", ("--seqs", "{seqs}")),
            ("-n", ("-n", "64")),
            ("--stop", ("--stop", "3")),
            ("--text", ("--text",)),
            ("--logits all", ("--logits", "all")),
            ("--logits-file", ("--logits-file", "{out}/x.npy")),
            ("--dump", ("--dump", "x", "--dump-dir", "{out}/d")),
        )
    ),
    (
        ("--weights", "{w}", "--bench", "xx1"),
        USAGE,
        'as pp512, tg128 or tg128@4096 are needed, "xx1"',
    ),
    (("--weights", "{w}", "--bench", "pp0"), USAGE, "--bench: a whole number from 1 to 16777216"),
    (("--weights", "{w}", "--bench", "tg8@x"), USAGE, "--bench: a whole number from 0 to 16777216"),
    (
        ("--weights", "{w}", "--bench", "tg8@121"),
        USAGE,
        "(tg8 @ d121), the trained length is 128; a smaller test or depth or a greater",
    ),
    (
        ("--weights", "{w}", "--bench", "tg4,pp129"),
        USAGE,
        "(pp129), the trained length is 128; a smaller test or a greater --context is needed",
    ),
    (
        ("--weights", "{w}", "--bench", "tg8", "--repeat", "0"),
        USAGE,
        "--repeat: a whole number from 1",
    ),
    ((*RUN, "--synthetic", "0"), USAGE, "one of --weights and --synthetic is needed, both were"),
    (("--synthetic", "-1", "--tokens", "1"), USAGE, "--synthetic: a whole number from 0 to"),
    (
        ("--synthetic", "0", "--tokens", "1", "--text"),
        USAGE,
        "--text: a checkpoint with a vocabulary",
    ),
    ((*RUN, "-n"), USAGE, "-n: COUNT is needed, nothing was given"),
    ((*RUN, "-n", ""), USAGE, '-n: COUNT is needed, "" was given'),
    ((*RUN, "--context="), USAGE, '--context: TOKENS is needed, "" was given'),
    ((*RUN, "-n", "-1"), USAGE, '-n: a whole number from 0 to 1073741824 is needed, "-1" was'),
    ((*RUN, "-n", "3x"), USAGE, '-n: a whole number from 0 to 1073741824 is needed, "3x" was'),
    ((*RUN, "-n", " 3"), USAGE, '-n: a whole number from 0 to 1073741824 is needed, " 3" was'),
    ((*RUN, "-n", "+3"), USAGE, '-n: a whole number from 0 to 1073741824 is needed, "+3" was'),
    ((*RUN, "-n", "1e2"), USAGE, '"1e2" was given'),
    ((*RUN, "-n", "18446744073709551617"), USAGE, '"18446744073709551617" was given'),
    ((*RUN, "-n", "1", "-n", "2"), USAGE, "-n: one is needed, a second was given"),
    ((*RUN, "--tokens", "1"), USAGE, "--tokens: one is needed, a second was given"),
    ((*RUN, "--json=1"), USAGE, '--json: takes no value, "1" was given'),
    (("--weights", "{w}", "--tokens", ""), USAGE, '--tokens: IDS is needed, "" was given'),
    (("--weights", "{w}", "--tokens", "1,,2"), USAGE, "--tokens: a whole number from 0 to 16"),
    (("--weights", "{w}", "--tokens", "1,2,"), USAGE, '"" was given'),
    (("--weights", "{w}", "--tokens", "1, 2"), USAGE, '" 2" was given'),
    (("--weights", "{w}", "--tokens", "17"), USAGE, 'from 0 to 16 is needed, "17" was given'),
    (("--weights", "{w}", "--tokens", "-1"), USAGE, 'from 0 to 16 is needed, "-1" was given'),
    ((*RUN, "--stop", "17"), USAGE, '--stop: a whole number from 0 to 16 is needed, "17"'),
    ((*RUN, "--chunk", "0"), USAGE, '--chunk: a whole number from 1 to 16 is needed, "0"'),
    ((*RUN, "--chunk", "17"), USAGE, '--chunk: a whole number from 1 to 16 is needed, "17"'),
    ((*RUN, "--logits", "some"), USAGE, '--logits: all or last is needed, "some" was given'),
    ((*RUN, "--context", "0"), USAGE, "--context: a whole number from 1 to"),
    (
        (*RUN, "--context", "66"),
        USAGE,
        "a context of 67 tokens is needed (a prompt of 3 and -n 64)",
    ),
    ((*RUN, "-n", "126"), USAGE, "the trained length is 128; a smaller -n or a greater --context"),
    (
        (*RUN, "--host-seed", "4294967296"),
        USAGE,
        "--host-seed: a whole number from 0 to 4294967295",
    ),
    ((*RUN, "--dump", "x"), USAGE, "--dump and --dump-dir are needed together, one was given"),
    ((*RUN, "--dump-dir", "{out}"), USAGE, "--dump and --dump-dir are needed together"),
    (
        (*RUN, "--dump", "y", "--dump-dir", "{out}"),
        USAGE,
        'a stored value is needed, "y" was given',
    ),
    (
        (*RUN, "--dump", "x,l9.h", "--dump-dir", "{out}"),
        USAGE,
        '"l9.h" was given; there are: x l%d.h',
    ),
    (
        (*RUN, "--dump", "x,", "--dump-dir", "{out}"),
        USAGE,
        'a stored value is needed, "" was given',
    ),
    ((*RUN, "--device", "1"), DEVICE, "--device: 0 to 0 is needed, 1 was given"),
    ((*RUN, "-n", "1", "--context", "1073741824"), DEVICE, "the largest context that fits is"),
    ((*RUN, "--logits-file", "{out}/no/x.npy"), USAGE, "no/x.npy: cannot be written: No such file"),
    ((*RUN, "--dump", "x", "--dump-dir", "{out}/no/d"), USAGE, "no/d: a folder is needed"),
    (("--weights", "{w}", "--seqs", "{out}/no"), USAGE, "no cannot be opened: No such file"),
    (("--weights", "{w}", "--seqs", "{out}"), USAGE, "cannot be read"),
    (("--weights", "{w}", "--seqs", "{empty}"), USAGE, "a token list a line is needed"),
    (("--weights", "{w}", "--seqs", "{gap}"), USAGE, "--seqs: line 2: a whole number from 0 to 16"),
    (("--weights", "{out}/no", "--tokens", "1"), CHECKPOINT, "cannot be opened: No such file"),
    (("--weights", "{out}", "--tokens", "1"), CHECKPOINT, "a regular file is needed"),
    (("--weights", "{seqs}", "--tokens", "1"), CHECKPOINT, 'magic: "GGUF" is needed'),
)

OP = (
    (("--tokens", "1"), USAGE, 'a flag is needed, "--tokens" was given; there are: --input --out'),
    (("--input",), USAGE, "--input: NAME=FILE is needed, nothing was given"),
    (("--input", "x"), USAGE, '--input: NAME=FILE is needed, "x" was given'),
    (("--input", "x="), USAGE, '--input: NAME=FILE is needed, "x=" was given'),
    (("--input", "z={x}"), USAGE, '"z" was given; there are: x g n k b r'),
    (("--input", "x={x}", "--input=x={x}"), USAGE, "--input: one file for x is needed, a second"),
    (("--input", "x={out}/no"), USAGE, "no: cannot be opened: No such file"),
    (("--input", "x={out}"), USAGE, "cannot be read: Is a directory"),
    (("--input", "n={x}"), USAGE, '<i4 of shape (9,) is needed, "<f4" of shape (3, 4) was given'),
    (("--input", "r={x}"), USAGE, '<i4 of shape (3, 2) is needed, "<f4" of shape (3, 4) was given'),
    (("--input", "r={bad_rows}"), USAGE, "positions below 2^30 are needed, row 1 is [0, -1]"),
    (("--input", "b={not_bf16}"), USAGE, "numbers of bf16 are needed, element 1 is none"),
    (("--out", "{out}/no/d"), USAGE, "no/d: a folder is needed: No such file"),
    (("--out", "{x}"), USAGE, "x.npy: a folder is needed: File exists"),
    (("--profile",), USAGE, "--profile: planned, not there yet"),
    (("--device", "1"), DEVICE, "--device: 0 to 0 is needed, 1 was given"),
    (("--dump", "q", "--dump-dir", "{out}"), USAGE, 'a stored value is needed, "q" was given'),
)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Files that the tables name in braces."""
    folder = tmp_path_factory.mktemp("flags")
    out = folder / "out"
    out.mkdir()
    texts = {"seqs": "1,2\n3\n", "empty": "", "gap": "1,2\n\n3\n"}
    for name, text in texts.items():
        (folder / name).write_text(text)
    arrays = {
        "x": np.zeros((3, 4), np.float32),
        "bad_rows": np.array([[0, 0], [0, -1], [0, 1]], np.int32),
        "not_bf16": np.array([1.0, 1.001], np.float32),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    weights = toy.write_checkpoint(folder / "toy.gguf")
    named = {"w": weights, "out": out} | {n: folder / n for n in texts}
    return {k: str(v) for k, v in (named | {n: folder / f"{n}.npy" for n in arrays}).items()}


CASES = [("model", *case) for case in MODEL] + [("op", *case) for case in OP]


@pytest.mark.parametrize(("kind", "words", "code", "message"), CASES)
def test_refused(
    places: dict[str, str], kind: str, words: tuple[str, ...], code: int, message: str
) -> None:
    ran = toy.run(kind, *(word.format(**places) for word in words))
    assert (ran.code, ran.out) == (code, ""), ran.err
    last = ran.err.splitlines()[-1]
    assert "error: " in last
    assert message in last
    assert not list(Path(places["out"]).iterdir())


def test_messages_are_distinct() -> None:
    assert len({message for _, _, _, message in CASES}) > 50


def test_help_needs_nothing_else() -> None:
    for kind, flag in (("model", "--weights FILE"), ("op", "--input NAME=FILE")):
        ran = toy.run(kind, "--json", "--help")
        assert (ran.code, ran.err) == (0, "")
        assert flag in ran.out


def test_info_needs_no_checkpoint() -> None:
    ran = toy.run("model", "--info")
    assert (ran.code, ran.err) == (0, "")
    for words in (
        "5 kernels, 6 launches a step",
        "l%d.h: f32[T, 32], 0 to 1",
        "one sequence of 128",
    ):
        assert words in ran.out
