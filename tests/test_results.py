"""benchmarks/all.py: its parts are command lines that parse, its files what the schema says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import all as parts
from compiler.command import bench
from runtime.hashed_weights import open_synthetic

SCHEMA = json.loads((parts.RESULTS / "schema.json").read_text())
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float)}


def faults(value: Any, schema: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """Where a value is not what a schema of results/schema.json's few words asks for."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    fits = any(value is None if k == "null" else isinstance(value, TYPES[k]) for k in kinds)
    if kinds and not fits:
        yield f"{where}: {kinds} is needed, {value!r} was given"
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {schema['const']} is needed, {value!r} was given"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: one of {schema['enum']} is needed, {value!r} was given"
    if isinstance(value, dict):
        known = schema["properties"]
        yield from (f"{where}.{k} is needed" for k in schema["required"] if k not in value)
        yield from (f"{where}.{k} is unknown" for k in value if k not in known)
        for key in value.keys() & known.keys():
            yield from faults(value[key], known[key], f"{where}.{key}")
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from faults(each, schema["items"], f"{where}[{index}]")


@pytest.mark.parametrize("part", parts.PARTS)
def test_every_part_is_asked_of_what_there_is(part: str) -> None:
    for words in parts.PARTS[part]:
        args = parts.parsed(words, "cuda")
        context = open_synthetic(args.synthetic).meta
        most = next(v for k, v in context.items() if k.endswith(".context_length"))
        assert isinstance(most, int) and max(args.d) + max(*args.p, *args.n) < most


def test_a_part_keeps_what_was_measured_and_says_what_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = ("-p", "8", "-n", "4", "-r", "1", "--max-rows", "64")
    runs = (("tiny-llama:q8_0", "-n", "500"), ("tiny-qwen3moe:q8_0", *short))
    found = parts.run_part("tiny", runs, tmp_path, "host", commit="0123")
    assert json.loads((tmp_path / "tiny.json").read_text()) == found
    (run,), (failed,) = found["runs"], found["failed"]
    assert run["model"] == "tiny-qwen3moe-q8_0" and run["commit"]
    assert "pp512: a context of 512 tokens is needed" in failed["why"]
    out = capsys.readouterr().out
    assert "FAILED monocu bench --synthetic tiny-llama:q8_0" in out and "| tiny-qwen3moe" in out
    assert not list(faults(found, SCHEMA))
    run["tests"][0] |= {"median_ts": "fast", "extra": 1}
    del run["command"]
    assert sorted(faults(found, SCHEMA)) == [
        ".runs[0].command is needed",
        ".runs[0].tests[0].extra is unknown",
        ".runs[0].tests[0].median_ts: ['number'] is needed, 'fast' was given",
    ]


@pytest.mark.parametrize("part", parts.PARTS)
def test_what_is_kept_is_of_what_its_part_asks_for(part: str) -> None:
    kept = json.loads((parts.RESULTS / f"{part}.json").read_text())
    assert not list(faults(kept, SCHEMA)) and kept["part"] == part
    asked = {bench.command(parts.parsed(words, "cuda")) for words in parts.PARTS[part]}
    assert {run["command"] for run in (*kept["runs"], *kept["failed"])} <= asked


def test_every_file_that_is_kept_is_a_part_s() -> None:
    kept = {path.stem for path in parts.RESULTS.glob("*.json")}
    assert kept == {*parts.PARTS, "schema"}
