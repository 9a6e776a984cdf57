"""Fused kernels as host binaries: the bits of the VM with every fusion held back.

PROGRAMS are of what one fusion is about, in the sizes and forms in which its kernel differs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import passes
from compiler import pipeline
from compiler.program import Program
from compiler.target import HOST, NUMERICS, Options
from runtime import toolchain
from runtime.compare import different
from runtime.vm import run_program
from tests.merged import awkward, compiled, groups, merged, rows_values, run
from tests.samples import program_of

SEEDS = ((), ("--host-seed", "1"), ("--host-seed", "2"), ("--host-seed", "3"))
PLACES = "[[0, 0], [0, 1], [1, 63], [1, 64], [0, 1000], [2, 2000], [7, 5]]"
ONE = "[[3, 700]]"


def _attention(
    h: int, kv: int, hd: int, then: str, more: str = "", rows: str = PLACES, n: int = 7
) -> str:
    return (
        f"input q: f32[{n}, {h}, {hd}]\ninput k: f32[{n}, {kv}, {hd}]\n"
        f"input v: f32[{n}, {kv}, {hd}]\ninput g: f32[{n}, {h * hd}]\ninput c: f32[{h * hd}]\n"
        f"input s: f32[{h}]\ninput w: q4_1[24, {max(32, h * hd // 32 * 32)}]\n"
        f"input r: rows[{n}] = {rows}\n"
        f"cache m {{ k [{kv}, {hd}], v [{kv}, {hd}] }}\n"
        "m.k = append(m.k, k)\nm.v = append(m.v, v)\n"
        f"a = attention(q, m.k, m.v{more})\n{then}"
    )


def _heads(
    h: int, kv: int, hd: int, of_q: str, of_k: str, rows: str = PLACES, n: int = 7, more: str = ""
) -> str:
    return (
        f"input q: f32[{n}, {h * hd}]\ninput k: f32[{n}, {kv * hd}]\n"
        f"input v: f32[{n}, {kv * hd}]\ninput wq: f32[{hd}]\ninput wk: f32[{hd}]\n"
        f"input f: f32[{hd // 2}]\ninput r: rows[{n}] = {rows}\n"
        f"cache m {{ k [{kv}, {hd}], v [{kv}, {hd}] }}\n"
        f"q = heads(q, {h})\nk = heads(k, {kv})\nh = {of_q}\n"
        f"m.k = append(m.k, {of_k})\nm.v = append(m.v, heads(v, {kv}))\n"
        f"return attention(h, m.k, m.v){more}\n"
    )


PROGRAMS: dict[str, tuple[str, ...]] = {
    "attention-quant": (
        _attention(4, 2, 64, "return linear(a, w)\n"),
        _attention(
            4, 1, 32, "y = a * sigmoid(g)\nreturn linear(y, w), y\n", ", sinks=s, window=70"
        ),
        _attention(2, 2, 128, "return linear(silu(g) * a * c, w)\n", ", softcap=3.0"),
        _attention(2, 1, 256, "y = a * 0.5\nreturn linear(y, w), y\n"),
        _attention(3, 1, 33, "return sigmoid(g) * a + c\n", ", softcap=0.5, sinks=s"),
        _attention(2, 1, 32, "return linear(a * sigmoid(g), w)\n", ", sinks=s", ONE, 1),
        _attention(1, 1, 64, "return linear(a, w), a\n", "", ONE, 1),
    ),
    "head-epilogue": (
        _heads(4, 2, 64, "rope(rmsnorm(q, wq, 1e-6), 1e4)", "rope(rmsnorm(k, wk, 1e-6), 1e4)"),
        _heads(3, 1, 128, "rope(q, 1e6, interleaved=1)", "rope(k, 1e6, interleaved=1)", more=", h"),
        _heads(
            6,
            2,
            80,
            "rope(layernorm(q, wq, eps=1e-5) * 0.25, 1e4, dims=20)",
            "rope(l2norm(k, 1e-6) + wk, 1e4, dims=20)",
        ),
        _heads(
            2,
            1,
            256,
            "rope(silu(q), 1e4, freqs=f, factor=4.0)",
            "rope(k, 1e4, freqs=f, factor=4.0)",
        ),
        _heads(5, 5, 17, "rmsnorm(q, wq, 1e-6)", "rmsnorm(k, eps=1e-6) * wk", more=", h"),
        _heads(2, 1, 35, "rmsnorm(q, wq, 1e-6)", "k", ONE, 1),
        _heads(2, 1, 66, "rope(rmsnorm(q, wq, 1e-6), 1e4)", "rope(k, 1e4)", ONE, 1),
    ),
}


def units() -> list[object]:
    named = [
        replace(program_of(text), name=f"{kind}-{at}")
        for kind, texts in PROGRAMS.items()
        for at, text in enumerate(texts)
    ]
    return [
        pytest.param(numerics, unit, id=f"{numerics}-{unit[0].name}")
        for numerics in NUMERICS
        for unit in groups(named)
    ]


def kinds(program: Program, options: Options) -> set[str]:
    graph = passes.run(program.graph, options, HOST)
    return {n.function.kind for n in graph.nodes() if n.op == "call"}


@pytest.mark.parametrize(("numerics", "unit"), units())
def test_a_fused_binary_gives_the_bits_of_the_unfused_vm(
    numerics: str, unit: list[Program]
) -> None:
    whole, options = merged(unit), Options(numerics)
    binary = toolchain.build(compiled(whole, options).text, extra=("-O1",))
    reference = pipeline.lower(whole, replace(options, hold=passes.names()), HOST)[0]
    read = {n.attr("name") for n in whole.graph.nodes() if n.op == "input"}
    found: list[str] = []
    for rows in rows_values(unit):
        for values in ({}, awkward(whole, 1)):
            inputs = {n: v for n, v in {**values, **rows}.items() if n in read}
            want = run_program(reference, inputs)
            for flags in SEEDS:
                got = run(binary, inputs, *flags)
                for name, array in want.items():
                    assert isinstance(array, np.ndarray)
                    wrong = different(array, got[name])
                    if wrong.any():
                        owner = unit[int(name[1:].split("_")[0])].name
                        at = np.argwhere(wrong)[0].tolist()
                        found.append(f"{owner} {name} {flags}: {wrong.sum()} differ, first {at}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("kind", PROGRAMS)
def test_the_programs_are_fused(kind: str) -> None:
    for text in PROGRAMS[kind]:
        assert any(kind in kinds(program_of(text), Options(n)) for n in NUMERICS), text
