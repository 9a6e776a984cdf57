"""Synthetic weights: the device's kernel and NumPy make the same bytes, and models of them run."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import numpy as np
import pytest

from codegen import library
from codegen.expr import STRUCTS
from codegen.render import environment
from compiler import api, pipeline
from compiler.diagnostics import UserError
from compiler.formats import FORMATS
from runtime import toolchain
from runtime.gguf import TensorInfo
from runtime.hashed_weights import hashed_bytes, open_synthetic, tensor_key
from runtime.synthetic import PRESETS

BLOCKS, KEY, FIRST = 300, tensor_key(7, "blk.0.ffn_up.weight"), 2
SHAPES = (256, 1536, 12288)  # rows' lengths; then a vector
MAIN = """
#include <cstdio>
#include <vector>
template <class F>
void show(int k, bool vector) {
  std::vector<uint8_t> raw(BLOCKS * F::SIZE);
  launch(nullptr, fill_hashed<F>, Shape{dim3((BLOCKS + 127) / 128), dim3(128), 0}, KEY,
         size_t(FIRST), size_t(BLOCKS), k, vector, raw.data());
  fwrite(raw.data(), 1, raw.size(), stdout);
}
"""


def cases() -> Iterator[tuple[str, int, bool]]:
    for name, fmt in FORMATS.items():
        yield from ((name, k, False) for k in SHAPES)
        if fmt.block == 1:
            yield name, 128, True


def test_the_kernel_makes_the_bytes_that_numpy_makes() -> None:
    calls = [f"show<{STRUCTS[n]}>({k}, {str(v).lower()});" for n, k, v in cases()]
    sizes = f"constexpr unsigned KEY = {KEY}u; constexpr int FIRST = {FIRST}, BLOCKS = {BLOCKS};"
    main = "\n".join((MAIN, "int main() {", *calls, "}"))
    formats = environment().get_template("formats.cu.j2")
    head = formats.render(formats=list(FORMATS.values()), struct=STRUCTS)
    parts = ("#include <cstdint>", sizes, head, *library.needed(main), main)
    binary = toolchain.build("\n\n".join(parts))
    out = np.frombuffer(subprocess.run([binary], capture_output=True, check=True).stdout, np.uint8)
    at = 0
    for name, k, vector in cases():
        fmt = FORMATS[name]
        count = (FIRST + BLOCKS) * fmt.block
        shape = (count,) if vector else (-(-count // k), k)
        whole = hashed_bytes(TensorInfo("", fmt, shape, 0, 0), KEY)
        expected = whole[FIRST * fmt.size : (FIRST + BLOCKS) * fmt.size]
        got = out[at : at + len(expected)]
        assert (got == expected).all(), (name, k, vector)
        at += len(expected)
    assert at == len(out)


@pytest.mark.parametrize("kind", FORMATS)
def test_outputs_keep_the_size_of_inputs(kind: str) -> None:
    checkpoint = open_synthetic(f"small-qwen3:{kind}")
    x = np.random.default_rng(0).standard_normal((PRESETS["small-qwen3"].hidden, 200))
    for name in ("blk.0.ffn_up.weight", "blk.7.attn_q.weight", "token_embd.weight"):
        values = checkpoint.weight(name).values()
        assert np.isfinite(values).all() and len(np.unique(values)) > 100
        assert 0.5 < np.std(values @ x) < 2.5, name
    norm = checkpoint.weight("blk.1.attn_norm.weight").values()
    assert 1 <= norm.min() < norm.max() < 1.25


def test_seeds_and_names_make_other_bytes() -> None:
    one, other = open_synthetic("tiny-llama:q8_0"), open_synthetic("tiny-llama:q8_0", seed=1)
    q, k = (one.weight(f"blk.0.attn_{n}.weight").data for n in "qk")
    assert (q[: len(k)] != k).any()
    assert (one.weight("output_norm.weight").data != other.weight("output_norm.weight").data).any()


@pytest.mark.parametrize("spelled", ["tiny-qwen3:q8_0", "small-qwen3moe:q4_k_m"])
def test_host_and_vm_give_equal_bits(spelled: str) -> None:
    model = pipeline.load(None, open_synthetic(spelled))
    made = api.compile(model, target="host")
    report = api.diff(made, prompts=[[1, 2, 3]], n=3)
    assert report.first is None and report.compared > 10000


@pytest.mark.parametrize(
    ("spelled", "message"),
    [
        ("tiny-llama", "PRESET:TYPE is needed, as qwen3-8b:q8_0; 'tiny-llama' was given"),
        ("gpt5:q8_0", "a preset of smollm2, .* is needed, gpt5 was given"),
        ("tiny-llama:q9", "a weight type of f32, .* is needed, q9 was given"),
        ("tiny-llama:q4_k", "rows of whole blocks of 256 are needed for q6_k"),
    ],
)
def test_refused(spelled: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        open_synthetic(spelled)
