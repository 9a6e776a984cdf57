"""Every kernel waits for the launches before it: before any return, any write, and any read but of
weights and of a step's counts. The host target runs launches one by one, so that text must tell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import examples
from codegen import render
from compiler.target import NUMERICS, Options
from tests.merged import Built, compiled, groups, merged
from tests.op_programs import named_programs
from tests.samples import program_of
from tests.small_models import program
from tests.test_fused_kernels import PROGRAMS

TEMPLATES = Path(render.__file__).parent / "templates/kernels"
KERNEL = re.compile(
    r"__global__ void (?:(?:CLUSTERS_OF|__launch_bounds__)\(.*?\) )*(\w+)\((.*?)\) \{\n(.*?)^\}",
    re.M | re.S,
)
WAIT = "grid_dependency_wait();"
COUNTS = re.compile(r"step->(?:rows|wanted)\b")  # set by the driver, moved by no launch
# A step of one row: its first launch waits for the step before, so that the Step table and what
# earlier steps left in caches are there; a block without a page makes nothing and ends at once.
ONE_ROW = "row_attention"
OF_EARLIER_STEPS = ("step", "keys", "values")
MAY_COME_FIRST = re.compile(
    r"^  (?:each_value<HD, 32>\(\[&\]\(int i, int d\) \{ (\w+)_near\[i\] = \1\[d\]; \}\)"
    r"|fill_turns\(.*\)|if \(int\(blockIdx.z\) >= blocks\) return);"
)


@cache
def sources() -> tuple[Built, ...]:
    """Programs in which every kernel's template is."""
    return tuple(_sources())


def _sources() -> Iterator[Built]:
    for numerics in NUMERICS:
        for name in examples.names():
            yield compiled(program(name), Options(numerics))
        texts = [program_of(t) for kinds in PROGRAMS.values() for t in kinds]
        for unit in (*groups(texts), *(groups(named_programs()) if numerics == "f32" else ())):
            yield compiled(merged(unit), Options(numerics))


@cache
def kernels() -> dict[str, tuple[str, str]]:
    """Parameters and body of each kernel; those of equal text once."""
    parts = (
        b.text.split("// ---- kernels")[1].split("#ifndef __CUDACC_RTC__")[0] for b in sources()
    )
    found = {m[0]: m for part in parts for m in KERNEL.finditer(part)}
    return {f"{i} {m[1]}": (m[2], m[3]) for i, m in enumerate(found.values())}


def faults(params: str, body: str, of: str = "") -> list[str]:
    """Lines that come too early, and "no wait" where the end can be reached without one."""
    names = [p.split()[-1].lstrip("*") for p in params.split(", ") if "const uint8_t*" not in p]
    if ONE_ROW in of:
        names = [n for n in names if n not in OF_EARLIER_STEPS]
    early = re.compile(rf"(?<![.\w])(?:{'|'.join(names)})\b(?!\()")
    found: list[str] = []
    waited = [False]  # of each open block
    for line in body.splitlines():
        if line.strip().startswith("}"):
            waited.pop()
        first = ONE_ROW in of and MAY_COME_FIRST.match(line)
        if not waited[-1] and WAIT not in line and not first:
            code = COUNTS.sub("", line.split("//")[0])
            if early.search(code) or "return" in code:
                found.append(line.strip())
        if line.strip() == WAIT:
            waited[-1] = True
        if line.rstrip().split("  //")[0].endswith("{"):
            waited.append(waited[-1])
    return found if waited == [True] else [*found, "no wait"]


def test_every_kernel_waits_before_it_reads_or_ends() -> None:
    assert len(kernels()) > 100
    wrong = {name: found for name, kernel in kernels().items() if (found := faults(*kernel, name))}
    assert any(ONE_ROW in name for name in kernels())
    assert not wrong, wrong


def test_every_template_is_there() -> None:
    there = {kernel.template for built in sources() for kernel in built.plan.kernels.values()}
    assert there == {path.name for path in TEMPLATES.iterdir()}


def test_what_reads_tiles_begins_when_they_are_made() -> None:
    """Weights are read before the wait; those of an op program are made by a launch."""
    made = {built.plan.makes_tiles for built in sources()}
    assert made == {True, False}
    for built in sources():
        assert built.plan.makes_tiles == ("shared, false}" in built.text)


GOOD = "  const int rows = step->rows;\n  if (r >= rows) return grid_dependency_wait();\n" + (
    "  const auto w = first(weight);\n  grid_dependency_wait();\n  y[0] = x[0];\n"
)
PARAMS = "const Step* step, const float* x, const uint8_t* weight, float* y"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("  grid_dependency_wait();\n", "", "y[0] = x[0];"),
        ("return grid_dependency_wait();", "return;", "if (r >= rows) return;"),
        ("first(weight)", "first(x)", "const auto w = first(x);"),
        ("step->rows", "step->pos[0]", "const int rows = step->pos[0];"),
        ("  y[0] = x[0];\n", "", ""),
    ],
)
def test_what_is_refused(old: str, new: str, says: str) -> None:
    assert faults(PARAMS, GOOD) == []
    found = faults(PARAMS, GOOD.replace(old, new))
    assert found[:1] == ([says] if says else [])
