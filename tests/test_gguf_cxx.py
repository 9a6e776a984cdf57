"""The driver's C++ reader against the Python reader, under sanitizers: same verdict, words and
tensor table on good files, on every bad one, every truncation and thousands of damaged ones."""

from __future__ import annotations

import os
import random
import struct
import subprocess
from pathlib import Path

import pytest

from codegen.metadata import spelled
from compiler.diagnostics import UserError
from compiler.knobs import CXX
from runtime.ggml import TENSOR_TYPES
from runtime.gguf import Unsupported, open_checkpoint
from runtime.gguf_header import MetaValue
from runtime.gguf_writer import write_gguf
from runtime.tokenizer import open_tokenizer
from tests.bad_checkpoints import ARCHITECTURE, GOOD, ROWS, File, tensor
from tests.test_gguf import write_every_type
from tests.tiny_vocabulary import META, TOKENS, checkpoint

ROOT = Path(__file__).parent.parent
FLAGS = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
IDS = {name: kind for kind, (name, _, _) in TENSOR_TYPES.items()}


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reader's test program; a fault of memory or arithmetic ends it with a report."""
    out = tmp_path_factory.mktemp("reader") / "reader"
    include = ["-I", str(ROOT / "codegen/lib/driver")]
    source = str(ROOT / "tests/cxx/gguf_main.cpp")
    subprocess.run([CXX.value, *FLAGS, *SANITIZE, *include, source, "-o", str(out)], check=True)
    return out


def by_cxx(reader: Path, paths: list[Path]) -> list[str]:
    """A verdict a file; an allocation of over 64 MB counts as a fault."""
    env = {**os.environ, "ASAN_OPTIONS": "max_allocation_size_mb=64"}
    done = subprocess.run(
        [str(reader), "read", *map(str, paths)], capture_output=True, text=True, env=env, timeout=60
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.split("--\n")[:-1]


def by_python(path: Path) -> str:
    """What the C++ program prints for this file, said by the Python reader."""
    try:
        checkpoint = open_checkpoint(path)
    except UserError as error:
        return f"fault {error.code} {error}\n"
    lines = [f"ok {len(checkpoint.meta)} keys"]
    for name, info in sorted(checkpoint.tensors.items()):
        kind = IDS[info.format.name] if isinstance(info.format, Unsupported) else info.format.ggml
        shape = ",".join(map(str, (*info.shape, 1, 1, 1)[:4]))
        lines.append(f"{name} {kind} {shape} {info.offset} {info.nbytes}")
    return "\n".join(lines) + "\n"


def same(reader: Path, paths: list[Path]) -> list[str]:
    """Both readers' common verdicts."""
    verdicts = by_cxx(reader, paths)
    assert verdicts == [by_python(path) for path in paths]
    return verdicts


def test_both_accept_good_files(reader: Path, tmp_path: Path) -> None:
    paths = [tmp_path / f"every{alignment}.gguf" for alignment in (8, 32, 4096)]
    for path, alignment in zip(paths, (8, 32, 4096), strict=True):
        write_every_type(path, alignment)
    for name, file in good_files().items():
        paths.append(tmp_path / f"{name}.gguf")
        paths[-1].write_bytes(file.bytes())
    assert all(verdict.startswith("ok") for verdict in same(reader, paths))


def good_files() -> dict[str, File]:
    """Odd files that must be read: no key, no tensor, every type, version 2, longest names."""
    types = [
        File(
            keys=(ARCHITECTURE,), tensors=(tensor("t", (block, 3), kind, 0),), data=bytes(3 * size)
        )
        for kind, (_, block, size) in TENSOR_TYPES.items()
    ]
    longest = tensor("n" * 127, (1, 1, 1, 1), 24, 0)
    return {
        "good": GOOD,
        "version-2": File(version=struct.pack("<I", 2), tensors=(longest,), data=b"\0"),
        "nothing": File(),
        "keys-only": File(keys=GOOD.keys),
        **{f"type-{index}": file for index, file in enumerate(types)},
    }


def test_both_refuse_the_table_with_the_same_words(reader: Path, tmp_path: Path) -> None:
    paths = [tmp_path / f"{row.name}.gguf" for row in ROWS]
    for row, path in zip(ROWS, paths, strict=True):
        row.put(path)
    assert all(verdict.startswith("fault 3 ") for verdict in same(reader, paths))


def test_both_refuse_every_truncation(reader: Path, tmp_path: Path) -> None:
    whole = GOOD.bytes()
    paths = [tmp_path / f"{size}.gguf" for size in range(len(whole))]
    for size, path in enumerate(paths):
        path.write_bytes(whole[:size])
    assert all(verdict.startswith("fault 3 ") for verdict in same(reader, paths))


AWKWARD = [0, 1, 2, 7, 8, 31, 32, 127, 128, 2**16, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1]


def damaged(rng: random.Random, whole: bytes) -> bytes:
    """The file with a few bytes changed, an awkward number written over it, or a part cut out."""
    raw, at = bytearray(whole), rng.randrange(len(whole))
    match rng.randrange(4):
        case 0:
            raw[at] ^= 1 << rng.randrange(8)
        case 1:
            for _ in range(rng.randrange(1, 5)):
                raw[rng.randrange(len(raw))] = rng.randrange(256)
        case 2:
            width = rng.choice((4, 8))
            value = rng.choice(AWKWARD) % (1 << 8 * width)
            raw[at : at + width] = value.to_bytes(width, "little")
        case _:
            del raw[at : at + rng.randrange(1, 24)]
    return bytes(raw)


def test_both_judge_damaged_files_alike(reader: Path, tmp_path: Path) -> None:
    """Seeded: sample N is damaged(random.Random(N), GOOD)."""
    whole, paths = GOOD.bytes(), [tmp_path / f"{seed}.gguf" for seed in range(4000)]
    header = whole[: len(whole) - len(GOOD.data)]
    for seed, path in enumerate(paths):
        path.write_bytes(damaged(random.Random(seed), header) + GOOD.data)
    verdicts = same(reader, paths)
    accepted = sum(verdict.startswith("ok") for verdict in verdicts)
    assert 0 < accepted < len(paths)  # the damage is neither harmless nor always fatal
    faults = {verdict.split(":")[1] for verdict in verdicts if verdict.startswith("fault")}
    assert len(faults) > 20


def test_the_reader_exits_3_alone(reader: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGML")
    done = subprocess.run([str(reader), "text", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (3, by_python(path).removeprefix("fault 3 "))


METADATA: dict[str, MetaValue] = {
    "general.architecture": "x",
    "reals": [0.0, -0.0, 1e-5, 0.1, 1e6, 3.4028235e38, 1e-45, float("inf"), -float("inf")],
    "words": ["", "it's", "a\\b", "caf\u00e9", "two\nlines", "\x00", "??/"],
    "whole": [0, -1, 2**31 - 1, -(2**31)],
    "many": list(range(256)),
    "more": list(range(257)),
}


def test_both_spell_metadata_alike(reader: Path, tmp_path: Path) -> None:
    every, awkward = tmp_path / "every.gguf", tmp_path / "awkward.gguf"
    write_every_type(every, 32)
    write_gguf(awkward, METADATA, [], lambda tensor: [])
    for path in (every, awkward):
        done = subprocess.run([str(reader), "spell", str(path)], capture_output=True, check=True)
        meta = open_checkpoint(path).meta
        lines = sorted(f"{key} {spelled(value)}" for key, value in meta.items())
        assert sorted(done.stdout.decode().splitlines()) == lines
    assert spelled(METADATA["more"]) == "[257 elements]"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "1"), (-3, "-3"), (10000.0, "10000"), (0.1, "0.10000000000000001"),
        (9.999999747378752e-06, "9.99999975e-06"), (1e300, "1.0000000000000001e+300"),
        ("it's", "'it\\x27s'"), ([1, 2.5, "a"], "[1, 2.5, 'a']"), ([], "[]"),
    ],
)  # fmt: skip
def test_how_metadata_is_spelled(value: MetaValue, text: str) -> None:
    assert spelled(value) == text


def as_text(reader: Path, path: Path, ids: list[int]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([str(reader), "text", str(path), *map(str, ids)], capture_output=True)


def with_vocabulary(folder: Path, **changes: MetaValue | None) -> Path:
    path = folder / "vocabulary.gguf"
    write_gguf(path, checkpoint(**changes).meta, [], lambda tensor: [])
    return path


def test_text_is_that_of_the_python_tokenizer(reader: Path, tmp_path: Path) -> None:
    """Seeded ids, most of them halves of characters, some beyond the vocabulary."""
    path = with_vocabulary(tmp_path)
    tokenizer = open_tokenizer(open_checkpoint(path))
    assert open_checkpoint(path).meta == META
    rng = random.Random(7)
    samples = [[rng.randrange(len(TOKENS) + 3) for _ in range(60)] for _ in range(30)]
    samples += [[index] for index in range(250, len(TOKENS))]
    text = "caf\u00e9 \U0001f600\u4f60abcd<s>\u0661"
    samples += [tokenizer.encode(text), tokenizer.encode(text)[:-1], []]
    for ids in samples:
        done = as_text(reader, path, ids)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.decode() == tokenizer.decode(ids), ids


def test_a_vocabulary_without_kinds_is_all_text(reader: Path, tmp_path: Path) -> None:
    path = with_vocabulary(tmp_path, token_type=None)
    assert as_text(reader, path, [TOKENS.index("<s>")]).stdout == b"<s>"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "llama"}, b'a tokenizer of the kind gpt2 is needed to print text, "llama" was'),
        ({"model": None}, b"the key tokenizer.ggml.model is needed to print text"),
        ({"model": 3}, b"the key tokenizer.ggml.model is needed to print text"),
        ({"tokens": None}, b"an array of strings tokenizer.ggml.tokens is needed"),
        ({"tokens": [1, 2]}, b"an array of strings tokenizer.ggml.tokens is needed"),
        ({"token_type": [1]}, b"as many tokenizer.ggml.token_type as tokens are needed, 1 and"),
    ],
)
def test_text_is_refused(
    reader: Path, tmp_path: Path, changes: dict[str, MetaValue | None], words: bytes
) -> None:
    done = as_text(reader, with_vocabulary(tmp_path, **changes), [0])
    assert done.returncode == 3 and words in done.stderr
