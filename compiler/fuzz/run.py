"""A whole fuzz run: units over processes, totals as they come, failures made small and kept."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from compiler.fuzz import spell
from compiler.fuzz.check import How, Report, check, check_numbers, unit_numbers
from compiler.fuzz.generate import UNIT, case_of
from compiler.fuzz.known import known_units
from compiler.fuzz.shrink import shrink

SHRUNK = 8  # failures that are made small, at most: most are of one cause


@dataclass(frozen=True)
class Job:
    """What to run: case numbers first .. first + count - 1 of a seed, on these targets.

    known: the samples of ops and the examples before them. quick: of every five units four spend
    less on compilation for GPUs than what ships. isolated: see check.How.
    """

    seed: int
    first: int
    count: int
    targets: tuple[str, ...]
    numerics: str = "all"
    seconds: float = 0.0  # stop starting units then; 0: never
    workers: int = 1
    known: bool = False
    quick: bool = False
    isolated: bool = True


Work = Sequence[int] | str  # numbers of a unit, or the number of a known one


def run(job: Job, told: Callable[[Report, Report], None] = lambda part, whole: None) -> Report:
    """All units; `told` hears of each unit's report and the totals so far."""
    whole, until = Report(), time.monotonic() + (job.seconds or 1e9)
    units = iter(_units(job))
    if job.workers == 1 and not job.isolated:
        for unit in units:
            if time.monotonic() < until:
                _tell(_unit(job, unit), whole, told)
        return whole
    first = islice(units, job.workers)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(job.workers, spawn) as pool:
        waiting = {pool.submit(_unit, job, unit) for unit in first}
        while waiting:
            finished = next(as_completed(waiting))
            waiting.remove(finished)
            _tell(finished.result(), whole, told)
            unit = next(units, None) if time.monotonic() < until else None
            if unit is not None:
                waiting.add(pool.submit(_unit, job, unit))
    return whole


def _tell(part: Report, whole: Report, told: Callable[[Report, Report], None]) -> None:
    whole.add(part)
    told(part, whole)


def _units(job: Job) -> list[Work]:
    known = [str(at) for at in range(len(known_units()))] if job.known else []
    return [*known, *unit_numbers(job.first, job.count)]


def _unit(job: Job, unit: Work) -> Report:
    if isinstance(unit, str):
        return check(known_units()[int(unit)], job.targets, how=How(job.isolated, job.quick))
    how = How(job.isolated, job.quick and unit[0] // UNIT % 5 > 0)
    return check_numbers(job.seed, unit, job.targets, job.numerics, how)


def keep(job: Job, name: str, folder: Path | None) -> tuple[str, Path | None]:
    """A failing case, by its name, made small: its text, and where it is kept."""
    seed, number = (int(part) for part in name.split("_")[1:])
    small = shrink(case_of(seed, number, job.numerics), job.targets)
    if small is None:
        return f"{name} does not fail when it runs alone", None
    case = spell.static(small.case)
    if case is None or case.steps:
        return f"{small.failure}\n{small.case.program.graph}", None
    path = spell.write(case, folder, str(small.failure)) if folder else None
    return spell.spelled(case, str(small.failure)), path
