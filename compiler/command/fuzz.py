"""monocu fuzz: random programs whose bits must be the same everywhere."""

from __future__ import annotations

import argparse
from pathlib import Path

from compiler.command.parser import listed, whole
from compiler.target import NUMERICS

DOC = """Makes random programs of a seed and runs them on the reference VM with every fusion held
back, on the VM fused, and on each target, which must all give the same bits. Case k of a seed is
the same case whatever the count. Failures are made small and printed as a .model, which --rerun
takes."""
WAYS = ("vm", "host", "cuda", "twin")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=whole(0), default=1, metavar="S", help="the seed (1)")
    parser.add_argument("--n", type=whole(1), default=100, metavar="N", help="programs (100)")
    parser.add_argument(
        "--first", type=whole(0), default=0, metavar="K", help="begin with case K of the seed (0)"
    )
    parser.add_argument(
        "--target",
        type=listed,
        default=("vm", "host"),
        metavar="NAMES",
        help="vm (always), host, cuda, twin (cuda's launches by g++), between commas (vm,host)",
    )
    parser.add_argument("--numerics", choices=("all", *NUMERICS), default="all", help="(all)")
    parser.add_argument(
        "--no-shrink", dest="shrink", action="store_false", help="leave failures as they are"
    )
    parser.add_argument("--keep", metavar="FOLDER", help="write failures there, as .model files")
    parser.add_argument("--jobs", type=whole(1), metavar="COUNT", help="processes (all cores)")
    parser.add_argument(
        "--seconds", type=whole(1), metavar="S", help="begin nothing new after so long"
    )
    parser.add_argument("--rerun", metavar="FILE", help="run one kept failure alone")


def run(args: argparse.Namespace) -> int:
    from compiler.command import show
    from compiler.diagnostics import DIFFERENCES, OK
    from compiler.fuzz import run as fuzz
    from compiler.fuzz.check import Report, workers

    targets = targets_of(args.target)
    if args.rerun is not None:
        return rerun(Path(args.rerun), targets)
    jobs = args.jobs or workers()
    job = fuzz.Job(
        args.seed, args.first, args.n, targets, args.numerics, args.seconds or 0.0, jobs
    )  # fmt: skip

    def told(part: Report, whole: Report) -> None:
        for failure in part.failures:
            print(failure, flush=True)
        show.remark(f"{whole.programs} of {args.n} programs, {len(whole.failures)} failures")

    report = fuzz.run(job, told)
    folder = Path(args.keep) if args.keep else None
    names = dict.fromkeys(f.case for f in report.failures if f.has_case)
    for name in list(names)[: fuzz.SHRUNK] if args.shrink else ():
        text, path = fuzz.keep(job, name, folder)
        print(f"\n{path or name}:\n{text}", flush=True)
    print(summary(report))
    return DIFFERENCES if report.failures else OK


def targets_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """The targets beside the VM. UserError where one is none, or not here."""
    from compiler.diagnostics import TOOLCHAIN, UserError
    from compiler.fuzz.check import available

    for name in names:
        if name not in WAYS:
            raise UserError(f"a target is one of {', '.join(WAYS)}, {name!r} was given")
        why = "" if name == "vm" else available(name)
        if why:
            raise UserError(f"{name} is asked for: {why}", TOOLCHAIN)
    return tuple(name for name in names if name != "vm")


def rerun(path: Path, targets: tuple[str, ...]) -> int:
    """Runs a kept failure."""
    from compiler.diagnostics import DIFFERENCES, OK
    from compiler.fuzz import spell
    from compiler.fuzz.check import check

    report = check([spell.read(path)], targets)
    for failure in report.failures:
        print(failure)
    print(summary(report))
    return DIFFERENCES if report.failures else OK


def summary(report: object) -> str:
    """Totals, what fired, what no target computes."""
    from compiler.fuzz.check import Report

    assert isinstance(report, Report)
    fired = ", ".join(f"{name} {count}" for name, count in report.fired.most_common())
    refused = [f"  {count} x {why}" for why, count in report.refused.most_common()]
    found = f"{len(report.failures)} failures" if report.failures else "0 bits differ"
    return "\n".join([
        f"fuzzed {report.programs} programs, {report.launches} launches, "
        f"{report.compared} values compared: {found}",
        f"fired: {fired}",
        *(["refused by the target:", *refused] if refused else []),
    ])  # fmt: skip
