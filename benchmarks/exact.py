"""One set of bits: every pass held back, every chunk, batches, repeated runs, against the VM.

    python benchmarks/exact.py --target host|cuda --out DIR [--weights FILE] [--jobs N] [--full]

Without --weights: the op programs among the examples and a small model of each family, one of them
three layers of SmolLM2's shapes; with it that checkpoint alone. In each numerics there is a binary
with all fusions, one without any and one without each (where texts are the same, one is built).
They take prompts in chunks of 1 to 17, 64, 65, 200 and 320 rows, five sequences at once and each
alone, without graphs and 20 times over (on the host in other orders of threads); the binaries
without one pass take a part of that, all of it with --full. Every logit and token is held against
the VM's; of prompts longer than --vm-tokens against the host binary's whose kernels are apart.

Prints a line a configuration (they are in DIR/exact.txt too) and a total; exit code 1: bits differ.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.exact_cases import (
    Case,
    Limits,
    ModelCase,
    Outcome,
    Way,
    op_cases,
    synthetic_cases,
)
from compiler.api.building import archs_of
from compiler.diagnostics import UserError
from compiler.target import NUMERICS
from passes import names as fusions
from runtime import toolchain

ALL_VM = 1 << 30  # tokens
QUICK = ("-O1", "-Wno-maybe-uninitialized")  # g++ 12 sees less at -O1, of the driver too


@dataclass(frozen=True)
class Variant:
    """A case in one numerics with passes held back; `label` says which."""

    case: Case
    numerics: str
    hold: tuple[str, ...]
    label: str

    @property
    def name(self) -> str:
        return f"{self.case.name} {self.numerics} {self.label}"


def variants(cases: Sequence[Case], numerics: Sequence[str]) -> list[Variant]:
    """All fused, all apart, and without each pass."""
    holds = {"fused": (), "apart": fusions(), **{f"no {name}": (name,) for name in fusions()}}
    return [
        Variant(case, kind, hold, label)
        for case in cases
        for kind in numerics
        for label, hold in holds.items()
    ]


def emit(variant: Variant, target: str) -> str:
    """The `.cu` without the word in its header of what was held back."""
    text = variant.case.emit(variant.numerics, variant.hold, target)
    return text.replace(f", held back: {', '.join(variant.hold)}", "", 1)


def distinct(found: Sequence[Variant], texts: Sequence[str]) -> dict[str, list[Variant]]:
    """The variants of each text."""
    out: dict[str, list[Variant]] = {}
    for variant, text in zip(found, texts, strict=True):
        out.setdefault(text, []).append(variant)
    return out


def build(text: str, target: str, archs: tuple[str, ...]) -> tuple[Path, float]:
    start = time.perf_counter()
    extra = QUICK if target == "host" else ()
    return toolchain.build(text, target, archs, extra=extra), time.perf_counter() - start


def check(variant: Variant, binary: Path, way: Way, folder: Path) -> Outcome:
    try:
        return variant.case.check(binary, variant.numerics, way, folder)
    except (UserError, OSError, ValueError) as error:
        return Outcome(0, 0, str(error) or type(error).__name__)


@dataclass
class Report:
    """Lines on standard output and in a file, and what they add up to."""

    file: TextIO
    configurations: int = 0
    values: int = 0
    differing: int = 0
    wrong: int = 0

    def add(self, name: str, of: Outcome) -> None:
        self.configurations += 1
        self.values += of.values
        self.differing += of.differing
        self.wrong += bool(of.differing or of.said)
        self.say(f"{name}: {of.said or f'{of.values} values, {of.differing} differ'}")

    def say(self, line: str) -> None:
        print(line, flush=True)
        print(line, file=self.file, flush=True)

    def end(self, seconds: float) -> int:
        failed = f"; {self.wrong} configurations are wrong" if self.wrong else ""
        self.say(f"took {seconds:.0f} s")
        self.say(
            f"{self.configurations} configurations, {self.values} values: "
            f"{self.differing} differ{failed}"
        )
        return bool(self.wrong)


def run(args: argparse.Namespace, cases: Sequence[Case], pool: ProcessPoolExecutor) -> int:
    start = time.perf_counter()
    archs = archs_of(args.arch) if args.target == "cuda" else ()
    limits = Limits(args.vm_tokens or (40 if args.target == "cuda" else ALL_VM))
    with (args.out / "exact.txt").open("w") as file:
        report = Report(file)
        made = [
            pool.submit(part, args.out)
            for case in cases
            for numerics in args.numerics
            for part in case.references(numerics, limits)
        ]
        found = variants(cases, args.numerics)
        texts = list(pool.map(emit, found, [args.target] * len(found)))
        binaries = [
            (same, pool.submit(build, text, args.target, archs))
            for text, same in distinct(found, texts).items()
        ]
        for reference in made:
            reference.result()
        report.say(f"{len(made)} references after {time.perf_counter() - start:.0f} s")
        runs = list(started(args, binaries, pool, report))
        for name, outcome in runs:
            report.add(name, outcome.result())
        return report.end(time.perf_counter() - start)


def started(
    args: argparse.Namespace,
    binaries: Sequence[tuple[list[Variant], Future[tuple[Path, float]]]],
    pool: ProcessPoolExecutor,
    report: Report,
) -> Iterator[tuple[str, Future[Outcome]]]:
    """Every run of every binary, on its way."""
    for (variant, *others), future in binaries:
        binary, seconds = future.result()
        same = f", the text of {', '.join(v.label for v in others)} too" if others else ""
        report.say(f"built {variant.name} in {seconds:.1f} s{same}")
        full = args.full or variant.label in ("fused", "apart")
        for way in variant.case.ways(args.target, full):
            name = f"{variant.name}, {way.name}"
            yield name, pool.submit(check, variant, binary, way, args.out)


def cases_of(args: argparse.Namespace) -> list[Case]:
    if args.weights:
        every: list[Case] = [ModelCase(path.stem, path.resolve()) for path in args.weights]
    else:
        every = [*op_cases(), *synthetic_cases(args.out)]
    return [c for c in every if any(word in c.name for word in args.cases.split(","))]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", choices=("host", "cuda"), required=True)
    parser.add_argument("--out", type=Path, required=True, help="references and exact.txt")
    parser.add_argument("--weights", type=Path, nargs="+", help="checkpoints, in place of our own")
    parser.add_argument("--numerics", nargs="+", choices=NUMERICS, default=list(NUMERICS))
    parser.add_argument("--cases", default="", help="words of cases' names, between commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once")
    parser.add_argument("--full", action="store_true", help="every binary takes every way")
    parser.add_argument("--vm-tokens", type=int, help="longest prompt of the VM's (cuda: 40)")
    parser.add_argument("--arch", nargs="+", help="nvcc's (the GPU's own)")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(args.jobs) as pool:
        return run(args, cases_of(args), pool)


if __name__ == "__main__":
    raise SystemExit(main())
