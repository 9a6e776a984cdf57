"""Examples with words taken out, put in and exchanged: a program or errors, never a traceback."""

import random

import pytest
from model_metadata import metadata

import examples
from compiler.diagnostics import UserError
from compiler.verify import verify
from frontend.elaborate import elaborate
from frontend.formatter import format_text
from frontend.parser import parse_graph
from frontend.tokens import scan

MODELS = {"llama": "tiny-llama", "qwen3": "tiny-qwen3", "qwen3moe": "tiny-qwen3moe"}
TEXTS = {name: examples.find(name).read_text() for name in examples.names()}
WORDS = [
    t.text for text in TEXTS.values() for t in scan(text) if t.kind not in ("space", "comment")
]
ROUNDS = 25  # of each example


def mutated(text: str, rng: random.Random) -> str:
    words = [t.text for t in scan(text) if t.kind != "comment"]
    for _ in range(rng.choice([1, 1, 2])):
        at = rng.randrange(len(words))
        match rng.choice(["drop", "change", "add", "swap"]):
            case "drop":
                del words[at]
            case "change":
                words[at] = rng.choice(WORDS)
            case "add":
                words.insert(at, rng.choice(WORDS))
            case _:
                other = rng.randrange(len(words))
                words[at], words[other] = words[other], words[at]
    return "".join(words)


def held(name: str):
    return metadata(MODELS[name]) if name in MODELS else None


def is_program(text: str, name: str) -> bool:
    """Whether the text is elaborated; its graph then is sound and its dump returns."""
    try:
        graph = elaborate(text, f"{name}.model", held(name)).graph
    except UserError as error:
        assert f"{name}.model" in str(error)
        return False
    verify(graph)
    assert parse_graph(str(graph)).roots == graph.roots
    return True


@pytest.mark.parametrize("name", examples.names())
def test_any_text_is_a_program_or_an_error(name):
    rng = random.Random(name)
    for _ in range(ROUNDS):
        is_program(mutated(TEXTS[name], rng), name)


@pytest.mark.parametrize("name", examples.names())
def test_any_text_is_formatted_once_and_for_all(name):
    rng = random.Random(name)
    for _ in range(ROUNDS):
        try:
            text = format_text(mutated(TEXTS[name], rng))
        except UserError:
            continue
        assert format_text(text) == text


def test_the_mutations_leave_some_programs_and_break_others():
    rng = random.Random(0)
    kept = [is_program(mutated(TEXTS["rope"], rng), "rope") for _ in range(60)]
    assert 3 <= sum(kept) <= 57
