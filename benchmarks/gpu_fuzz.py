"""Random programs on a GPU, in process, against the VM bit by bit; many compilations at once.

    python benchmarks/gpu_fuzz.py --out DIR [--n 20000] [--minutes 8] [--jobs J] [--seed S]
    compute-sanitizer --tool memcheck python benchmarks/gpu_fuzz.py --n 200 --jobs 1

The samples of every op, the example op programs and all pairs of special values come first. Each
job makes programs of a seed, runs them on the VM, compiles some 50 at once by NVRTC (most with less
optimization than what ships, every fifth unit as it ships; --full: all) and launches them. With
--jobs 1 everything is in this one process, as tools that watch a process need it. Prints a line of
progress every few seconds, each failure, and a total; a program that differs goes to DIR as
NAME.model, for `monocu fuzz --rerun`. Exit 1 where bits differ. --target twin: the same launches on
the CPU by g++, where no GPU is.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from compiler.diagnostics import DIFFERENCES, OK, TOOLCHAIN
from compiler.fuzz import run as fuzz
from compiler.fuzz import spell
from compiler.fuzz.check import Report, available, workers
from compiler.fuzz.generate import case_of
from compiler.fuzz.known import known_units

EVERY = 5.0  # seconds between lines of progress


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="where failures are kept")
    parser.add_argument("--n", type=int, default=20000)
    parser.add_argument(
        "--minutes", type=float, default=8.0, help="begin nothing new after so long"
    )
    parser.add_argument("--jobs", type=int, default=workers())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--numerics", default="all")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--no-known", dest="known", action="store_false")
    parser.add_argument("--target", choices=("cuda", "twin", "host"), default="cuda")
    return parser.parse_args()


def line(report: Report, start: float) -> str:
    return (
        f"{report.programs} programs, {report.launches} launches, {report.compared} values "
        f"compared, {len(report.failures)} failures, {time.monotonic() - start:.0f} s"
    )


def keep(folder: Path, name: str, text: str) -> None:
    """Writes a failing case, its steps as one: what --rerun takes, and how it was found."""
    if name.startswith("fuzz_"):
        seed, number = map(int, name.split("_")[1:])
        case = case_of(seed, number)
    else:
        case = next(c for unit in known_units() for c in unit if c.name == name)
    fixed = spell.static(case)
    if fixed is not None:
        print(f"kept {spell.write(fixed, folder, text)}", flush=True)


def main() -> int:
    args = arguments()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a job is one core's
    start = last = time.monotonic()
    if args.jobs > 1 and (why := available(args.target)):
        print(f"{args.target}: {why}", file=sys.stderr)
        return TOOLCHAIN
    job = fuzz.Job(
        *(args.seed, args.first, args.n, (args.target,), args.numerics, 60 * args.minutes),
        workers=args.jobs,
        known=args.known,
        quick=not args.full,
        isolated=args.jobs > 1,
    )

    def told(part: Report, whole: Report) -> None:
        nonlocal last
        for failure in part.failures:
            print(f"FAILED {failure}", flush=True)
            if args.out and failure.has_case:
                keep(args.out, failure.case, str(failure))
        if time.monotonic() - last > EVERY:
            last = time.monotonic()
            print(line(whole, start), flush=True)

    report = fuzz.run(job, told)
    fired = ", ".join(f"{name} {count}" for name, count in report.fired.most_common())
    print(f"fired: {fired}")
    for why, count in report.refused.most_common():
        print(f"refused: {count} x {why}")
    print(f"total, seed {args.seed}: {line(report, start)}")
    return DIFFERENCES if report.failures else OK


if __name__ == "__main__":
    sys.exit(main())
