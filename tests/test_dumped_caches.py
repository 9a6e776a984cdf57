"""Caches in dumps: what they hold behind a run, whether it is read or not, against the VM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from compiler import pipeline
from compiler.api.comparing import Observed, observe
from compiler.diagnostics import UserError
from compiler.pipeline import Compiled, Model
from compiler.target import HOST, Options
from frontend.elaborate import elaborate
from runtime import toolchain
from runtime.binary import capture
from tests.model_runs import random_prompt
from tests.small_models import model

WRITTEN = """
input k: f32[4, 2, 3]
input r: rows[4] = [[1, 64], [0, 0], [1, 3], [0, 130]]
cache c { k [2, 3], v [2, 3] }
c.k = append(c.k, k)
c.v = append(c.v, k * 2.0)
return k * 3.0
"""
PROMPTS = tuple(random_prompt(seed, n, 160) for seed, n in enumerate((3, 70, 1, 2, 66)))


def observed(made: Compiled, prompts: Sequence[list[int]] | None = None, old: str = "") -> Observed:
    """A run of a build that stores all; with `old` one whose entries come twice as large."""
    assert not old or made.text.count(old) == 1, made.text
    text = made.text.replace(old, f"{old}2 * ") if old else made.text
    return observe(made, {}, prompts, 2, toolchain.build(text, extra=("-O0",)))


def written(kv: str = "f32") -> Compiled:
    loaded = Model(elaborate(WRITTEN, "written.model"))
    return pipeline.compile_model(loaded, Options("f32", kv, dump=True), HOST)


@pytest.mark.parametrize("kv", ["f32", "f16"])
def test_a_cache_that_nothing_reads(kv: str) -> None:
    seen = observed(written(kv))
    assert seen.report.first is None
    k = seen.given["c.k_2"]
    assert (k.shape, k.dtype) == ((4, 2, 3), np.dtype("f4" if kv == "f32" else "f2"))
    assert np.array_equal(k, seen.expected["c.k_2"])
    assert len({row.tobytes() for row in k}) == 4


def test_a_wrong_entry_is_found_though_nothing_reads_it() -> None:
    seen = observed(written(), old="[pos % PAGE * HD + at % HD] = ")
    assert seen.report.first is not None
    assert set(seen.report.names) == {"c.k_2", "c.v_2"}
    assert seen.line_of("c.k_2") == "written.model:5  c.k = append(c.k, k)"


def test_sequences_that_follow_one_another_in_a_slot() -> None:
    """Five prompts in two slots: each cache as it was at its own end."""
    options = Options("f32", max_rows=16, max_seqs=2, dump=True)
    made = pipeline.compile_model(model("qwen3", 2), options, HOST)
    seen = observed(made, PROMPTS)
    assert seen.report.first is None
    names = [n for n in seen.given if ".kv." in n]
    assert sorted(names) == sorted(n for n in seen.expected if ".kv." in n)
    rows = sum(len(p) + 1 for p in PROMPTS)
    assert {seen.given[n].shape for n in names} == {(rows, 2, 32)}
    assert len({seen.given[n].tobytes() for n in names}) == len(names) == 4


def test_caches_are_among_the_names_of_what_can_be_dumped(tmp_path: Path) -> None:
    binary = toolchain.build(written().text, extra=("-O0",))
    assert "  c.k_2: f32[positions, 2, 3]\n" in capture(binary, ["--info"]).out.decode()
    with pytest.raises(UserError, match=r'"c\.k" was given; there are:.* c\.k_2 c\.v_2'):
        capture(binary, ["--dump", "c.k", "--dump-dir", str(tmp_path)])


def test_a_plain_build_has_no_table_of_caches() -> None:
    made = pipeline.compile_model(model("qwen3", 2), Options("f32"), HOST)
    assert "CACHE_VALUES" not in made.text and "record_caches" not in made.text
