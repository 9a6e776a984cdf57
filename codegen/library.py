"""The plain CUDA helpers of codegen/lib, cut into items; a program gets those that it uses, in
order of need.

An item is a run of lines between blank lines; it begins with a comment that says what it is.
Several items may define one name (overloads); whoever uses the name gets them all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "lib"
TIMED = FOLDER / "timed"  # what stands in the place of helpers where launches are timed
_DEFINES = (
    re.compile(
        r"^\s*(?:template\s*<[^{;]*?>\s*)?(?:struct|enum class|enum)\s+(\w+)\b(?=[^;(]*\{)", re.M
    ),
    re.compile(r"^#\s*define\s+(\w+)", re.M),
    re.compile(r"^[^\s/#}][^\n(=]*?\b(\w+)\s*=[^=]", re.M),
    re.compile(r"^(?:template[^\n]*?>\s+)?[^\s/#}{(;=][^\n(;={]*?\b(\w+)\([^\n]*$", re.M),
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"", re.S)


@dataclass(frozen=True)
class Item:
    """One definition of the library: its text, the names that it defines and all words in it."""

    order: int
    text: str
    names: frozenset[str]
    words: frozenset[str]


def words(text: str) -> frozenset[str]:
    """The identifiers of CUDA text, comments and strings left out."""
    return frozenset(_WORD.findall(_COMMENT.sub(" ", text)))


@cache
def items(timed: bool = False) -> tuple[Item, ...]:
    """Every item of codegen/lib, files in order of name; where launches are timed lib/timed's, and
    those of whose names it has none."""
    if not timed:
        return _read(FOLDER)
    own = _read(TIMED)
    named = frozenset[str]().union(*(item.names for item in own))
    return (*(item for item in items() if not item.names & named), *own)


def _read(folder: Path) -> tuple[Item, ...]:
    out: list[Item] = []
    for path in sorted(folder.glob("*.cuh")):
        for text in re.split(r"\n(?:[ \t]*\n)+", path.read_text().strip("\n")):
            code = _COMMENT.sub("", text)
            names = frozenset(n for pattern in _DEFINES for n in pattern.findall(code))
            if names:
                out.append(Item(len(out), text, names, words(text)))
    return tuple(out)


@cache
def defined() -> frozenset[str]:
    """Every name that the library defines."""
    return frozenset[str]().union(*(item.names for item in (*items(), *items(timed=True))))


def needed(text: str, timed: bool = False) -> tuple[str, ...]:
    """The items that `text` uses, with all that these use, definitions before uses."""
    table: dict[str, list[Item]] = {}
    for item in items(timed):
        for name in item.names:
            table.setdefault(name, []).append(item)
    done: dict[Item, None] = {}
    open_: set[Item] = set()

    def visit(item: Item) -> None:
        if item in done or item in open_:
            return
        open_.add(item)
        for word in sorted(item.words - item.names):
            for other in table.get(word, ()):
                visit(other)
        done[item] = None

    for word in sorted(words(text)):
        for item in table.get(word, ()):
            visit(item)
    return tuple(item.text for item in done)
