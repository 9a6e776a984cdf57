"""Running a built binary: argv lists, streams passed through, its exit codes and words kept.

Contract: a binary that fails is a UserError with the binary's own message and exit code.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.diagnostics import EXIT_CODES, INTERNAL, OK, UserError


@dataclass(frozen=True)
class Finished:
    """What a binary that ended well has printed."""

    out: bytes
    err: str

    def report(self) -> dict[str, Any]:
        """The object of `--json`: the last line of standard error."""
        return json.loads(self.err.splitlines()[-1])


def stream(binary: Path, argv: Sequence[str]) -> int:
    """Runs it on our own streams; returns its exit code. ^C is the binary's to answer."""
    before = signal.getsignal(signal.SIGINT)
    process = subprocess.Popen([binary, *argv], stdin=subprocess.DEVNULL)
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal tells the binary too
        code = process.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    if code < 0 or code not in EXIT_CODES:
        raise ended(binary, code, "")
    return code


def capture(binary: Path, argv: Sequence[str], streaming: bool = False) -> Finished:
    """Runs it and keeps what it prints; streaming: its standard output is ours, and not kept.

    Errors: UserError with the binary's code.
    """
    done = subprocess.run(
        [binary, *argv],
        stdin=subprocess.DEVNULL,
        stdout=None if streaming else subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
    )
    err = done.stderr.decode(errors="replace")
    if done.returncode != OK:
        raise ended(binary, done.returncode, err)
    return Finished(done.stdout or b"", err)


def ended(binary: Path, code: int, err: str) -> UserError:
    """A failed run as an error: the binary's own words where it had some."""
    said = [line for line in err.splitlines() if "error: " in line]
    if code in EXIT_CODES and said:
        return UserError(said[-1].split("error: ", 1)[1], code)
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    tail = "".join(f"\n    {line}" for line in err.splitlines()[-10:])
    return UserError(f"the binary {binary} ended by {how}{tail}", INTERNAL)
