"""The house's laws: who imports whom, how large things are, what no tracked file says."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from compiler import knobs

ROOT = Path(__file__).parents[1]
STAGES = ("compiler", "frontend", "passes", "codegen", "runtime")
# What nothing below may import.
TOP = ("compiler.pipeline", "compiler.api", "compiler.command", "compiler.fuzz")
OURS = (*STAGES, "examples", "monocu", "tests")

# What each folder may import of ours, by prefix of the module's name, besides itself.
MAY_IMPORT = {
    "compiler": (),
    "frontend": ("compiler",),
    "passes": ("compiler", "frontend.parser", "frontend.tree"),
    "codegen": ("compiler",),
    "runtime": ("compiler",),
    "examples": ("compiler",),
}
FILE_LINES, TEMPLATE_LINES, FUNCTION_LINES, MEAN_TOKENS = 300, 150, 50, 11


def tracked(*suffixes: str) -> list[Path]:
    """Files of the repository, with those that are about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in names.splitlines() if name.endswith(suffixes or "")]
    return [path for path in paths if path.is_file()]


PYTHON = tracked(".py")
SOURCES = [p for p in PYTHON if p.relative_to(ROOT).parts[0] in (*STAGES, "examples")]
TEMPLATES = tracked(".j2")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports_of(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(module, line) of every import, `from compiler import text` as compiler.text."""
    for n in ast.walk(tree):
        if isinstance(n, ast.Import):
            yield from ((alias.name, n.lineno) for alias in n.names)
        elif isinstance(n, ast.ImportFrom):
            assert n.level == 0 and n.module, "imports are absolute"
            yield from ((f"{n.module}.{alias.name}", n.lineno) for alias in n.names)


def is_top(module: str) -> bool:
    return any(module == top or module.startswith(f"{top}.") for top in TOP)


def forbidden(module: str, imported: str) -> bool:
    """Whether the house forbids `module` to import `imported`."""
    first, there = module.partition(".")[0], imported.partition(".")[0]
    if there not in OURS or is_top(module):
        return there == "tests"
    if is_top(imported):
        return True
    allowed = (first, *MAY_IMPORT[first])
    return not any(imported == a or imported.startswith(f"{a}.") for a in allowed)


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_stage_imports_what_it_may(path: Path) -> None:
    module = module_of(path)
    wrong = [f"{name_of(path)}:{line} imports {name}"
             for name, line in imports_of(ast.parse(path.read_text()))
             if forbidden(module, name)]  # fmt: skip
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("compiler.graph", "runtime.vm"),
        ("compiler.graph", "compiler.pipeline.load"),
        ("frontend.elaborate", "passes.run"),
        ("passes.rewrite", "frontend.elaborate.elaborate"),
        ("codegen.plan", "frontend.parser.parse"),
        ("runtime.vm", "compiler.api.vm"),
        ("compiler.pipeline", "tests.samples"),
    ],
)
def test_the_law_refuses(module: str, imported: str) -> None:
    assert forbidden(module, imported)


@pytest.mark.parametrize("path", PYTHON, ids=name_of)
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    lines = text.count("\n")
    assert lines <= FILE_LINES, f"{name_of(path)} has {lines} lines, at most {FILE_LINES}"
    long = [
        f"{name_of(path)}:{n.lineno} {n.name} has {length(n)} lines, at most {FUNCTION_LINES}"
        for n in ast.walk(ast.parse(text))
        if isinstance(n, ast.FunctionDef) and length(n) > FUNCTION_LINES
    ]
    assert not long, "\n".join(long)


def length(n: ast.FunctionDef) -> int:
    assert n.end_lineno is not None
    return n.end_lineno - n.lineno + 1


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_templates_stay_small(path: Path) -> None:
    lines = path.read_text().count("\n")
    assert lines <= TEMPLATE_LINES, f"{name_of(path)} has {lines} lines, at most {TEMPLATE_LINES}"


def density(text: str) -> float:
    """Tokens a line of code: what keeps short files from being dense ones."""
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    found = [t for t in tokenize.generate_tokens(io.StringIO(text).readline)
             if t.type not in (*skipped, tokenize.ENDMARKER)]  # fmt: skip
    lines = {line for t in found for line in range(t.start[0], t.end[0] + 1)}
    return len(found) / max(1, len(lines))


def test_code_is_no_denser_than_a_person_reads() -> None:
    by_stage = {stage: [p for p in SOURCES if p.relative_to(ROOT).parts[0] == stage]
                for stage in STAGES}  # fmt: skip
    mean = {s: density("\n".join(p.read_text() for p in paths)) for s, paths in by_stage.items()}
    dense = {s: round(m, 2) for s, m in mean.items() if m > MEAN_TOKENS}
    assert not dense, f"tokens a line of code, at most {MEAN_TOKENS}: {dense}"


def test_every_module_says_what_it_holds() -> None:
    texts = {name_of(p): p.read_text() for p in SOURCES}
    silent = [n for n, t in texts.items() if t.strip() and not ast.get_docstring(ast.parse(t))]
    assert not silent, silent


def test_environment_variables_are_read_in_one_place() -> None:
    knob = re.compile(r"\bos\.(environ|getenv)\b")
    allowed = ("compiler/knobs.py", "runtime/toolchain.py")  # the latter hands a cleaned copy on
    readers = [name_of(p) for p in SOURCES if knob.search(p.read_text())]
    assert set(readers) <= set(allowed), readers


def test_every_knob_is_documented_and_used() -> None:
    table = (ROOT / "README.md").read_text()
    source = "\n".join(p.read_text() for p in SOURCES if p.name != "knobs.py")
    for variable, knob in vars(knobs).items():
        if isinstance(knob, knobs.Knob):
            assert knob in knobs.KNOBS, f"{knob.name} is not in the table"
            assert knob.name in table, f"{knob.name} is not in the README"
            assert f"knobs.{variable}" in source, f"{knob.name} is read by nothing"


# Spelled so that this file does not hold them.
MACHINE = re.compile(
    "|".join(
        [
            "/wo" + "rk/",
            "/ro" + "ot/",
            "/tmp" + "/w/",
            "py" + r"pi\.org",
            "pythonho" + "sted",
            "registry.npm" + "js",
            "deb.deb" + "ian",
        ]
    )
)


def test_no_tracked_file_names_this_machine_or_a_registry() -> None:
    found: list[str] = []
    for path in tracked():
        try:
            lines = path.read_text().splitlines()
        except UnicodeDecodeError:
            continue
        found += [f"{name_of(path)}:{i}" for i, line in enumerate(lines, 1) if MACHINE.search(line)]
    assert not found, found


def test_packages_are_all_listed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = {module_of(p) for p in SOURCES if p.name == "__init__.py"}
    assert set(settings["packages"]) == found | {"monocu"}
