"""Every example as a host binary, its kernels fused and apart: the bits of the VM both times, under
sanitizers with guards around every buffer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import examples
import passes
from compiler import pipeline
from compiler.api.reference import bits, session
from compiler.pipeline import Model
from compiler.target import HOST, NUMERICS, Options
from runtime.compare import difference
from runtime.traced import all_logits
from runtime.vm import run_program
from tests import model_runs
from tests.guarded import sanitized
from tests.merged import compiled, groups, merged, rows_values, run
from tests.model_runs import random_prompt
from tests.op_programs import is_other, lowered
from tests.small_models import MODELS, OP_PROGRAMS, checkpoint, model, program
from tests.test_codegen_ops import SEEDS, differences

HOLDS = {"fused": (), "apart": passes.names()}
PROMPTS = ([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], [7], [8, 8, 8])  # forms of 1, 4 and 8 rows

# op programs


def units() -> list[object]:
    out: list[object] = []
    for numerics in NUMERICS:
        programs = [replace(program(name), name=name) for name in OP_PROGRAMS]
        kept = [p for p in programs if numerics == "f32" or is_other(p, numerics)]
        for unit in groups(kept):
            out += [
                pytest.param(numerics, how, unit, id=f"{numerics}-{how}-{unit[0].name}")
                for how in HOLDS
            ]
    return out


@pytest.mark.parametrize(("numerics", "how", "unit"), units())
def test_op_programs(numerics: str, how: str, unit: list) -> None:
    whole = merged(unit)
    binary = sanitized(compiled(whole, Options(numerics, hold=HOLDS[how], guard=True)).text)
    found: list[str] = []
    for inputs in rows_values(unit):
        want = run_program(lowered(whole, numerics), inputs)
        for flags in SEEDS[:2]:
            found += differences(unit, want, run(binary, inputs, *flags), f"{how} {flags}")
    assert not found, "\n".join(found)


# models: fused ones are held against the VM in every form by test_model_small


@pytest.mark.parametrize(
    ("name", "numerics"), [("llama", "int8"), ("qwen3", "f32"), ("qwen3moe", "int8x2")]
)
def test_a_model_apart(name: str, numerics: str) -> None:
    check(model(name, 2), Options(numerics, max_rows=16, max_seqs=16, hold=passes.names()))


ZOO = """# zoo.model: what the examples do not do with the rows of a step
dim  D = meta("llama.embedding_length")
dim  V = shape("token_embd.weight", 0)
real eps = meta("llama.attention.layer_norm_rms_epsilon")
weight token_embd [V, D]
weight output_norm [D]
ignore IGNORED
cache kv { k [1, 16] }

def forward(token) {
  x = embed(token, token_embd)
  h = heads(layernorm(x, output_norm, eps=eps), 4)
  scores = softmax(matmul(h, transpose(h)) * 0.25)
  mixed = reshape(matmul(scores, h), T, D)
  values, index = top_k(mixed, 4)
  few = combine(h, values)
  columns = concat(mean(h, axis=1), max(h, axis=1), few, slice(x, axis=1, start=7, stop=23))
  best = cast(argmax(h, axis=1), f32) + sum(h, axis=1)
  counts = cast(index, f32) + sum(h) - max(h) * mean(h)
  wide = gelu_erf(columns) * concat(best, best, best, best) + tanh(mixed)
  y = heads(l2norm(wide, 1e-6), 4) / reshape(counts, T, 4, 1)
  kv.k = append(kv.k, slice(heads(wide, 4), axis=1, start=2, stop=3))
  z = reshape(y, T, D) + attention(heads(rope(x, 1e4, dims=6), 4), kv.k, kv.k)
  r = wanted(z)
  return linear(sigmoid(r) * softplus(wanted(wide)) - relu(r), token_embd)
}
"""


def test_other_ops_over_the_rows_of_a_step() -> None:
    parts = [f"attn_{p}" for p in ("norm", "q", "k", "v", "output")]
    parts += [f"ffn_{p}" for p in ("norm", "gate", "up", "down")]
    text = ZOO.replace("IGNORED", ", ".join(f'"blk.{{}}.{p}.weight"' for p in parts))
    whole = pipeline.load(text, checkpoint("llama"))
    check(whole, Options("int8x2", max_rows=16, max_seqs=16))


@pytest.mark.parametrize(("name", "numerics"), [("qwen3", "int8"), ("qwen3moe", "int8x2")])
def test_a_step_of_many_rows(name: str, numerics: str) -> None:
    """The forms of 64 and 128 rows, the last group of which is not full."""
    prompts = tuple(random_prompt(seed, n, 160) for seed, n in enumerate((200, 1, 65, 17)))
    options = Options(numerics, max_rows=320, max_seqs=320)
    flags = (("--chunk", "320"), ("--chunk", "70", "--host-seed", "5"))
    check(model(name, 1), options, prompts, flags)


SHORT = ((), ("--chunk", "3"), ("--chunk", "1", "--host-seed", "5"))


def check(
    given: Model,
    options: Options,
    prompts: Sequence[list[int]] = PROMPTS,
    ways: Sequence[tuple[str, ...]] = SHORT,
) -> None:
    """Logits of every row of the prompts and three tokens behind each, host against VM."""
    made = pipeline.compile_model(given, replace(options, guard=True), HOST)
    for flags in ways:
        ran = model_runs.run(made, prompts, 3, flags)
        for prompt, tokens, logits in zip(prompts, ran.tokens, ran.logits, strict=True):
            fed = [*prompt, *tokens[:-1]]
            want = all_logits(session(given, bits(given, options)), fed)
            assert difference(f"logits {flags}", want, logits) is None
            assert list(tokens) == np.argmax(want[len(prompt) - 1 :], axis=1).tolist()


# reading the program beside its `.cu`


@pytest.mark.parametrize("how", HOLDS)
@pytest.mark.parametrize("numerics", NUMERICS)
@pytest.mark.parametrize("name", MODELS)
def test_each_line_stands_over_a_kernel(name: str, numerics: str, how: str) -> None:
    text = compiled(program(name, 3), Options(numerics, hold=HOLDS[how])).text
    over = set(re.findall(rf"^// {name}\.model:(\d+)  (.*)$", kernels_part(text), re.M))
    for number, line in executable(name):
        assert (str(number), line) in over, f"{number}: {line}"


def kernels_part(text: str) -> str:
    """The comments that stand over kernels: each block of them ends in a `__global__`."""
    part = text.split("// ---- kernels")[1].split("#ifndef __CUDACC_RTC__")[0]
    for block in re.findall(r"(?:^//.*\n)+(.*\n.*\n)", part, re.M):
        assert not re.match(r"// \w+\.model", block) or "__global__" in block
    return part


def executable(name: str) -> list[tuple[int, str]]:
    """The statements of an example's functions that compute: what is no header, loop or brace."""
    out: list[tuple[int, str]] = []
    inside = False
    for number, line in enumerate(examples.find(name).read_text().splitlines(), 1):
        code = line.split("#")[0].strip()
        if code.startswith("def "):
            inside = True
        elif line.startswith("}"):
            inside = False
        elif inside and code and not re.match(r"(for|if|else|\})", code):
            out.append((number, code))
    return out


def test_what_counts_as_executable() -> None:
    lines = [line for _, line in executable("qwen3")]
    assert len(lines) == 12
    assert lines[0] == "n = rmsnorm(x, w.attn_norm, eps)"
    assert "x = x + attend(x, blk[l], kv[l])" in lines and "for l in 0..L {" not in lines
