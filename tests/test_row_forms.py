"""Projections of many rows in whole programs: tiles of 64 and of 128 rows give the bits of the VM.

What a projection is fused with (bias, norm's factor, activation, residual, quantizing, sums of
squares) works on a tile's outputs as on a row's.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from compiler import pipeline
from compiler.target import HOST, Options
from runtime import toolchain
from runtime.compare import different
from runtime.synthetic import write_synthetic
from runtime.vm import run_program
from tests.merged import compiled, kinds_of_values, merged, run
from tests.model_runs import Prompted, check_forms
from tests.samples import program_of
from tests.small_models import SMALL

SIBLINGS = """
input x: f32[{rows}, 576]
input g: f32[576]
input q: q8_0[100, 576]
input k: q4_1[40, 576]
input v: q8_0[33, 576]
input b: f32[40]
n = rmsnorm(x, g, 1e-5)
return linear(n, q), linear(n, k, b), linear(n, v)
"""
FEED_FORWARD = """
input x: f32[{rows}, 160]
input g: f32[160]
input h: f32[160]
input gate: {w}[192, 160]
input up: {w}[192, 160]
input down: q8_0[160, 192]
input head: q4_0[65, 160]
n = rmsnorm(x, g, 1e-5)
y = x + linear(silu(linear(n, gate)) * linear(n, up), down)
return y, linear(rmsnorm(y, h, 1e-5), head)
"""
K_QUANTS = (  # down and the head have more bits, as of a mixture
    FEED_FORWARD.replace("160", "256").replace("192", "256").replace("q8_0", "q6_k")
).replace("q4_0", "q6_k")
MIXED = "input x: f32[{rows}, 96]\ninput a: q8_0[64, 96]\ninput b: q4_0[64, 96]\n" + (
    "return silu(linear(x, a)) * linear(x, b)\n"
)
LONG_NORM = """
input x: f32[{rows}, {k}]
input g: f32[{k}]
input w: q4_0[17, {k}]
return linear(rmsnorm(x, g, 1e-5), w)
"""
UNIT = (
    SIBLINGS.format(rows=70),
    SIBLINGS.format(rows=17),
    FEED_FORWARD.format(rows=65, w="q4_1"),
    FEED_FORWARD.format(rows=257, w="q8_0"),
    MIXED.format(rows=33),
    K_QUANTS.format(rows=65, w="q4_k"),
)
FEW = (*UNIT[1:3], K_QUANTS.format(rows=17, w="q5_k"))
ZEROS = "input x: f32[3, 96] = 0.0\ninput w: q4_0[9, 96]\nreturn linear(x, w)\n"  # of both signs
# sums of squares that a lane has two and more of; of many rows it reads them behind the dots
NORMS = (
    LONG_NORM.format(rows=3, k=1056),
    LONG_NORM.format(rows=5, k=4128),
    LONG_NORM.format(rows=257, k=2080),
    ZEROS,
)


@pytest.mark.parametrize(
    ("numerics", "unit", "forms"),
    [("int8", UNIT, (64, 128)), ("int8x2", FEW, (64,)), ("int8", NORMS, (128,))],
    ids=["int8", "int8x2", "long-norms"],
)
def test_tiles_of_rows_give_the_bits_of_the_vm(
    numerics: str, unit: tuple[str, ...], forms: tuple[int, ...]
) -> None:
    whole = merged([program_of(text) for text in unit])
    built = compiled(whole, Options(numerics))
    made = [form for form in (64, 128) if f"RowForm<{form}, LinearShape<" in built.text]
    assert made == list(forms)
    binary = toolchain.build(built.text, extra=("-O1",))
    reference = pipeline.lower(whole, Options(numerics), HOST)[0]
    for kind, inputs in kinds_of_values(whole).items():
        want = run_program(reference, inputs)
        for seed in ("0", "3"):
            got = run(binary, inputs, "--host-seed", seed)
            wrong = {name: int(different(a, got[name]).sum()) for name, a in want.items()}
            assert not any(wrong.values()), (kind, wrong)


@pytest.mark.parametrize(
    ("numerics", "weights", "ffn", "shape"),
    [("int8", "q8_0", 6144, "6144, 4, 24, 0, 2"), ("int8x2", "q4_1", 1056, "1056, 4, 6, 0, 2")],
)
def test_two_blocks_of_a_cluster_share_dots(
    numerics: str, weights: str, ffn: int, shape: str, tmp_path: Path
) -> None:
    """A launch as for a GPU of more SMs, here without clusters: the first of two makes all."""
    dims = replace(SMALL["qwen3"], hidden=256, ffn=ffn, layers=2)
    path = write_synthetic(tmp_path / "long.gguf", dims, weights)
    options = Options(numerics, max_rows=128, max_seqs=128)
    made = pipeline.compile_model(pipeline.load(path), options, replace(HOST, sms=16))
    assert f"LinearShape<{shape}>" in made.text
    check_forms(made, Prompted([3, 1, 4, 1, 5, 9, 2, 6, 5], 3, (2, 17, 1)))
