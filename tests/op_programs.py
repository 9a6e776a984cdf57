"""Small programs for tests of ops: every sample of every op, and `WIDE`, shapes beyond them.

`WIDE` adds sizes at which kernels loop, split a row over blocks or take another form.
"""

from __future__ import annotations

from dataclasses import replace

import passes
from compiler import pipeline
from compiler.ops import Op, load
from compiler.program import Program
from compiler.target import HOST, Options
from tests.samples import program_of

PLACES = "[[0, 0], [0, 1], [1, 63], [1, 64], [0, 1000], [2, 2000], [7, 5]]"
WIDE = (
    # rows that a thread holds in several registers, or of which a block has a chunk
    "input x: f32[2, 5000]\nreturn softmax(x)\n",
    "input x: f32[2, 9000]\ninput w: f32[9000]\nreturn rmsnorm(x, w, 1e-6)\n",
    "input x: f32[1, 30000]\nreturn layernorm(x, eps=1e-5)\n",
    "input x: f32[262144]\nreturn sum(x)\n",
    "input x: i32[3, 5001]\nreturn max(x)\n",
    "input x: f32[2, 5000]\ny = silu(x)\nreturn y * x\n",
    "input x: f32[3, 4160]\ninput w: q8_0[17, 4160]\nreturn linear(quantize(x, words=2), w)\n",
    "input x: f32[2, 2080]\ny = silu(x)\ninput w: q4_0[3, 2080]\nreturn linear(quantize(y), w)\n",
    # columns of other axes, picks of long rows
    "input x: f32[2, 300, 5]\nreturn sum(x, axis=1)\n",
    "input x: f32[33, 2, 3]\nreturn mean(x, axis=0)\n",
    "input x: f32[2, 5000]\nreturn argmax(x)\n",
    "input x: f32[2, 3000]\nv, i = top_k(x, 40)\nreturn v, i\n",
    # projections: one row and groups of 4 and 8, one tile and many, few and many segments
    "input x: f32[8192]\ninput w: f32[3, 8192]\nreturn linear(x, w)\n",
    "input x: f32[5, 640]\ninput w: f16[70, 640]\nreturn linear(x, w)\n",
    "input x: f32[1, 9024]\ninput w: q4_1[9, 9024]\nreturn linear(quantize(x), w)\n",
    "input x: f32[17, 544]\ninput w: q8_0[100, 544]\ninput b: f32[100]\nreturn linear(x, w, b)\n",
    "input x: f32[8, 1056]\ninput w: q4_1[64, 1056]\nreturn linear(quantize(x, words=2), w)\n",
    "input x: f32[4, 2048]\ninput w: bf16[8, 2048]\nreturn linear(x, w)\n",
    "input x: f32[2, 40, 33]\ninput w: f32[1, 33]\nreturn linear(x, w)\n",
    "input x: f32[2, 1120]\ninput w: q8_0[3, 70, 1120]\n"
    "input i: i32[2, 3] = [[0, 2, 1], [1, 1, 0]]\nreturn expert_linear(x, w, i)\n",
    "input a: f32[3, 40, 70]\ninput b: f32[70, 50]\nreturn matmul(a, b)\n",
    "input a: f32[2, 17, 16]\ninput b: f32[2, 16, 33]\nreturn matmul(a, b)\n",
    # axes that stand still
    "input a: f32[3, 1]\ninput b: f32[1, 37]\nreturn a * b\n",
    "input a: f32[2, 1, 33]\ninput b: f32[5, 1]\nreturn a - b\n",
    "input a: f32[4, 1, 3, 1]\ninput b: f32[2, 1, 5]\nreturn a / b\n",
    "input a: f32\ninput b: f32[1]\nreturn a + b\n",
    "input a: f32\ninput b: f32[3, 4, 1]\nreturn a + b\n",
    "input a: f32\nreturn exp(a)\n",
    "input a: f32[3, 37]\nreturn 2.0 / a, 1.5 - a, a - 1.5\n",
    "input a: i64[3] = [9007199254740993, -9223372036854775808, 9223372036854775807]\n"
    "input b: i64[3] = 9007199254740993\nreturn a + b, neg(a), a * b\n",
    "input x: f32[3, 5, 8]\ninput g: f32[3, 1, 1]\nreturn softmax(x * g) + 1.5\n",
    # many pages, windows, heads that are no multiple of 4, one head of many
    f"input q: f32[7, 2, 8]\ninput k: f32[7, 2, 8]\ninput r: rows[7] = {PLACES}\n"
    "cache c { k [2, 8] }\nc.k = append(c.k, k)\nreturn attention(q, c.k, c.k)\n",
    f"input q: f32[7, 5, 33]\ninput k: f32[7, 1, 33]\ninput r: rows[7] = {PLACES}\n"
    "cache c { k [1, 33] }\nc.k = append(c.k, k)\nreturn attention(q, c.k, c.k, window=129)\n",
    f"input q: f32[7, 1, 256]\ninput k: f32[7, 1, 256]\ninput r: rows[7] = {PLACES}\n"
    "cache c { k [1, 256] }\nc.k = append(c.k, k)\nreturn attention(q, c.k, c.k, scale=0.02)\n",
    f"input x: f32[7, 3, 200]\ninput r: rows[7] = {PLACES}\nreturn rope(x, 1e6)\n",
    f"input x: f32[7, 7]\ninput r: rows[7] = {PLACES}\nreturn wanted(x)\n",
)


def named_programs() -> list[Program]:
    """Each called after its op and number, so that a difference says whose it is."""
    samples = [
        (f"{name}-{at}", text)
        for name, op in sorted(load().items())
        for at, text in enumerate(op.samples)
    ]
    samples += [(f"wide-{at}", text) for at, text in enumerate(WIDE)]
    return [replace(program_of(text), name=name) for name, text in samples]


def lowered(program: Program, numerics: str) -> Program:
    options = Options(numerics, hold=passes.names())
    return pipeline.lower(program, options, HOST)[0]


def is_other(program: Program, numerics: str) -> bool:
    """Whether the numerics make another graph of it than f32."""
    return lowered(program, numerics).graph.roots != lowered(program, "f32").graph.roots


def computes(op: Op) -> bool:
    """Whether an op computes something of reals, rather than moving or renaming elements."""
    nodes = [n for text in op.samples for n in program_of(text).graph.nodes() if n.op == op.name]
    return any(
        op.flops([v.type for v in n.operands], list(n.types)) > 0
        and any(v.type.dtype in ("f32", "q8") for v in n.operands)
        for n in nodes
    )
