"""`monocu explain`: what fusions save, kernel by kernel and in all, at real shapes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from codegen.plan import Plan
from compiler import pipeline
from compiler.command import explaining
from compiler.command.show import table
from compiler.pipeline import Compiled, Model
from compiler.target import CUDA, NUMERICS, Options
from frontend.elaborate import elaborate
from passes.saving import saving
from runtime.synthetic import PRESETS
from tests.golden_files import Golden
from tests.model_metadata import metadata

GOLDEN = Path(__file__).parent / "golden" / "savings.txt"
REAL = ("smollm2", "qwen3-0.6b", "qwen3-8b", "qwen3-30b-a3b")
MOST = {"llama": 7, "qwen3": 7, "qwen3moe": 9}  # launches a layer


@cache
def compiled(preset: str, numerics: str = "int8", layers: int = 0) -> Compiled:
    file, text = pipeline.read_model(PRESETS[preset].architecture)
    program = elaborate(text, Path(file).name, metadata(preset, layers))
    return pipeline.compile_model(Model(program), Options(numerics), CUDA)


@pytest.mark.parametrize("numerics", NUMERICS)
@pytest.mark.parametrize("preset", REAL)
def test_launches_of_a_layer_of_real_shapes(preset: str, numerics: str) -> None:
    made = compiled(preset, numerics, 4)
    most = MOST[made.program.name] + 2 * (numerics == "f32")  # its two norms take launches
    assert 0 < explaining.totals(made.plan, 1).layer <= most


@pytest.mark.parametrize("preset", REAL)
def test_what_kernels_save_is_what_all_of_them_save(preset: str) -> None:
    made = compiled(preset, "int8", 4)
    for rows in (1, 64):
        fused, apart = (explaining.totals(p, rows) for p in (made.plan, held_back(preset)))
        nodes = [p.node for p in made.plan.launches if p.node is not None]
        saved = [saving(n.function, rows) for n in nodes if n.op == "call"]
        assert fused.launches + sum(s.launches for s in saved) == apart.launches
        assert fused.bytes + sum(s.bytes for s in saved) == apart.bytes


@cache
def held_back(preset: str) -> Plan:
    return explaining.held_back(compiled(preset, "int8", 4))


def test_totals_of_a_decoded_token(golden: Golden) -> None:
    """The table of benchmarks/README.md."""
    head = ("shapes of", "passes", "launches", "a layer", "bytes")
    rows = [row for preset in REAL for row in _rows(preset)]
    golden(GOLDEN, table([head, *rows], right=(2, 3, 4)) + "\n")


def _rows(preset: str) -> list[tuple[object, ...]]:
    made = compiled(preset)
    plans = (("all held back", explaining.held_back(made)), ("none held back", made.plan))
    found = [(name, explaining.totals(plan, 1)) for name, plan in plans]
    return [(preset, n, t.launches, t.layer, t.bytes) for n, t in found]
