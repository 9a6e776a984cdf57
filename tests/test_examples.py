"""Elaboration of the examples: every one is a program, in good time, and says what it is."""

import re
import time

import pytest
from model_metadata import metadata

import examples
from compiler.diagnostics import UserError
from compiler.graph import Node
from compiler.program import Program
from compiler.types import Type
from compiler.verify import verify
from frontend.elaborate import elaborate

MODELS = {"llama": "tiny-llama", "qwen3": "tiny-qwen3", "qwen3moe": "tiny-qwen3moe"}
PROGRAMS = [name for name in examples.names() if name not in MODELS]


def model(name: str, **changes: object) -> Program:
    held = metadata(str(changes.pop("preset", MODELS[name])), **changes)  # type: ignore[arg-type]
    return elaborate(examples.find(name).read_text(), f"{name}.model", held)


def ops(program: Program, name: str) -> list[Node]:
    return [n for n in program.graph.nodes() if n.op == name]


def test_there_are_enough_and_every_family_is_there():
    assert set(MODELS) <= set(examples.names())
    assert len(PROGRAMS) >= 11


@pytest.mark.parametrize("name", examples.names())
def test_the_first_line_says_what_it_is(name):
    first = examples.find(name).read_text().split("\n")[0]
    assert re.fullmatch(rf"# {name}\.model: \w.{{20,}}", first)


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_op_program_is_elaborated(name):
    program = elaborate(examples.find(name).read_text(), f"{name}.model")
    verify(program.graph)
    assert (program.name, program.is_model) == (name, False)
    assert all(value.type.is_number for _, value in program.graph.results)
    assert not any(n.types[0].is_dynamic for n in program.graph.nodes())


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_elaborated(name):
    program = model(name)
    verify(program.graph)
    assert program.is_model and program.context_length == 256 and not program.inputs
    assert [n for n, _ in program.graph.results] == ["logits", "next"]
    assert [str(v.type) for _, v in program.graph.results] == ["f32[R, 160]", "i32[R]"]
    names = [program.graph.name(v) for v in program.graph.effects]
    assert names == ["l0.kv.k_2", "l0.kv.v_2", "l1.kv.k_2", "l1.kv.v_2"]


@pytest.mark.parametrize("name", MODELS)
def test_an_architecture_is_a_text_of_under_60_lines(name):
    assert len(examples.find(name).read_text().splitlines()) < 60


@pytest.mark.parametrize(("name", "preset"), [("llama", "smollm2"), ("qwen3moe", "qwen3-30b-a3b")])
def test_a_large_model_takes_less_than_half_a_second(name, preset):
    text, held = examples.find(name).read_text(), metadata(preset)
    seconds: list[float] = []
    for _ in range(4):  # the first one also reads the grammar; the machine may be busy
        start = time.process_time()
        elaborate(text, f"{name}.model", held)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.5


def test_a_tied_head_and_one_of_its_own():
    tied, own = model("llama"), model("qwen3")
    assert tied.graph.results[0][1].node.operands[1].node.attr("name") == "token_embd.weight"
    assert own.graph.results[0][1].node.operands[1].node.attr("name") == "output.weight"


def test_frequency_divisors_are_optional():
    plain = model("llama")
    long = model("llama", rope_freqs__weight=Type("f32", (8,)))
    assert {len(n.operands) for n in ops(plain, "rope")} == {2}
    assert {len(n.operands) for n in ops(long, "rope")} == {3}
    assert ops(long, "rope")[0].operands[1].node.attr("name") == "rope_freqs.weight"


def test_llama_turns_adjacent_pairs_and_qwen_halves():
    assert {n.attr("interleaved") for n in ops(model("llama"), "rope")} == {1}
    assert {n.attr("interleaved") for n in ops(model("qwen3"), "rope")} == {0}


def test_odd_sizes_are_among_the_examples():
    text = "".join(examples.find(name).read_text() for name in PROGRAMS)
    sizes = {int(s) for s in re.findall(r"\d+", " ".join(re.findall(r"f32\[(.*?)\]", text)))}
    assert {1, 7, 17, 35} <= sizes


def test_find_takes_a_name_and_suggests_one():
    assert examples.find("rope") == examples.find("rope.model")
    with pytest.raises(UserError, match="did you mean llama"):
        examples.find("lama")
