"""A function run in a process of its own: native code that dies or hangs takes nobody with it."""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Died(Exception):
    """The function's process ended without an answer; the message says how, and its last words."""


def apart(function: Callable[[], T], seconds: float = 600.0) -> T:
    """What the function returns, by a forked process. Died: it raised, was killed, or hangs."""
    read, write = os.pipe()
    with tempfile.TemporaryFile() as words:
        with warnings.catch_warnings():  # threads are numpy's own, which know of forks
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            os.close(read)
            _answer(function, write, words.fileno())
        os.close(write)
        answer, hangs = _listen(read, child, seconds)
        _, status = os.waitpid(child, 0)
        if answer:
            kind, value = pickle.loads(answer)
            if kind == "value":
                return value
            raise Died(value)
        words.seek(0)
        last = words.read().decode(errors="replace").strip().splitlines()[-3:]
    how = "hangs" if hangs else ended(status)
    raise Died(" | ".join([how, *last]))


def _answer(function: Callable[[], Any], write: int, words: int) -> None:
    """The child's part; never returns."""
    try:
        sys.stdout.flush()
        os.dup2(words, 2)
        try:
            answer = pickle.dumps(("value", function()))
        except BaseException as error:
            said = brief(error)
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{os.path.basename(place.filename)}:{place.lineno}"
            answer = pickle.dumps(("error", f"{said} (at {where})"))
        with open(write, "wb") as out:
            out.write(answer)
    finally:
        os._exit(0)


def brief(error: BaseException) -> str:
    """An error on one line: of a compiler's words the first complaint."""
    lines = str(error).splitlines() or [""]
    told = [line.split("error: ", 1)[1] for line in lines[1:] if "error: " in line]
    return f"{type(error).__name__}: {' '.join([lines[0], *told[:1]])}"


def _listen(read: int, child: int, seconds: float) -> tuple[bytes, bool]:
    """All that the child writes; kills it where it takes too long."""
    until, parts, hangs = time.monotonic() + seconds, list[bytes](), False
    with open(read, "rb", buffering=0) as pipe:
        while True:
            ready, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                os.kill(child, signal.SIGKILL)
                hangs = True
                break
            part = pipe.read(1 << 20)
            if not part:
                break
            parts.append(part)
    return (b"" if hangs else b"".join(parts)), hangs


def ended(status: int) -> str:
    """How a process ended, in words."""
    if os.WIFSIGNALED(status):
        return f"ended by signal {signal.Signals(os.WTERMSIG(status)).name}"
    return f"ended with status {os.WEXITSTATUS(status)}"
