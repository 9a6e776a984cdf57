"""Attention of a single row over more pages than a block has warps: several blocks share them.

The host's two processors would never be filled that way, so the plan is made for more.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

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
