"""Cases that share a translation unit: planned as one program, built once, held against the VM."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codegen import plan as planning
from codegen import render
from codegen.kernel import Refusal
from codegen.plan import Plan
from compiler import pipeline
from compiler.api.in_process import Resident, Rows
from compiler.api.running import results
from compiler.diagnostics import ProgramError
from compiler.fuzz.draw import Array
from compiler.fuzz.generate import Step
from compiler.fuzz.merge import ROWS_INPUT, merged, own_name
from compiler.fuzz.reference import Lowered
from compiler.graph import Value
from compiler.program import Program
from compiler.target import Options, Target
from compiler.types import ROWS, WANTED
from runtime import toolchain
from runtime.compare import Difference, difference
from runtime.device import Machine

MOST_WANTED = 8


@dataclass(frozen=True)
class Unit:
    """Programs as one, planned. inputs: all of theirs; steps: how T rows are cut, if they are."""

    members: tuple[Lowered, ...]
    program: Program
    plan: Plan
    inputs: Mapping[str, Array]
    steps: tuple[Step, ...]

    @property
    def text(self) -> str:
        return render.render(self.plan)


def refused(member: Lowered, target: Target) -> str:
    """Why the target cannot compute a program, "" where it can."""
    try:
        planned((member,), target, True)
    except (ProgramError, Refusal) as error:
        return str(error).splitlines()[0]
    return ""


def planned(members: Sequence[Lowered], target: Target, resident: bool) -> Unit:
    """One unit of these. ProgramError, Refusal where the target cannot compute one of them.

    resident: it will run in process, where weights are apart from the inputs.
    """
    case = members[0].case
    programs = [m.case.program.with_graph(m.fused) for m in members]
    apart = [m.case.weights if resident else frozenset[str]() for m in members]
    whole = merged(programs, case.name, apart)
    whole = whole.with_graph(pipeline.named(whole.graph))
    limits = case.options
    options = Options("f32", "", limits.max_rows, MOST_WANTED, (), limits.dump)
    plan = planning.plan(whole, target, options, pipeline.names_of(whole.graph))
    inputs: dict[str, Array] = {}
    for number, m in enumerate(members):
        for declared in m.case.program.inputs:
            rows = declared.type.dtype == "rows"
            name = ROWS_INPUT if rows else own_name(number, declared.name)
            inputs[name] = m.case.inputs[declared.name]
    return Unit(tuple(members), whole, plan, inputs, case.steps)


def run_binary(unit: Unit, binary: Path, flags: Sequence[str] = ()) -> dict[str, Array]:
    """The results of the unit's binary, driver and all."""
    with tempfile.TemporaryDirectory(prefix="monocu.") as folder:
        return results(binary, unit.inputs, Path(folder), flags)


def build_binary(unit: Unit, target: Target, extra: Sequence[str] = ()) -> Path:
    return toolchain.build(unit.text, target.name, extra=extra)


def open_unit(unit: Unit, machine: Machine) -> Resident:
    """The unit's kernels on a machine, for all of its steps."""
    counts = [(s.rows, len(s.wanted)) for s in unit.steps] or [whole_count(unit)]
    return Resident(unit.plan, machine, counts, places(unit), unit.inputs)


def whole_count(unit: Unit) -> tuple[int, int]:
    """T and R of a program of fixed rows: all of its rows are wanted."""
    count = len(places(unit))
    return count, count


def places(unit: Unit) -> Array:
    """The rows; one where a program of fixed rows has none, for so its `.cu` is laid out."""
    read = unit.steps or ROWS_INPUT in unit.inputs
    return unit.members[0].case.places if read else np.zeros((1, 2), np.int32)


def run_resident(unit: Unit, resident: Resident) -> dict[str, Array]:
    """The results of all steps, rows one after another."""
    pairs = places(unit)
    whole = Step(len(pairs), tuple(range(len(pairs))))
    found: list[dict[str, Array]] = []
    at = 0
    for step in unit.steps or (whole,):
        part = slice(at, at + step.rows)
        rows = Rows(pairs[part, 0].tolist(), pairs[part, 1].tolist(), step.wanted)
        found.append(resident.step(rows, _inputs(unit, part)))
        at += step.rows
    resident.check_guards()
    values = dict(unit.program.graph.results)
    return {name: joined(values[name], [f[name] for f in found]) for name in values}


def _inputs(unit: Unit, part: slice) -> dict[str, Array]:
    """The inputs of a step: of those of T rows its own."""
    types = {i.name: i.type for i in unit.program.inputs}
    return {
        name: unit.inputs[name][part] if t.shape[:1] == (ROWS,) else unit.inputs[name]
        for name, t in types.items()
    }


def joined(value: Value, found: Sequence[Array]) -> Array:
    """A result over all steps; one without rows is the same in each."""
    if value.type.shape[:1] in ((ROWS,), (WANTED,)):
        return np.concatenate(found)
    for other in found[1:]:
        assert difference("", found[0], other) is None, "a value without rows changes with the step"
    return found[-1]


def differences(
    unit: Unit, wanted: Sequence[Mapping[str, Array]], given: Mapping[str, Array]
) -> dict[int, Difference]:
    """The first difference of each member that has one; `wanted`: what each must give."""
    out: dict[int, Difference] = {}
    for number, results_ in enumerate(wanted):
        for name, array in results_.items():
            found = difference(name, array, given[own_name(number, name)])
            if found is not None:
                out.setdefault(number, found)
    return out
