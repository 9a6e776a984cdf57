"""SmolLM2 itself: its text is that of transformers, its logits in every form are the VM's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compiler.api import build
from compiler.pipeline import Compiled
from runtime.binary import capture
from runtime.gguf import open_checkpoint
from runtime.tokenizer import open_tokenizer
from tests.model_runs import Prompted, check_forms, compiled, smollm2

GOLDEN = json.loads((Path(__file__).parent / "golden/smollm2.json").read_text())


@pytest.fixture(scope="session")
def checkpoint() -> Path:
    return smollm2()


def greedy(made: Compiled, weights: Path, *flags: str) -> tuple[list[int], str]:
    """The ids and the text that the binary's own `--text` gives for the golden prompt."""
    wanted = GOLDEN["greedy"]
    ids = ",".join(map(str, wanted["prompt_ids"]))
    argv = ["--weights", str(weights), "--tokens", ids, "-n", str(len(wanted["ids"]))]
    done = capture(build(made), [*argv, "--text", "--json", *flags])
    return done.report()["tokens"][0], done.out.decode()


@pytest.mark.model
def test_f32_text_is_that_of_transformers(checkpoint: Path) -> None:
    ids, text = greedy(compiled(checkpoint, "f32"), checkpoint)
    assert ids == GOLDEN["greedy"]["ids"]
    assert text.rstrip("\n") == GOLDEN["greedy"]["text"]


@pytest.mark.model
def test_golden_ids_are_those_of_our_tokenizer(checkpoint: Path) -> None:
    tokenizer = open_tokenizer(open_checkpoint(checkpoint))
    wanted = GOLDEN["greedy"]
    assert tokenizer.encode(wanted["prompt"]) == wanted["prompt_ids"]
    assert tokenizer.decode(wanted["ids"]) == wanted["text"]
    assert tokenizer.encode(GOLDEN["passage"]["text"]) == GOLDEN["passage"]["ids"]


@pytest.mark.model
def test_vm_and_host_agree_in_every_form(checkpoint: Path) -> None:
    """40 tokens of a text in int8, and one behind them."""
    prompt = GOLDEN["passage"]["ids"][:40]
    check_forms(compiled(checkpoint, "int8"), Prompted(prompt, 1, (1, 6, 11)))
