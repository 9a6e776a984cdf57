"""Small whole models in every numerics: VM = host, bit for bit, in whatever form rows come in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from runtime.synthetic import write_synthetic
from tests.model_runs import Prompted, check_forms, compiled, random_prompt, vocabulary_of


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

    def write(self, folder: Path) -> Path:
        path = folder / f"{self.preset}.gguf"
        return write_synthetic(path, self.preset, self.weights, layers=self.layers)


MODELS = (
    Small("smollm2", "q4_1", 3, 66, 3, (1, 9, 20)),  # its head's 49,152 rows are most of the work
    Small("tiny-qwen3", "q8_0", 2, 70, 4, (1, 65, 30)),
    Small("tiny-qwen3moe", "q4_0", 2, 70, 4, (1, 65, 30)),
)


@pytest.fixture(scope="module", params=MODELS, ids=lambda small: small.preset)
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Small, Path]:
    return request.param, request.param.write(tmp_path_factory.mktemp("checkpoint"))


@pytest.mark.parametrize("numerics", ["f32", "int8", "int8x2"])
def test_vm_and_host_agree_in_every_form(written: tuple[Small, Path], numerics: str) -> None:
    small, path = written
    made = compiled(path, numerics)
    prompt = random_prompt(0, small.length, vocabulary_of(made))
    check_forms(made, Prompted(prompt, small.count, small.beside))
