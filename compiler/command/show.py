"""What the verbs print: numbers as the binary spells them, tables, tokens as they come, progress.

Results go to standard output; progress and remarks to standard error.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler import knobs
from compiler.types import Type

EXACT = 1 << 24  # from here on f32 holds whole numbers alone


def number(value: Any) -> str:
    """The shortest decimal that reads back as the same number (C++'s std::to_chars);
    a NumPy scalar."""
    if value.dtype.kind != "f":
        return str(int(value))
    wide = np.float32(value) if value.dtype == np.float16 else value
    if np.isnan(wide):
        return "nan"
    if np.isinf(wide):
        return "inf" if wide > 0 else "-inf"
    plain = np.format_float_positional(wide, unique=True, trim="-")
    power = np.format_float_scientific(wide, unique=True, trim="-", exp_digits=2)
    if len(plain) > len(power):
        return power
    return str(int(wide)) if abs(wide) >= EXACT else plain


def result(name: str, type_: Type | str, array: NDArray[Any]) -> str:
    """`name: type`, then a value a line."""
    lines = [f"{name}: {type_}", *(number(v) for v in array.reshape(-1))]
    return "\n".join(lines) + "\n"


def table(rows: Iterable[Sequence[object]], right: Sequence[int] = ()) -> str:
    """Columns side by side, those of `right` to the right; the last one is not padded."""
    words = [[str(cell) for cell in row] for row in rows]
    wide = [max(len(row[c]) for row in words) for c in range(len(words[0]))] if words else []

    def line(row: list[str]) -> str:
        cells = [
            cell.rjust(w) if c in right else cell.ljust(w)
            for c, (cell, w) in enumerate(zip(row, wide, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join(map(line, words))


def print_table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[int] = ()
) -> None:
    """A table on the terminal; plain text elsewhere."""
    if not sys.stdout.isatty():
        print(f"== {title}\n{table([head, *rows], right)}")
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD)
    for index, name in enumerate(head):
        shown.add_column(Text(name), justify="right" if index in right else "left")
    for row in rows:
        shown.add_row(*(Text(str(cell)) for cell in row))
    Console(no_color=bool(knobs.NO_COLOR.value)).print(shown)


def remark(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def size(count: int) -> str:
    """Bytes as a person reads them."""
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} bytes"


@contextmanager
def progress(what: str) -> Generator[None]:
    """Shows on a terminal that something is under way."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    console = Console(stderr=True, no_color=bool(knobs.NO_COLOR.value))
    with console.status(f"{what} ..."):
        yield


@contextmanager
def bar() -> Generator[Callable[[str, int, int], None]]:
    """A bar on the terminal; gives what is to be told (what, done, total)."""
    if not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, no_color=bool(knobs.NO_COLOR.value))
    with Progress(console=console, transient=True) as shown:
        task = shown.add_task("")
        yield lambda what, done, total: shown.update(
            task, description=what, completed=done, total=total
        )


def tokens(
    made: Iterator[tuple[int, int]], sequences: int, decode: Callable[[int], bytes] | None
) -> None:
    """Prints (sequence, token) as they come: ids or text, a line a sequence.

    One sequence streams; of several each is printed when all are done.
    """
    if sequences == 1:
        write = _streaming(decode)
        for index, (_, token) in enumerate(made):
            write(token, index)
        print(flush=True)
        return
    lists: list[list[int]] = [[] for _ in range(sequences)]
    for sequence, token in made:
        lists[sequence].append(token)
    for ids in lists:
        if decode is None:
            print(",".join(map(str, ids)))
        else:
            print(b"".join(map(decode, ids)).decode(errors="replace"))


def _streaming(decode: Callable[[int], bytes] | None) -> Callable[[int, int], None]:
    """A writer of token number `index`; unfinished characters are held back."""
    partial = codecs.getincrementaldecoder("utf-8")("replace")

    def write(token: int, index: int) -> None:
        if decode is None:
            text = f",{token}" if index else str(token)
        else:
            text = partial.decode(decode(token))
        sys.stdout.write(text)
        sys.stdout.flush()

    return write
