"""The passes: what each makes of small programs (tests/passes/), the list of them, their limits.

A file tests/passes/<pass>/<topic>.model is an op program, `# options: numerics=int8 ...`, a line
`# =>` and the printed graph behind lower-numerics and that pass alone. A topic that starts with
`not-` is one where the pass must not fire. Renew with `--bless -k <topic>`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import passes
from compiler.diagnostics import UserError
from compiler.graph import Graph
from compiler.target import HOST, Options, Target
from compiler.verify import functions, verify
from frontend.elaborate import elaborate
from passes.saving import Saving, saving
from tests.golden_files import Golden, hold

FOLDER = Path(__file__).parent / "passes"
FILES = sorted(FOLDER.glob("*/*.model"))
NAMES = [p.name for p in passes.PASSES]
MARK = "# =>\n"


def program(text: str) -> tuple[Graph, Options]:
    """The graph and the options of a file's first part."""
    text = text.partition(MARK)[0]
    lines = [line for line in text.splitlines() if line.startswith("# options: ")]
    given = dict(word.split("=") for line in lines for word in line.split()[2:])
    return verify(elaborate(text).graph), Options(**given)


def through(name: str, graph: Graph, options: Options, target: Target = HOST) -> Graph:
    """Behind lower-numerics and the pass of that name."""
    hold = tuple(n for n in passes.names() if n != name)
    return verify(passes.run(graph, Options(options.numerics, options.kv, hold=hold), target))


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_file(path: Path, golden: Golden) -> None:
    source = path.read_text().partition(MARK)[0]
    graph = through(path.parent.name, *program(source))
    golden(path, f"{source}{MARK}{graph}")
    fires = path.parent.name in [fn.kind for fn in functions(graph)]
    if path.parent.name in passes.names():
        assert fires == (not path.stem.startswith("not-"))


def test_every_pass_has_files_and_every_folder_a_pass() -> None:
    assert sorted(p.name for p in FOLDER.iterdir()) == sorted(NAMES)
    for name in passes.names():
        stems = [p.stem for p in FILES if p.parent.name == name]
        assert any(s.startswith("not-") for s in stems), name
        assert any(not s.startswith("not-") for s in stems), name
    assert all(MARK in p.read_text() for p in FILES)


def test_the_list() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert NAMES[0] == "lower-numerics"
    assert passes.names() == tuple(NAMES[1:])
    assert all(p.doc and (p.saves or p.kind == "lowering") for p in passes.PASSES)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("add-nrom", r"no pass add-nrom \(did you mean add-norm\?\); there are glu, "),
        ("lower-numerics", "lower-numerics always runs; what can be held back: glu, "),
    ],
)
def test_hold_takes_names_of_fusions_alone(name: str, says: str) -> None:
    graph, _ = program("input x: f32[4]\nreturn silu(x)\n")
    with pytest.raises(UserError, match=says):
        passes.run(graph, Options(hold=("add-norm", name)), HOST)


def test_on_pass_is_told_of_each_pass_that_ran() -> None:
    graph, _ = program("input x: f32[4, 64]\nreturn exp(silu(x))\n")
    seen: list[tuple[str, Graph, Graph]] = []
    done = passes.run(graph, Options(hold=("add-norm",)), HOST, lambda *step: seen.append(step))
    assert [name for name, _, _ in seen] == [n for n in NAMES if n != "add-norm"]
    assert seen[0][1] is graph and seen[-1][2] is done
    assert all(a[2] is b[1] for a, b in pairwise(seen))


NORM = """
input x: f32[4, 256]
input y: f32[4, 256]
input w: {weight}[64, 256]
return linear(rmsnorm(x + y, eps=1e-5), w)
"""


@pytest.mark.parametrize(
    ("name", "weight"), [("add-norm", "f32"), ("norm-quant", "q8_0"), ("add-norm-quant", "q8_0")]
)
def test_a_norm_is_fused_where_a_block_can_keep_its_row(name: str, weight: str) -> None:
    graph, options = program(NORM.format(weight=weight))
    for shared, kinds in ((1024, [name]), (1023, [])):
        made = through(name, graph, options, Target("host", 2, shared))
        assert [fn.kind for fn in functions(made)] == kinds


def test_dump_makes_members_with_names_results() -> None:
    text = "input x: f32[4, 64]\ny = silu(x)\nz = neg(exp(y))\nreturn z\n"
    graph, _ = program(text)
    plain, dumped = (passes.run(graph, Options(dump=d), HOST) for d in (False, True))
    names = [[g.name(n.result(i)) for n in g.nodes() if n.op == "call" for i in range(len(n.types))]
             for g in (plain, dumped)]  # fmt: skip
    assert names == [["z"], ["y", "z"]]


def test_dump_keeps_a_named_projection_before_its_bias() -> None:
    text = "input x: f32[4, 64]\ninput w: f32[8, 64]\ninput b: f32[8]\n{}\n"
    named, _ = program(text.format("y = linear(x, w)\nreturn y + b"))
    unnamed, _ = program(text.format("return linear(x, w) + b"))
    for graph, fused in ((named, 0), (unnamed, 1)):
        made = passes.run(graph, Options(dump=True), HOST)
        assert len(functions(made)) == fused
        assert len(functions(passes.run(graph, Options(), HOST))) == 1


def test_saving_counts_launches_and_bytes() -> None:
    text = "input a: f32[4, 64]\ninput b: f32[64]\nreturn silu(a) * b + 1.0\n"
    (fn,) = functions(passes.run(program(text)[0], Options(), HOST))
    values = 4 * 64 * 4
    assert saving(fn) == Saving(launches=2, bytes=4 * values)
    assert str(saving(fn)) == f"saves 2 launches and {4 * values} bytes a row"


def test_saving_counts_what_is_read_again_and_what_is_stored_anyway() -> None:
    text = "input a: f32[4, 64]\nb = silu(a)\nreturn b * a + a, b\n"
    (fn,) = functions(passes.run(program(text)[0], Options(), HOST))
    values = 4 * 64 * 4  # b is stored and read by nobody, the product is neither, a is read once
    assert saving(fn) == Saving(launches=2, bytes=(1 + 2 + 2) * values)


def test_a_golden_file_that_differs_fails_with_the_diff_until_it_is_renewed(tmp_path: Path) -> None:
    path, shown = tmp_path / "topic.model", list[str]()
    with pytest.raises(AssertionError, match=r"\+b\n\(renew it with --bless -k topic"):
        hold(path, "a\nb\n")
    hold(path, "a\nb\n", shown.append)
    hold(path, "a\nb\n")
    assert len(shown) == 1 and shown[0].endswith("+a\n+b")


@pytest.mark.parametrize(
    ("args", "ci", "says"),
    [([], "", "--bless needs -k"), (["-k", "x"], "1", "--bless is for people")],
)
def test_bless_is_refused(args: list[str], ci: str, says: str) -> None:
    command = [sys.executable, "-m", "pytest", "--bless", "--collect-only", __file__, *args]
    done = subprocess.run(
        command, env={**os.environ, "CI": ci}, capture_output=True, text=True, check=False
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert says in done.stderr
