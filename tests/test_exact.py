"""A part of the matrix of benchmarks/exact.py: one set of bits, the VM's, for small models of each
family and the examples that are op programs, however they are fused and their rows come.

Kernels all fused and all apart take every chunk, five sequences and two orders of threads; without
one pass (each in the numerics that HELD says) a model takes up to eight rows at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from benchmarks.exact_cases import Case, Limits, ModelCase, OpsCase, Way, op_cases
from compiler.target import Options
from passes import names as fusions
from runtime import toolchain
from runtime.synthetic import write_synthetic
from tests.small_models import SMALL

WEIGHTS = {"llama": "q8_0", "qwen3": "q4_1", "qwen3moe": "q4_0"}
OPS = {f"ops-{case.examples[0]}": case for case in op_cases()}
WHOLE = [  # all fused in each numerics, all apart in each; ways by name, of models
    ("llama", "int8", "fused"),
    ("qwen3", "f32", "fused"),
    ("qwen3moe", "int8x2", "fused"),
    ("llama", "f32", "apart"),
    ("qwen3", "int8x2", "apart"),
    ("qwen3moe", "int8", "apart"),
]
CHUNKS = {
    "fused": {f"chunks of {n}" for n in (1, 5, 17, 64, 65, 200)} | {"batch of 5", "run 0", "run 1"},
    "apart": {"chunks of 5", "chunks of 65", "run 1"},
}
HELD = {  # a pass: where it fuses something, and the numerics
    "glu": ("llama", "int8"),
    "head-choose": ("qwen3", "f32"),
    "linear-residual": ("llama", "int8x2"),
    "head-epilogue": ("qwen3", "int8"),
    "embed-norm": ("llama", "f32"),
    "sibling-linear": ("qwen3", "int8x2"),
    "attention-quant": ("qwen3", "int8"),
    "expert-glu": ("qwen3moe", "int8"),
    "combine-residual": ("qwen3moe", "int8x2"),
    "moe-route": ("qwen3moe", "f32"),
    "add-norm": ("ops-concat_slice", "int8x2"),
    "elementwise-region": ("ops-concat_slice", "f32"),
}
# What these fuse, no example has: see PROGRAMS of tests/test_fused_kernels.py.
ELSEWHERE = {"add-norm-quant", "norm-quant", "elementwise-chain"}


@dataclass(frozen=True)
class FewRows(ModelCase):
    """A model whose steps have eight rows at most."""

    def options(self, numerics: str) -> Options:
        return replace(super().options(numerics), max_rows=8, max_seqs=8)


def case_of(name: str, folder: Path, few: bool = False) -> Case:
    if name in OPS:
        return OPS[name]
    path = folder / f"{name}.gguf"
    write_synthetic(path, replace(SMALL[name], context=1024), WEIGHTS[name])
    return (FewRows if few else ModelCase)(name, path)


def differences(
    case: Case, numerics: str, hold: tuple[str, ...], names: set[str], folder: Path
) -> list[str]:
    """Of the ways with these names, those in which a run's values are not the VM's."""
    ways = [way for way in case.ways("host", full=True) if way.name in names]
    assert len(ways) == len(names)
    make_references(case, numerics, ways, folder)
    binary = toolchain.build(case.emit(numerics, hold, "host"), extra=("-O0",))
    found = [(way.name, case.check(binary, numerics, way, folder)) for way in ways]
    assert all(outcome.values for _, outcome in found)
    return [f"{name}: {of.differing} of {of.values}" for name, of in found if of.differing]


def make_references(case: Case, numerics: str, ways: list[Way], folder: Path) -> None:
    wanted = {which for way in ways for which in way.prompts}
    for part in case.references(numerics, Limits(1 << 30)):
        if part.which in wanted:  # type: ignore[attr-defined]
            part(folder)


@pytest.mark.parametrize(("name", "numerics", "how"), WHOLE)
def test_one_set_of_bits(name: str, numerics: str, how: str, tmp_path: Path) -> None:
    hold = fusions() if how == "apart" else ()
    assert differences(case_of(name, tmp_path), numerics, hold, CHUNKS[how], tmp_path) == []


@pytest.mark.parametrize("held", HELD)
def test_a_pass_held_back_changes_no_bit(held: str, tmp_path: Path) -> None:
    name, numerics = HELD[held]
    case = case_of(name, tmp_path, few=True)
    without = case.emit(numerics, (held,), "host")
    assert without.replace(f", held back: {held}", "") != case.emit(numerics, (), "host")
    names = {"run 1", "run 2"} if isinstance(case, OpsCase) else {"chunks of 5", "run 1"}
    assert differences(case, numerics, (held,), names, tmp_path) == []


def test_every_pass_is_held_back() -> None:
    assert HELD.keys() | ELSEWHERE == set(fusions()) and not HELD.keys() & ELSEWHERE
