"""Small whole models in every numerics: VM = host, bit for bit, in whatever form rows come in.

The smallest run under sanitizers with guards around their buffers, on up to 320 rows at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from compiler.target import NUMERICS
from runtime.synthetic import PRESETS, write_synthetic
from tests.model_runs import ROWS, Prompted, check_forms, compiled, random_prompt, vocabulary_of


@dataclass(frozen=True)
class Small:
    """A synthetic checkpoint, and what is run on it: the prompt's length, the tokens behind it,
    the lengths of the sequences beside it. The prompts' keys fill more than one page of 64."""

    preset: str
    weights: str
    layers: int
    length: int
    count: int
    beside: tuple[int, int, int]
    numerics: tuple[str, ...] = NUMERICS
    guard: bool = True
    vocab: int = 160

    def write(self, folder: Path) -> Path:
        path = folder / f"{self.preset}.gguf"
        dims = replace(PRESETS[self.preset], layers=self.layers, context=1024, vocab=self.vocab)
        return write_synthetic(path, dims, self.weights)


MODELS = (
    # a head of 49,152 rows is most of the work
    Small("smollm2", "q4_1", 3, 66, 3, (1, 9, 20), ("int8",), False, 49152),
    Small("smollm2", "q4_1", 3, 66, 3, (1, 9, 20), ("f32", "int8x2"), False, 1024),
    Small("tiny-qwen3", "q8_0", 2, 70, 4, (1, 65, 300)),
    Small("tiny-qwen3moe", "q4_1", 2, 70, 4, (1, 65, 300)),
    Small("small-llama", "q4_k_m", 3, 17, 2, (1, 5, 65), ("int8",)),  # layers of two kinds
    Small("small-qwen3moe", "q5_k_m", 3, 17, 2, (1, 5, 65), ("int8x2",)),
)
CASES = [pytest.param(s, n, id=f"{s.preset}-{s.weights}-{n}") for s in MODELS for n in s.numerics]


@pytest.mark.parametrize(("small", "numerics"), CASES)
def test_vm_and_host_agree_in_every_form(small: Small, numerics: str, tmp_path: Path) -> None:
    rows = 320 if small.guard else ROWS
    made = compiled(small.write(tmp_path), numerics, rows=rows, guard=small.guard)
    prompt = random_prompt(0, small.length, vocabulary_of(made))
    check_forms(made, Prompted(prompt, small.count, small.beside))
