"""Runs of whole models for tests: a prompt's logits by the VM and by a binary, in every form.

A form is a way for the same rows to reach the same program: as one chunk, in chunks, token by
token, beside other sequences, with the threads in another order. Contract: all give equal bits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler import api, pipeline
from compiler.api.reference import session
from compiler.api.running import generated, model_argv
from compiler.api.values import Generated
from compiler.pipeline import Compiled
from compiler.target import HOST, Options
from runtime import fetch
from runtime.compare import difference
from runtime.traced import all_logits
from tests.guarded import sanitized

ROWS = 128  # of a step: more than the longest prompt has, so that one chunk is one

FORMS: dict[str, tuple[str, ...]] = {
    "one chunk": (),
    "chunks of 7": ("--chunk", "7"),
    "token by token": ("--chunk", "1"),
    "without graphs": ("--no-graph",),
    "another order of threads": ("--host-seed", "20011"),
}


@dataclass(frozen=True)
class Prompted:
    """A prompt, how many tokens follow it, and the lengths of three sequences beside it."""

    prompt: list[int]
    count: int
    beside: tuple[int, int, int]


def smollm2() -> Path:
    """SmolLM2's checkpoint; fetched in CI, elsewhere a test without it is skipped by name."""
    path = fetch.cached("smollm2")
    if path is None and os.environ.get("CI", "0") in ("", "0", "false"):
        pytest.skip("SmolLM2's checkpoint is not in the cache: monocu fetch smollm2")
    return path or fetch.fetch("smollm2")


def compiled(
    path: Path, numerics: str, dump: bool = False, rows: int = ROWS, guard: bool = False
) -> Compiled:
    """For the host, with room for `rows` rows of logits in one step; guard: under sanitizers."""
    options = Options(numerics, max_rows=rows, max_seqs=rows, dump=dump, guard=guard)
    return pipeline.compile_model(pipeline.load(path), options, HOST)


def random_prompt(seed: int, length: int, vocabulary: int) -> list[int]:
    return np.random.default_rng([length, seed]).integers(vocabulary, size=length).tolist()


def vocabulary_of(made: Compiled) -> int:
    last = dict(made.program.graph.results)["logits"].type.shape[-1]
    assert isinstance(last, int)
    return last


def run(
    made: Compiled, prompts: Sequence[list[int]], count: int, flags: Sequence[str] = ()
) -> Generated:
    """What the binary of a compilation gives, built under sanitizers where that has guards."""
    binary = sanitized(made.text) if made.options.guard else api.build(made)
    with TemporaryDirectory() as folder:
        argv = [*model_argv(made.model, prompts, count, Path(folder)), *flags]
        return generated(binary, argv, [len(p) for p in prompts], Path(folder), logits=True)


def host(made: Compiled, given: Prompted, flags: Sequence[str]) -> Generated:
    return run(made, [given.prompt], given.count, flags)


def beside(made: Compiled, given: Prompted) -> Generated:
    """The prompt as the second of four sequences; what the second one gives."""
    size = vocabulary_of(made)
    first, *more = (random_prompt(at, n, size) for at, n in enumerate(given.beside, 1))
    whole = run(made, [first, given.prompt, *more], given.count)
    return Generated((whole.tokens[1],), (whole.logits[1],), whole.report)


def in_every_form(made: Compiled, given: Prompted) -> Iterator[tuple[str, Generated]]:
    """(form, what it gives); the runs share one binary."""
    for form, flags in FORMS.items():
        yield form, host(made, given, flags)
    yield "beside three others", beside(made, given)


def reference(made: Compiled, tokens: Sequence[int]) -> NDArray[np.float32]:
    """f32[rows, V] by the VM, of the program before it was fused."""
    return all_logits(session(made.model, made.lowered), tokens)


def check_forms(made: Compiled, given: Prompted) -> None:
    """Every form's logits are the VM's, bit for bit, and its tokens are their first choices."""
    expected: NDArray[np.float32] | None = None
    for form, run in in_every_form(made, given):
        (tokens,), (logits,) = run.tokens, run.logits
        if expected is None:
            expected = reference(made, [*given.prompt, *tokens[:-1]])
        assert difference(form, expected, logits) is None
        chosen = expected[len(given.prompt) - 1 :].argmax(axis=1)
        assert tokens == tuple(chosen[: given.count]), form
