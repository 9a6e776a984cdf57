"""Emitted files as people read them: renewed by `pytest -k test_codegen_golden --bless`, as a diff.

Helpers and driver are left out: both have tests of their own, and change by themselves.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen import library
from codegen.driver import driver_text
from compiler.target import Options
from tests.golden_files import Golden
from tests.merged import compiled
from tests.small_models import program

GOLDEN = Path(__file__).parent / "golden"
FILES = {
    "norm_matmul_softmax": Options("f32"),
    "attention_cache": Options("int8"),
    "llama": Options("int8"),
}


def shown(name: str) -> str:
    """The `.cu` of an example, a model's with four layers, without helpers and driver."""
    made = compiled(program(name, 4), FILES[name])
    text = made.text
    first = min(at for at in (text.find(item.text) for item in library.items()) if at >= 0)
    head, rest = text[:first], text[text.index("// ---- kernels") :]
    body = rest.replace(driver_text(made.program.is_model).strip("\n"), "// (the driver)")
    return f"{head}// (helpers)\n\n{body}"


@pytest.mark.parametrize("name", FILES)
def test_the_emitted_file_is_as_it_was(name: str, golden: Golden) -> None:
    golden(GOLDEN / f"{name}.cu", shown(name))


def test_helpers_and_driver_are_left_out() -> None:
    text = shown("llama")
    assert text.count("// (the driver)") == text.count("// (helpers)") == 1
    assert "row_sum(const" not in text and "int main(" not in text
