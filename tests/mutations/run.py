"""Planted faults: each goes into a copy of the tree, where the tests named beside it must fail.

`make mutations` runs all of tests/mutations/*.toml; `--only NAME` some. First the named tests pass
in a copy without a fault. Then each fault is caught, or the command fails: it survives, its text is
not there once, it does not build (what fails must say `shows`), or it takes over 30 s of a core.
Every copy has a build cache of its own, so that no build of one is taken for another's.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LISTS = sorted(Path(__file__).parent.glob("*.toml"))
MOST = 30.0  # seconds of a core that the tests of a fault may take
HANGS = 240.0  # seconds of waiting: cores may be shared
UNBUILT = "the compiler failed with status"
VALUES = r"^E +(assert|AssertionError)\b"  # of values that differ, in what pytest prints


@dataclass(frozen=True)
class Fault:
    """In `file`, `old` becomes `new`; one of `tests` must fail, and print what `shows` matches."""

    name: str
    file: str
    why: str
    old: str
    new: str
    tests: tuple[str, ...]
    shows: str = VALUES

    @property
    def applies(self) -> bool:
        text = (ROOT / self.file).read_text()
        return text.count(self.old) == 1 and self.old != self.new

    def plant(self, tree: Path) -> None:
        path = tree / self.file
        path.write_text(path.read_text().replace(self.old, self.new))


@dataclass(frozen=True)
class Ran:
    """How a run of pytest ended: its status, what it printed, seconds of a core that it took."""

    code: int
    output: str
    seconds: float


def faults() -> list[Fault]:
    """The lists, in order; each name once."""
    found: dict[str, Fault] = {}
    for path in LISTS:
        for name, row in tomllib.loads(path.read_text()).items():
            if name in found:
                raise ValueError(f"{path.name}: {name} is the name of two faults")
            found[name] = Fault(name, **{**row, "tests": tuple(row["tests"])})
    return list(found.values())


def copy(tree: Path) -> None:
    """What git would commit of the repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tree / name)


def pytest(tests: Sequence[str], fault: Fault | None = None, *flags: str) -> Ran:
    """The tests in a copy of the tree, with the fault in it."""
    with tempfile.TemporaryDirectory(prefix="monocu.fault.") as folder:
        tree, said = Path(folder, "tree"), Path(folder, "said")
        copy(tree)
        if fault:
            fault.plant(tree)
        own = {"XDG_CACHE_HOME": f"{folder}/cache", "PYTHONPATH": str(tree), "TMPDIR": folder}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *flags, *tests]
        with said.open("w") as out:
            env = {**os.environ, **own}
            process = subprocess.Popen(
                command, cwd=tree, env=env, stdout=out, stderr=out, start_new_session=True
            )
            timer = threading.Timer(HANGS, os.killpg, (process.pid, signal.SIGKILL))
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = usage.ru_utime + usage.ru_stime
        return Ran(process.returncode, said.read_text(errors="replace"), seconds)


def verdict(fault: Fault, ran: Ran) -> str:
    """`caught`, or what is wrong."""
    if ran.code == 0:
        return "SURVIVED"
    if ran.code < 0:
        return "HANGS"
    if ran.code != 1 or UNBUILT in ran.output or not re.search(fault.shows, ran.output, re.M):
        return "DOES NOT SHOW"
    return "caught" if ran.seconds <= MOST else "TOO SLOW"


def judge(fault: Fault) -> bool:
    """Runs a fault's tests, prints its line; True where it is caught."""
    if not fault.applies:
        print(f"NOT THERE ONCE     {fault.name}: the text to replace, in {fault.file}", flush=True)
        return False
    ran = pytest(fault.tests, fault, "-x", "--tb=short")
    found = verdict(fault, ran)
    print(f"{found:13} {ran.seconds:5.1f} s  {fault.name}: {fault.why}", flush=True)
    if found != "caught":
        print("\n".join(f"    {line}" for line in ran.output.splitlines()[-25:]), flush=True)
    return found == "caught"


def passes_without(chosen: Sequence[Fault], jobs: int) -> bool:
    """Whether all tests of the faults pass, none of them skipped, as the tree is."""
    tests = sorted({test for fault in chosen for test in fault.tests})
    ran = pytest(tests, None, "-n", str(jobs))
    last = ran.output.splitlines()[-1] if ran.output else ""
    good = ran.code == 0 and "skipped" not in last
    print(f"without a fault: {last} ({ran.seconds:.0f} s of a core)", flush=True)
    if not good:
        print(ran.output)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these faults alone")
    parser.add_argument("--jobs", type=int, default=2, help="faults at a time (2)")
    given = parser.parse_args()
    chosen = [f for f in faults() if not given.only or f.name in given.only]
    unknown = set(given.only or ()) - {f.name for f in chosen}
    if unknown:
        parser.error(f"names of faults are needed, {', '.join(sorted(unknown))} was given")
    start = time.monotonic()
    if not passes_without(chosen, given.jobs):
        return 1
    with ThreadPoolExecutor(given.jobs) as pool:
        caught = list(pool.map(judge, chosen))
    minutes = (time.monotonic() - start) / 60
    print(f"{sum(caught)} of {len(chosen)} faults caught in {minutes:.1f} minutes")
    return 0 if all(caught) else 1


if __name__ == "__main__":
    sys.exit(main())
