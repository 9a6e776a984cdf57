"""compute-sanitizer over the op programs and the examples, on a GPU machine.

    python benchmarks/sanitize.py --out DIR [--jobs N] [--tools NAMES] [--programs WORDS]

Programs: every sample of every op and the wide ones beside them (some twenty a binary), the op
programs among the examples, and a small model of each family in all numerics, whose prompts of 300,
20 and 100 rows run every form of rows, those on tensor cores too. Tools: memcheck (with CUDA graphs
as well), racecheck, synccheck, initcheck.

Prints a line a run and a total; what a tool found is in DIR/sanitize.txt. Exit code 1: any finding,
or a run that ended badly or without a summary. --dry prints the commands in place of running them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

from benchmarks.exact_cases import OP_PROGRAMS, ModelCase, synthetic_cases
from compiler.api.building import archs_of
from compiler.diagnostics import UserError
from compiler.program import Program
from compiler.target import CUDA, NUMERICS, Options
from runtime import toolchain
from tests.merged import compiled, groups, merged, rows_values
from tests.op_programs import is_other, named_programs
from tests.small_models import program

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
FOUND = 9  # the exit code of a tool that found something
UNIT = 20  # programs a binary
SUMMARY = re.compile(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards?)(.*)$", re.M)
USES = {  # of a model: lengths of its prompts, and the binary's flags
    "three prompts": ((300, 20, 1), ()),
    "chunks of 33": ((100,), ("--chunk", "33")),
}


@dataclass(frozen=True)
class Subject:
    """A binary to build and the runs of it: each a name and the words behind the binary."""

    name: str
    text: str
    runs: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Verdict:
    """What a tool says of a run: findings, None where it did not come to a summary."""

    findings: int | None
    said: str

    @property
    def clean(self) -> bool:
        return self.findings == 0


def verdict(code: int, output: str) -> Verdict:
    """Of a tool's exit code and its output."""
    found = SUMMARY.findall(output)
    if not found:
        return Verdict(None, f"no summary, exit code {code}: {last_line(output)}")
    count = sum(int(number) for number, _ in found)
    said = "; ".join(f"{number} found{rest}" for number, rest in found)
    if code not in (0, FOUND) or (code == FOUND and count == 0):
        return Verdict(None, f"{said}, exit code {code}: {last_line(output)}")
    return Verdict(count, said)


def last_line(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "nothing was printed"


def command(tool: str, sanitizer: str, binary: Path, words: Sequence[str]) -> list[str]:
    return [sanitizer, "--tool", tool, "--error-exitcode", str(FOUND), str(binary), *words]


def find_sanitizer() -> str:
    """compute-sanitizer of PATH, or beside nvcc."""
    nvcc = toolchain.find_nvcc().path.resolve().parent
    places = (nvcc, nvcc.parent / "compute-sanitizer")
    found = shutil.which("compute-sanitizer") or next(
        (str(p / "compute-sanitizer") for p in places if (p / "compute-sanitizer").exists()), None
    )
    if not found:
        raise UserError("compute-sanitizer is needed: on PATH or beside nvcc")
    return found


# what runs


@cache
def op_units() -> tuple[tuple[str, str, list[Program]], ...]:
    """(name, numerics, programs) of each binary: samples, then examples."""
    out: list[tuple[str, str, list[Program]]] = []
    examples = [replace(program(name), name=name) for name in OP_PROGRAMS]
    for numerics in NUMERICS:
        kept = [p for p in named_programs() if numerics == "f32" or is_other(p, numerics)]
        for kind, programs in (("ops", kept), ("examples", examples)):
            for unit in groups(programs, UNIT):
                out.append((f"{kind} {numerics} {unit[0].name}", numerics, unit))
    return tuple(out)


def op_subject(unit: tuple[str, str, list[Program]], folder: Path) -> Subject:
    name, numerics, programs = unit
    text = compiled(merged(programs, "ops"), Options(numerics), CUDA).text
    runs: list[tuple[str, tuple[str, ...]]] = []
    for at, inputs in enumerate(rows_values(programs)):
        words = ["--out", f"{folder}/{name.replace(' ', '-')}-{at}"]
        for given, array in inputs.items():
            path = folder / f"{name.replace(' ', '-')}-{at}-{given}.npy"
            np.save(path, array)
            words += ["--input", f"{given}={path}"]
        runs.append((f"rows {at}" if inputs else "", tuple(words)))
    return Subject(name, text, tuple(runs))


def model_subject(case: ModelCase, numerics: str, folder: Path) -> Subject:
    last = dict(case.model.program.graph.results)["logits"].type.shape[-1]
    assert isinstance(last, int)
    runs: list[tuple[str, tuple[str, ...]]] = []
    for at, (use, (lengths, flags)) in enumerate(USES.items()):
        path = folder / f"{case.name}-{at}.txt"
        drawn = [np.random.default_rng(n).integers(last, size=n).tolist() for n in lengths]
        path.write_text("".join(",".join(map(str, tokens)) + "\n" for tokens in drawn))
        words = ("--weights", str(case.weights), "--seqs", str(path), "-n", "3", *flags)
        runs.append((use, words))
    return Subject(f"model {case.name} {numerics}", case.emit(numerics, (), "cuda"), tuple(runs))


def subject(task: tuple[object, ...]) -> Subject:
    """Of an op unit's number, or of a model and its numerics."""
    if isinstance(task[0], ModelCase):
        return model_subject(*task)  # type: ignore[arg-type]
    number, folder = task
    return op_subject(op_units()[number], folder)  # type: ignore[arg-type,index]


def tasks(folder: Path, words: Sequence[str]) -> list[tuple[object, ...]]:
    models = [(case, n, folder) for case in synthetic_cases(folder) for n in NUMERICS]
    named = [(f"model {case.name} {n}", (case, n, folder)) for case, n, _ in models]
    named += [(name, (number, folder)) for number, (name, *_) in enumerate(op_units())]
    return [task for name, task in named if any(word in name for word in words)]


def built(task: tuple[object, ...], archs: tuple[str, ...], dry: bool) -> tuple[Subject, Path]:
    made = subject(task)
    return made, Path("BINARY") if dry else toolchain.build(made.text, "cuda", archs)


def runs_of(made: Subject, tools: Sequence[str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(name, tool, words) of each run; launches apart, whose kernels tools can name."""
    for name, words in made.runs:
        label = f"{made.name}{name and ', '}{name}"
        apart = ("--no-graph",) if made.name.startswith("model") else ()
        yield from ((label, tool, (*words, *apart)) for tool in tools)
        if apart and "memcheck" in tools:
            yield f"{label}, graphs", "memcheck", words


# running


def watch(words: Sequence[str]) -> tuple[Verdict, str, float]:
    start = time.perf_counter()
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output = done.stdout.decode(errors="replace")
    return verdict(done.returncode, output), output, time.perf_counter() - start


def run(args: argparse.Namespace, sanitizer: str, folder: Path) -> int:
    start = time.perf_counter()
    every = tasks(folder, args.programs.split(","))
    archs = () if args.dry else archs_of(args.arch)
    with ProcessPoolExecutor(args.jobs) as pool:
        made = list(pool.map(built, every, [archs] * len(every), [args.dry] * len(every)))
    print(f"{len(made)} binaries after {time.perf_counter() - start:.0f} s", flush=True)
    listed = [(run, binary) for of, binary in made for run in runs_of(of, args.tools)]
    commands = [command(tool, sanitizer, b, words) for (_, tool, words), b in listed]
    if args.dry:
        print("\n".join(map(" ".join, commands)))
        return 0
    bad: list[str] = []
    with ThreadPoolExecutor(args.jobs) as pool, (args.out / "sanitize.txt").open("w") as file:
        for ((name, tool, _), _), watched in zip(listed, pool.map(watch, commands), strict=True):
            found, output, seconds = watched
            line = f"{tool} {name}: {found.said} ({seconds:.1f} s)"
            print(line, flush=True)
            print(f"{line}\n{'' if found.clean else output}", file=file)
            bad += [] if found.clean else [line]
    print("\n".join(bad))
    print(f"took {time.perf_counter() - start:.0f} s")
    print(f"{len(commands)} runs of {len(made)} binaries: {len(bad)} are not clean")
    return bool(bad)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="where sanitize.txt goes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--programs", default="", help="words of programs' names, between commas")
    parser.add_argument("--arch", nargs="+", help="nvcc's (the GPU's own)")
    parser.add_argument("--dry", action="store_true", help="print the commands, run nothing")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="monocu.") as folder:
        return run(args, "compute-sanitizer" if args.dry else find_sanitizer(), Path(folder))


if __name__ == "__main__":
    raise SystemExit(main())
