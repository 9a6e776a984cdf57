"""bench: llama-bench's tests of a model, timed by its binary in one process, as one document.

Names are llama-bench's: `pp512` takes in a prompt, `tg128` decodes (the token choice included),
`tg128 @ d4096` behind 4,096 tokens. Every test runs once more before it counts.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from statistics import median, stdev
from typing import Any

from compiler.api.building import archs_of, build
from compiler.api.costs import caches_read, weights_read
from compiler.diagnostics import UserError
from compiler.pipeline import Compiled
from runtime import toolchain
from runtime.binary import capture
from runtime.gpu import driver_version, gpus

SCHEMA = 1
Document = dict[str, Any]


@dataclass(frozen=True)
class Test:
    """Tokens of a prompt, or tokens to decode, behind `depth` tokens that are in the cache."""

    prompt: int
    generated: int
    depth: int

    @property
    def name(self) -> str:
        what = f"tg{self.generated}" if self.generated else f"pp{self.prompt}"
        return f"{what} @ d{self.depth}" if self.depth else what

    @property
    def flag(self) -> str:
        """As the binary's --bench takes it."""
        return self.name.replace(" @ d", "@")

    @property
    def before(self) -> int:
        """Positions in the cache when the time begins: decoding needs a token to begin with."""
        return max(self.depth, 1) if self.generated else self.depth

    @property
    def positions(self) -> int:
        return self.before + self.prompt + self.generated


def tests_of(
    prompts: Sequence[int], generated: Sequence[int], depths: Sequence[int]
) -> tuple[Test, ...]:
    """Each depth's tests, in the order of the arguments."""
    out: list[Test] = []
    for depth in depths:
        out += [Test(p, 0, depth) for p in prompts]
        out += [Test(0, n, depth) for n in generated]
    return tuple(out)


def check(made: Compiled, tests: Sequence[Test]) -> None:
    """UserError for what cannot be timed."""
    if not made.program.is_model:
        raise UserError(f"bench: a model is needed, {made.program.name} is an op program")
    longest = max(tests, key=lambda t: t.positions)
    trained = made.program.context_length
    if trained and longest.positions > trained:
        name = made.model.weights.path.name
        raise UserError(
            f"{longest.name}: a context of {longest.positions} tokens is needed, {name} is trained "
            f"for {trained}; a smaller -p, -n or -d is needed"
        )


def measure(
    made: Compiled, tests: Sequence[Test], repeat: int, archs: Sequence[str] | None = None
) -> Document:
    """Runs every test `repeat` times. UserError: as `check`, and the binary's own."""
    check(made, tests)
    binary = build(made, archs)
    argv = [*made.model.weights.flags, "--bench", ",".join(t.flag for t in tests)]
    done = capture(binary, [*argv, "--repeat", str(repeat), "--json"])
    runs = [json.loads(line) for line in done.out.decode().splitlines()]
    report = done.report()
    rate: float | None = report.get("read_bytes_per_second")  # none without memory to read
    each = 1 + repeat
    rows = [
        row(made, test, [run["ns"] for run in runs[i * each + 1 : (i + 1) * each]], rate)
        for i, test in enumerate(tests)
    ]
    return {**machine(made, archs), **sizes(made), **costs(made, binary, report), "tests": rows}


def row(made: Compiled, test: Test, took: Sequence[int], rate: float | None) -> Document:
    """A test's figures. Bytes: weights and cache that a token reads, in the mean. rate: bytes a
    second of plain reads, None where they were not measured."""
    tokens = test.prompt + test.generated
    speeds = [tokens * 1e9 / ns for ns in took]
    figures: Document = {
        "test": test.name,
        "n_prompt": test.prompt,
        "n_gen": test.generated,
        "n_depth": test.depth,
        "samples_ns": list(took),
        "samples_ts": [round(s, 3) for s in speeds],
        "median_ts": round(median(speeds), 3),
        "stddev_ts": round(stdev(speeds), 3) if len(speeds) > 1 else 0.0,
        "bytes_per_token": None,
        "bandwidth_share": None,
    }
    if test.generated:
        read = bytes_per_token(made, test)
        figures["bytes_per_token"] = read
        figures["bandwidth_share"] = round(read * median(speeds) / rate, 4) if rate else None
    return figures


def bytes_per_token(made: Compiled, test: Test) -> int:
    """Bytes of weights and cache that a decoded token reads, in the mean of the test's tokens."""
    graph = made.lowered.graph
    seen = range(test.before + 1, test.before + test.generated + 1)
    return weights_read(graph) + caches_read(graph, *seen) // len(seen)


def machine(made: Compiled, archs: Sequence[str] | None) -> Document:
    """Where and with what it was measured."""
    on_gpu = made.target.name == "cuda"
    compiler = toolchain.find_nvcc() if on_gpu else toolchain.find_host()
    return {
        "schema": SCHEMA,
        "test_time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit(),
        "target": made.target.name,
        "device": gpus()[0].name if on_gpu and gpus() else "host",
        "driver": driver_version() if on_gpu else "",
        "compiler": compiler.version,
        "archs": list(archs_of(archs)) if on_gpu else [],
    }


def commit() -> str | None:
    """Of the tree that this runs from, where it is one; "-dirty" where files differ."""
    root = Path(__file__).resolve().parents[2]
    top = git(root, "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != root:  # installed in the folder of another project
        return None
    return git(root, "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12") or None


def git(folder: Path, *words: str) -> str:
    """What it says there; "" where it cannot, or is not installed."""
    command = ["git", "-C", str(folder), *words]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def sizes(made: Compiled) -> Document:
    """What the model is."""
    tensors = made.model.weights.tensors.values()
    graph, options = made.lowered.graph, made.options
    return {
        "model": made.model.weights.path.name.removesuffix(".gguf"),
        "architecture": made.model.weights.architecture,
        "model_size": sum(t.nbytes for t in tensors),
        "model_n_params": sum(prod(t.shape) for t in tensors),
        "numerics": options.numerics,
        "kv": options.kv_dtype,
        "max_rows": options.max_rows,
        "weight_bytes_per_token": weights_read(graph),
        "cache_bytes_per_position": caches_read(graph, 1),
    }


def costs(made: Compiled, binary: Path, report: Document) -> Document:
    """Memory and the times that are no test's."""
    return {
        "read_bytes_per_second": report.get("read_bytes_per_second"),
        "peak_bytes": report["peak_bytes"],
        "compile_seconds": round(sum(made.seconds.values()), 3),
        "build_seconds": toolchain.build_seconds(binary),
        "load_seconds": report["load_seconds"],
        "capture_seconds": report["capture_seconds"],
    }
