"""The README says what is so: the program, the excerpt, the verbs and their flags."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import examples
from compiler import pipeline
from compiler.command.main import VERBS, load
from compiler.command.parser import Parser
from compiler.diagnostics import EXIT_CODES
from compiler.target import HOST, Options
from runtime.synthetic import PRESETS, write_synthetic
from tests.golden_files import Golden

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@cache
def emitted() -> pipeline.Compiled:
    """Qwen3-0.6B's shapes, of whose layers and words few are enough."""
    with TemporaryDirectory() as folder:
        dims = replace(PRESETS["qwen3-0.6b"], layers=2, vocab=256)
        path = write_synthetic(Path(folder) / "qwen3.gguf", dims, "q8_0")
        return pipeline.compile_model(pipeline.load(path), Options(), HOST)


def test_the_program_is_the_example() -> None:
    assert examples.find("qwen3").read_text().rstrip() in README


def kernel(text: str, name: str) -> str:
    """An emitted kernel with the comments over it."""
    found = re.search(rf"(?:^//.*\n)+template.*\n.* {name}\(.*\n(?:[^}}].*\n)*}}\n", text, re.M)
    assert found
    return found[0]


def test_the_excerpt_is_what_is_emitted(golden: Golden) -> None:
    """`--bless -k excerpt` brings the README up to date."""
    excerpt = kernel(emitted().text, "glu_ffn_gate_ffn_up")
    assert len(excerpt.splitlines()) > 30
    text = re.sub(r"(?s)(?<=```c\+\+\n).*?(?=```)", lambda _: excerpt, README)
    count = f"has {len(emitted().plan.kernels)} kernels"
    golden(ROOT / "README.md", re.sub(r"has \d+ kernels", count, text))


def test_every_statement_of_the_program_stands_over_a_kernel() -> None:
    text = examples.find("qwen3").read_text()
    comments = [line for line in emitted().text.splitlines() if line.startswith("// qwen3.model:")]
    statements = [line.split("  #")[0].strip() for line in text.splitlines()]
    body = statements[next(i for i, s in enumerate(statements) if s.startswith("def")) :]
    computed = [s for s in body if " = " in s or s.startswith("return")]
    assert len(computed) >= 11
    for statement in computed:
        assert any(line.endswith(f"  {statement}") for line in comments), statement


def test_verbs_and_flags_exist() -> None:
    for verb in VERBS:
        assert f"`monocu {verb}" in README, verb
        parser = Parser(verb, "")
        load(verb).arguments(parser)
    for line in README.splitlines():
        verbs = re.match(r"\| `monocu (\w+)", line)
        for flag in re.findall(r"--[a-z-]+[0-9]*", line) if verbs else ():
            parser = Parser(verbs[1], "")
            load(verbs[1]).arguments(parser)
            assert flag in parser.format_help(), (verbs[1], flag)


def test_exit_codes_are_all_there() -> None:
    (line,) = re.findall(r"Exit codes, .*?\n.*?\n.*?\.", README)
    assert all(re.search(rf"\b{code} \w", line) for code in EXIT_CODES)
