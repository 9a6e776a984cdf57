"""Attention of a single row over more pages than a block has warps: several blocks share them.

The host's two processors would never be filled that way, so the plan is made for more.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from codegen.kernels import row_attention
from compiler import api, pipeline
from compiler.target import HOST, Options
from runtime.compare import difference
from runtime.synthetic import PRESETS, write_synthetic
from tests.model_runs import random_prompt, reference, vocabulary_of

PROMPT, AFTER = 600, 3  # ten pages of 64 positions; a block has eight warps
MANY = replace(HOST, sms=64)  # 16 blocks for each of four heads


def test_blocks_that_share_pages_give_the_bits_of_the_vm(tmp_path: Path) -> None:
    dims = replace(PRESETS["tiny-qwen3"], layers=1, context=1024)
    path = write_synthetic(tmp_path / "tiny.gguf", dims, "q8_0")
    options = Options(max_rows=128, max_seqs=128)
    made = pipeline.compile_model(pipeline.load(path), options, MANY)
    assert "1 + 15 * (ROWS == 1)" in made.text
    prompt = random_prompt(0, PROMPT, vocabulary_of(made))
    run = api.run(made, prompts=[prompt], n=AFTER, logits=True, flags=("--host-seed", "3"))
    expected = reference(made, [*prompt, *run.tokens[0][:-1]])
    assert difference("shared pages", expected, run.logits[0]) is None


TEMPLATE = Path(row_attention.__file__).parents[1] / "templates/kernels/row_attention.cu.j2"
DECLARED = re.compile(
    r"(?:\b(?:int|bool|float|size_t|auto|Attended|AsyncCopies|TeamPage)[&*]* |, )(\w+)"
    r"(?= = |\) \{|, int|[;{])"
)


def test_the_names_of_a_steps_own_attention_are_taken() -> None:
    """A value of the program that is called as one of them gets another name."""
    own = set(DECLARED.findall(TEMPLATE.read_text()))
    assert {"apart", "from", "stride", "until", "staged", "part", "round", "copies"} <= own
    assert own - {"PAIRS"} <= row_attention.NAMES


def test_no_divisors_are_held_as_if_they_were_a_norms(tmp_path: Path) -> None:
    dims = replace(PRESETS["tiny-qwen3"], architecture="llama", layers=1, divided=True)
    path = write_synthetic(tmp_path / "tiny.gguf", dims, "q8_0")
    text = pipeline.compile_model(pipeline.load(path), Options(), HOST).text
    assert "row_attention<" in text and "_near" not in text
