"""Holding cases against the VM: every way to run them must give the bits of the unfused program.

Ways: the VM on the fused graph; the host, by the whole binary or in process, with several orders
of threads; CUDA in process; its twin, by g++ what a GPU would be told. A failure is one line of
text; where a unit breaks as a whole it is cut in halves until the members that break it are found.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from codegen.kernel import Refusal
from compiler.diagnostics import ProgramError
from compiler.fuzz.apart import Died, apart, brief
from compiler.fuzz.draw import Array
from compiler.fuzz.generate import UNIT, Case, case_of
from compiler.fuzz.reference import Lowered, expected, lowered
from compiler.fuzz.unit import (
    Unit,
    build_binary,
    differences,
    open_unit,
    planned,
    refused,
    run_binary,
    run_resident,
)
from compiler.target import CUDA, HOST, Target
from runtime import nvrtc
from runtime.compare import difference
from runtime.device import Cuda, Machine
from runtime.host_device import HostDevice

TARGETS: Mapping[str, Target] = {"host": HOST, "cuda": CUDA, "twin": CUDA}
QUICK = ("-O0",)  # compiling takes longer than running
GENERATING = "generating"  # the way of a failure before there is a program
ENOUGH = 5  # failures of a unit: where everything breaks, the rest would say the same


@dataclass(frozen=True)
class How:
    """How units are run. isolated: in a process of their own, so that a fault ends no other;
    quick: NVRTC spends half the time and optimizes less than what ships."""

    isolated: bool = True
    quick: bool = False


@dataclass(frozen=True)
class Failure:
    """What went wrong with a case: where it was found, and what was seen."""

    case: str
    way: str
    text: str

    def __str__(self) -> str:
        return f"{self.case}, {self.way}: {self.text}"

    @property
    def has_case(self) -> bool:
        """Whether there is a program to keep: not where making one failed."""
        return self.way != GENERATING


@dataclass
class Report:
    """Totals. compared: values (numbers) held against the VM's, over all ways."""

    programs: int = 0
    compared: int = 0
    launches: int = 0
    fired: Counter[str] = field(default_factory=Counter[str])
    ops: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    failures: list[Failure] = field(default_factory=list[Failure])

    def add(self, other: Report) -> None:
        self.programs += other.programs
        self.compared += other.compared
        self.launches += other.launches
        self.fired += other.fired
        self.ops += other.ops
        self.refused += other.refused
        self.failures += other.failures


@dataclass(frozen=True)
class Member:
    """A lowered case and what it must give."""

    lowered: Lowered
    wanted: Mapping[str, Array]


def check_numbers(
    seed: int,
    numbers: Sequence[int],
    targets: Sequence[str],
    numerics: str = "all",
    how: How = How(),
) -> Report:
    """The cases of a seed with these numbers, all of one unit."""
    report = Report()
    cases: list[Case] = []
    for number in numbers:
        try:
            cases.append(case_of(seed, number, numerics))
        except Exception as error:
            name = f"fuzz_{seed}_{number}"
            report.failures.append(Failure(name, GENERATING, brief(error)))
    return check(cases, targets, report, how)


def unit_numbers(first: int, count: int) -> list[range]:
    """Case numbers first .. first + count - 1, cut where units end."""
    edges = [first, *range((first // UNIT + 1) * UNIT, first + count, UNIT), first + count]
    return [range(a, b) for a, b in pairwise(edges) if a < b]


def check(
    cases: Sequence[Case],
    targets: Sequence[str],
    report: Report | None = None,
    how: How = How(),
) -> Report:
    """Cases that share rows, on the VM and every target."""
    report = report or Report()
    report.programs += len(cases)
    wanted: dict[str, Mapping[str, Array]] = {}
    for name in targets or ("host",):
        members = [m for c in cases if (m := _member(c, TARGETS[name], wanted, report))]
        if name in targets and members:
            _on_target(members, name, report, how)
    return report


def _member(
    case: Case, target: Target, wanted: dict[str, Mapping[str, Array]], report: Report
) -> Member | None:
    """The case lowered for a target, its fused graph held against the plain one on the VM."""
    try:
        made = lowered(case, target)
        if case.name not in wanted:
            wanted[case.name] = expected(case, made.plain)
            report.fired += made.fired
            report.ops += Counter(n.op for n in case.program.graph.nodes())
        fused = expected(case, made.fused)
    except Exception as error:
        report.failures.append(Failure(case.name, f"passes for {target.name}", brief(error)))
        return None
    for name, array in wanted[case.name].items():
        report.compared += array.size
        found = difference(name, array, fused[name])
        if found is not None:
            report.failures.append(Failure(case.name, f"passes for {target.name}", str(found)))
            return None
    return Member(made, wanted[case.name])


def _on_target(members: Sequence[Member], name: str, report: Report, how: How) -> None:
    able: list[Member] = []
    for m in members:
        try:
            why = refused(m.lowered, TARGETS[name])
        except Exception as error:
            report.failures.append(Failure(m.lowered.case.name, f"plan for {name}", brief(error)))
            continue
        if why:
            report.refused[why] += 1
        else:
            able.append(m)
    if able:
        _run(able, name, report, how)


def _run(members: Sequence[Member], name: str, report: Report, how: How) -> None:
    """Runs the members as one unit; where it breaks, its halves, until enough is seen."""
    if len(report.failures) >= ENOUGH:
        return
    try:
        found = _answer(lambda: _outcome(members, name, how), how)
    except Died as error:
        if len(members) > 1:
            half = len(members) // 2
            _run(members[:half], name, report, how)
            _run(members[half:], name, report, how)
        else:
            report.failures.append(Failure(members[0].lowered.case.name, name, str(error)))
        return
    report.launches += found.launches
    report.compared += found.compared
    report.failures += found.failures


def _answer(function: Callable[[], Report], how: How) -> Report:
    """The function's answer. Died: there is none."""
    if how.isolated:
        return apart(function)
    try:
        return function()
    except Exception as error:
        raise Died(brief(error)) from error


def _outcome(members: Sequence[Member], name: str, how: How) -> Report:
    """Every way to run a unit on a target."""
    report = Report()
    target = TARGETS[name]
    resident = name != "host" or bool(members[0].lowered.case.steps)
    try:
        unit = planned([m.lowered for m in members], target, resident)
    except (ProgramError, Refusal) as error:
        raise RuntimeError(f"refused as a whole only: {error}") from None
    report.launches = len(unit.plan.launches)
    seen: dict[int, str] = {}
    for way, results in _ways(unit, name, resident, how):
        wanted = [m.wanted for m in members]
        report.compared += sum(a.size for w in wanted for a in w.values())
        for number, found in differences(unit, wanted, results).items():
            if number not in seen:
                seen[number] = way
                case = members[number].lowered.case.name
                report.failures.append(Failure(case, way, str(found)))
    return report


def _ways(unit: Unit, name: str, resident: bool, how: How) -> list[tuple[str, Mapping[str, Array]]]:
    """(way, results) of each; threads in order and in orders drawn by the case's name."""
    orders = (0, *Random(unit.members[0].case.name).sample(range(1, 10000), 2))
    if not resident:
        binary = build_binary(unit, TARGETS[name], QUICK)
        return [
            (f"{name} binary, seed {s}", run_binary(unit, binary, ("--host-seed", str(s))))
            for s in orders
        ]
    orders = orders[:2] if name == "host" else orders[1:2]
    machines: Sequence[Machine] = [HostDevice(s, QUICK) for s in orders]
    if name == "cuda":
        machines = [Cuda(extra=nvrtc.quick_flags() if how.quick else ())]
    out: list[tuple[str, Mapping[str, Array]]] = []
    for machine in machines:
        opened = open_unit(unit, machine)
        out.append((f"{machine.name} in process", run_resident(unit, opened)))
        opened.close()
    return out


def available(name: str) -> str:
    """Why cases cannot run on a target here, "" where they can."""
    from runtime import device, toolchain

    if name == "cuda":  # asked apart: a process that has met the driver cannot fork ones that do
        return apart(device.missing)
    found = toolchain.described(toolchain.find_host)
    return found if found.startswith("none") else ""


def workers() -> int:
    return len(os.sched_getaffinity(0))
