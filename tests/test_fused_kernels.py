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
from tests.merged import compiled, groups, kinds_of_values, merged, rows_values, run
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


def _experts(
    t: int, e: int, p: int, k: int, n: int, norm: str, act: str, route: str, formats: str
) -> str:
    """Experts of K inputs and N inner columns: router, choice, gate and up, down, a residual."""
    gate, up, down = formats.split()
    return (
        f"input x: f32[{t}, {k}]\ninput g: f32[{k}]\ninput router: f32[{e}, {k}]\n"
        f"input gate: {gate}[{e}, {n}, {k}]\ninput up: {up}[{e}, {n}, {k}]\n"
        f"input down: {down}[{e}, {k}, {n}]\ninput w: {gate}[24, {k}]\n"
        f"n = {norm}\nscores = linear(n, router)\n{route.format(p=p)}"
        f"h = {act.format(g='expert_linear(n, gate, index)', u='expert_linear(n, up, index)')}\n"
        "y = x + combine(expert_linear(h, down, index), share)\n"
        "z = linear(rmsnorm(y, g, 1e-5), w)\nreturn y, z, index, share\n"
    )


def _head(t: int, k: int, n: int, logits: str, w: str = "q8_0", more: str = ", l") -> str:
    return (
        f"input x: f32[{t}, {k}]\ninput g: f32[{k}]\ninput b: f32[{n}]\ninput w: {w}[{n}, {k}]\n"
        f"l = {logits}\nreturn choose(l){more}\n"
    )


def _embedded(t: int, v: int, k: int, rows: str, table: str) -> str:
    more = ", y" if "\n" in rows else ""
    values = ", ".join(str(i * 7 % v) for i in range(t))
    return (
        f"input token: i32[{t}] = [{values}]\ninput table: {table}[{v}, {k}]\n"
        f"input g: f32[{k}]\ninput w: q8_0[40, {k}]\n{rows}\n"
        f"return x, linear(rmsnorm(x, g, 1e-5), w){more}\n"
    )


def _gated(t: int, k: int, n: int, norm: str, h: str, formats: str = "q8_0 q8_0") -> str:
    """A feed-forward layer whose gate and up projections have biases where `h` adds c and e."""
    inner, down = formats.split()
    return (
        f"input x: f32[{t}, {k}]\ninput g: f32[{k}]\ninput c: f32[{n}]\ninput e: f32[{n}]\n"
        f"input gate: {inner}[{n}, {k}]\ninput up: {inner}[{n}, {k}]\n"
        f"input down: {down}[{k}, {n}]\nn = {norm}\n{h}\nreturn x + linear(h, down)\n"
    )


def _sandwich(t: int, k: int, y: str, then: str, w: str = "q8_0") -> str:
    return (
        f"input x: f32[{t}, {k}]\ninput g: f32[{k}]\ninput b: f32[{k}]\ninput w: {w}[{k}, {k}]\n"
        f"a = linear(x, w)\ny = {y}\n{then}\n"
    )


GPT_OSS = (  # limit 7, slope 1.702, up + 1
    "l = minimum(linear(n, gate) + c, 0.7)\nu = maximum(minimum(linear(n, up) + e, 0.7), -0.7)\n"
    "h = l * sigmoid(l * 1.702) * (u + 1.0)"
)
NORM = "rmsnorm(x, g, 1e-5)"
SWIGLU = "silu({g}) * {u}"
CLAMPED = "({g} * sigmoid({g} * 1.7)) * ({u} + 1.0)"
OF_PICKS = "values, index = top_k(scores, {p})\nshare = softmax(values)\n"
OF_ALL = (
    "values, index = top_k(scores, {p})\ngreatest = max(heads(scores, 1))\n"
    "share = exp(values - greatest) / sum(heads(exp(scores - greatest), 1))\n"
)
OF_SUM = (
    "s = sigmoid(scores)\nvalues, index = top_k(s, {p})\n"
    "share = values / sum(heads(values, 1)) * 2.5\n"
)
EXPERTS = (
    _experts(3, 5, 2, 64, 32, NORM, SWIGLU, OF_PICKS, "q8_0 q8_0 q8_0"),
    _experts(1, 8, 8, 544, 96, NORM, SWIGLU, OF_ALL, "q4_1 q8_0 q4_0"),
    _experts(2, 70, 33, 96, 32, "rmsnorm(x, eps=1e-5)", SWIGLU, OF_ALL, "q8_0 q4_0 q4_1"),
    _experts(4, 40, 1, 64, 64, "x", "gelu_tanh({g} * 0.5) * {u}", OF_SUM, "q4_0 f16 f32"),
    _experts(3, 1, 1, 32, 32, "x", CLAMPED, OF_ALL, "q8_0 bf16 q8_0"),
    _experts(3, 5, 2, 256, 256, NORM, SWIGLU, OF_PICKS, "q4_k q5_k q6_k"),
)
FLOAT_EXPERTS = (  # columns in no whole groups of 32
    _experts(3, 6, 2, 37, 19, NORM, SWIGLU, OF_PICKS, "f32 f16 bf16"),
    _experts(2, 160, 64, 33, 1, "x", SWIGLU, OF_SUM, "f16 f32 f32"),
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
    "head-choose": (
        _head(3, 64, 96, "linear(rmsnorm(x, g, 1e-5), w)"),
        _head(1, 544, 128, "linear(rmsnorm(x, eps=1e-5), w)", "q4_1"),
        _head(9, 96, 32, "30.0 * tanh(linear(x, w) * 0.5) + b", "f16"),
        _head(130, 64, 160, "linear(rmsnorm(x, g, 1e-5), w, b)", "q4_0"),
        _head(2, 33, 1056, "linear(x, w) * b", "f32", ""),
        _head(1, 64, 2048, "linear(rmsnorm(x, g, 1e-5), w)", "q8_0", ""),
        _head(2, 256, 64, "linear(rmsnorm(x, g, 1e-5), w)", "q6_k"),
    ),
    "glu": (
        _gated(3, 64, 96, "rmsnorm(x, g, 1e-5)", "h = gelu_tanh(linear(n, gate)) * linear(n, up)"),
        _gated(
            1,
            544,
            64,
            "layernorm(x, g, eps=1e-5)",
            "h = linear(n, up, c) * gelu_erf(linear(n, gate, e))",
            "q4_1 q4_0",
        ),
        _gated(9, 96, 32, "rmsnorm(x, eps=1e-5)", GPT_OSS),
        _gated(130, 64, 64, "rmsnorm(x, g, 1e-5)", GPT_OSS, "q4_0 q8_0"),
        _gated(2, 33, 37, "x", GPT_OSS, "f16 f32"),
        _gated(3, 256, 64, NORM, GPT_OSS, "q4_k q8_0"),
        _gated(66, 512, 32, NORM, GPT_OSS, "q6_k q8_0"),
    ),
    "add-norm-quant": (
        _sandwich(3, 96, "x + rmsnorm(a, g, 1e-5)", "return y, linear(rmsnorm(y, b, 1e-5), w)"),
        _sandwich(
            1, 2080, "rmsnorm(a, eps=1e-5) * 0.3 + x", "return linear(rmsnorm(y, eps=1e-5), w)"
        ),
        _sandwich(
            2, 64, "layernorm(a, g, b, 1e-5) + x", "return linear(rmsnorm(y, g, 1e-5), w), y"
        ),
    ),
    "add-norm": (
        _sandwich(3, 37, "x + rmsnorm(a, g, 1e-5)", "return y", "f32"),
        _sandwich(1, 160, "rmsnorm(a, g, 1e-5) * b + x", "return rmsnorm(y, b, 1e-5), y", "f16"),
        _sandwich(5, 64, "rmsnorm(x, eps=1e-5) + rmsnorm(a, g, 1e-5)", "return silu(y)", "f32"),
    ),
    "embed-norm": (
        _embedded(3, 96, 64, "x = embed(token, table)", "q8_0"),
        _embedded(1, 7, 2080, "x = embed(token, table)", "q4_1"),
        _embedded(64, 64, 64, "x = embed(token, table) * 8.0", "q4_0"),
        _embedded(5, 9, 512, "x = embed(token, table)", "q6_k"),
        _embedded(3, 9, 256, "x = embed(token, table)", "q4_k"),
        _embedded(5, 3, 96, "x = embed(token, table) * g + g", "f16"),
        f"input x: f32[7, 96]\ninput g: f32[96]\ninput w: q8_0[40, 96]\n"
        f"input r: rows[7] = {PLACES}\ny = wanted(x)\nreturn y, linear(rmsnorm(y, g, 1e-5), w)\n",
        f"input x: f32[1, 2080]\ninput r: rows[1] = {ONE}\nreturn layernorm(wanted(x), eps=1e-5)\n",
        _embedded(2, 40, 32, "x = embed(token, table)\ny = layernorm(x, g, eps=1e-5)", "bf16"),
    ),
    "expert-glu": EXPERTS,
    "moe-route": FLOAT_EXPERTS,
    "combine-residual": (
        "input y: f32[3, 2, 160]\ninput share: f32[3, 2]\ninput x: f32[3, 160]\n"
        "input z: f32[3, 160]\ninput gate: f32[3, 1]\ninput c: f32[160]\ninput w: q8_0[8, 160]\n"
        "y = x + (combine(y, share) + z * sigmoid(gate)) * c\n"
        "return y, linear(rmsnorm(y, eps=1e-5), w)\n",
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
        for kind, values in kinds_of_values(whole).items():
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
                        found.append(
                            f"{owner} {name} {kind} {flags}: {wrong.sum()} differ, first {at}"
                        )
    assert not found, "\n".join(found)


@pytest.mark.parametrize("kind", PROGRAMS)
def test_the_programs_are_fused(kind: str) -> None:
    for text in PROGRAMS[kind]:
        assert any(kind in kinds(program_of(text), Options(n)) for n in NUMERICS), text
