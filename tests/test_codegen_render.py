"""The emitted text: the same each time, nothing unused in it, no file's name in its code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import examples
from codegen import library, render, tables
from codegen.families import split_name
from compiler.diagnostics import UserError
from compiler.graph import Graph, Note, leaf
from compiler.ops import apply
from compiler.program import Program
from compiler.target import NUMERICS, Options
from compiler.types import Type
from runtime import nvrtc, toolchain
from tests.merged import compiled
from tests.small_models import MODELS, program

ROOT = Path(__file__).parents[1]
each_example = pytest.mark.parametrize("name", examples.names())


def text_of(name: str, numerics: str = "int8", **options: object) -> str:
    given = Options(numerics, **options)  # type: ignore[arg-type]
    return compiled(program(name), given).text


# the same each time

HASHES = """
import hashlib
from tests.test_codegen_render import NUMERICS, examples, text_of
for name in examples.names():
    for numerics in NUMERICS:
        print(name, numerics, hashlib.sha256(text_of(name, numerics).encode()).hexdigest())
"""


def test_two_processes_emit_the_same_bytes() -> None:
    def said(seed: str) -> str:
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", HASHES]
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout

    first, second = said("1"), said("4711")
    assert len(first.splitlines()) == len(examples.names()) * len(NUMERICS)
    assert first == second


# nothing unused


@each_example
def test_every_helper_is_used(name: str) -> None:
    for numerics in NUMERICS:
        whole = text_of(name, numerics)
        for item in library.items():
            if item.text in whole:
                rest = library.words(whole.replace(item.text, ""))
                assert item.names & rest, f"{sorted(item.names)} is not used"


@each_example
def test_every_kernel_is_launched(name: str) -> None:
    whole = text_of(name)
    kernels = set(re.findall(r"__global__ void (?:__launch_bounds__\(.*?\) )?(\w+)\(", whole))
    assert kernels
    for kernel in kernels:
        assert len(re.findall(rf"\b{kernel}\b", whole)) > 1, kernel
    launched = set(re.findall(r"run\(d, (\w+)", whole))
    assert launched <= kernels


@each_example
def test_every_buffer_and_weight_is_used(name: str) -> None:
    whole = text_of(name)
    made = compiled(program(name), Options("int8"))
    for row in (*tables.of(made.plan).weights, *tables.of(made.plan).caches):
        assert re.search(rf"\(d, {row.name}\b", whole), row.name
    for buffer in made.plan.buffers:
        assert len(re.findall(rf"\bb\.{buffer.name}\b", whole)) >= 1, buffer.name


@each_example
def test_nothing_of_this_machine_and_day_is_in_it(name: str) -> None:
    whole = text_of(name)
    assert str(ROOT) not in whole and str(Path.home()) not in whole
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b", whole)


@each_example
def test_it_is_plain_text_for_people(name: str) -> None:
    """ASCII, no tabs, no trailing blanks, no three empty lines, one newline at the end."""
    whole = text_of(name)
    assert whole.isascii() and "\t" not in whole
    assert not re.search(r"[ ]+$", whole, re.M)
    assert "\n\n\n" not in whole
    assert whole.endswith("\n") and not whole.endswith("\n\n")


# names of files stay in strings and comments

HOSTILE = (
    'a"; system("true"); "',
    "a*/ b /* c",
    "a\n#error injected\n",
    "a\r#error injected",
    "ends in a backslash \\",
    "backslash and blank \\ ",
    "??/ ??= ??(",
    "\\x41 \\101 \\u0041",
    "// comment",
    'R"(raw)"',
    "caf\u00e9 \u2028 \U0001f600",
    "\x00\x01\x1b[31m",
    "x" * 300,
    "../../etc/passwd",
    "__asm__(1)",
    "int",
    "7",
    "",
)


def hostile_program(name: str) -> Program:
    """A weight, an input, a result, a cache, a file and a source line of that name."""
    weight = leaf("weight", f"{name}.weight", Type("f32", (8, 32)))
    x = leaf("input", "x", Type("f32", (2, 32)))
    y = apply("linear", apply("silu", x), weight)
    notes = {y.node: Note((name,)), weight.node: Note((name,)), x.node: Note((name,))}
    graph = Graph((("y", y),), (), notes, ((f"{name}.model", name),))
    return Program(name or "nothing", graph)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_reaches_no_code(name: str) -> None:
    """Outside of strings and comments the text is what a harmless name gives."""
    made, plain = (compiled(hostile_program(n), Options("f32")).text for n in (name, "plain"))
    assert made.isascii()
    assert shape_of(made) == shape_of(plain)


def shape_of(text: str) -> list[str]:
    """The code without comments, strings and identifiers' spelling."""
    code = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', "\n".join(map(uncommented, text.splitlines())))
    return re.sub(r"\w+", "w", code).split()


def uncommented(line: str) -> str:
    """A line without its comment; strings keep their slashes."""
    assert not line.endswith("\\") or line.startswith(("#define", "  ")), line
    return re.sub(r'^((?:[^"/]|/(?!/)|"(?:[^"\\]|\\.)*")*)//.*', r"\1", line)


def test_hostile_names_build() -> None:
    """One binary for all: each as a tensor's name and a value's, the compiler's warnings errors."""
    x = leaf("input", "x", Type("f32", (2, 32)))
    results, notes = [], {}
    for at, name in enumerate(HOSTILE):
        weight = leaf("weight", f"{name}.{at}.weight", Type("f32", (8, 32)))
        y = apply("linear", x, weight)
        notes[y.node] = notes[weight.node] = Note((name,))
        results.append((f"y{at}", y))
    whole = compiled(Program(HOSTILE[0], Graph(tuple(results), (), notes)), Options("f32"))
    toolchain.build(whole.text, extra=("-O1", "-trigraphs", "-Wtrigraphs", "-fsyntax-only"))


@pytest.mark.parametrize("name", ["a%d.weight", "a.{}.weight", "%s", "}"])
def test_names_that_look_like_a_number_s_place_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=re.escape(repr(name))):
        split_name(name)


def test_the_escapers() -> None:
    assert tables._string('a"\n\u00e9') == '"a\\042\\012\\303\\251"'
    assert render.comment("a\n\\") == "a\\x0a"
    assert render.comment("a \\ \\ ") == "a"
    assert "??" not in render.comment("a????/")


# other compilers


def nvcc() -> None:
    try:
        toolchain.find_nvcc()
    except UserError as error:
        pytest.skip(str(error))


@pytest.mark.nvcc
@pytest.mark.parametrize(("name", "numerics"), [("qwen3moe", "int8"), ("transformer_block", "f32")])
def test_nvcc_compiles_it_without_a_warning(name: str, numerics: str) -> None:
    nvcc()
    toolchain.build(text_of(name, numerics), "cuda", ("sm_80", "sm_90a"))


@pytest.mark.nvrtc
@each_example
def test_nvrtc_compiles_the_device_part(name: str) -> None:
    if nvrtc.missing():
        pytest.skip(nvrtc.missing())
    for numerics in NUMERICS if name in MODELS else NUMERICS[:1]:
        assert nvrtc.compile_text(text_of(name, numerics))
