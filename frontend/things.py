"""What an expression may stand for while a program is elaborated, and how that goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from compiler.diagnostics import USAGE, Span
from compiler.graph import Value
from compiler.types import DYNAMIC, FLOATS, INTEGERS

Note = tuple[Span | None, str]
Static = int | float | str | tuple["Static", ...]  # known at compile time


@dataclass(frozen=True, slots=True)
class Axis:
    """T or R where a number stands else."""

    name: str


@dataclass(frozen=True, slots=True)
class Dtype:
    """f16 in `cast(x, f16)`"""

    name: str


@dataclass(frozen=True, slots=True)
class Absent:
    """An optional weight that the checkpoint lacks; `name` is the checkpoint's."""

    name: str


@dataclass(frozen=True, slots=True)
class Poison:
    """The value of what is wrong and reported; everything made of it is silent."""


@dataclass(frozen=True, slots=True)
class Results:
    """What an op or def with several results returns."""

    of: str
    values: tuple[Value | Poison, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """`blk[l]` or `kv[l]`; kind is "weight" or "cache", and a cache's members are bound anew."""

    name: str
    path: str  # as names of values spell it: `l3`, `l3.kv`
    kind: str
    members: dict[str, Value | Absent | Poison]


@dataclass(frozen=True, slots=True)
class Group:
    """`blk`, `kv`"""

    name: str
    kind: str
    records: tuple[Record, ...]


Thing = Static | Axis | Dtype | Absent | Poison | Results | Record | Group | Value
POISON = Poison()

BUILTINS: dict[str, Thing] = {
    **{name: Axis(name) for name in DYNAMIC},
    **{name: Dtype(name) for name in (*FLOATS, *INTEGERS)},
    "inf": float("inf"),
    "nan": float("nan"),
}


class Fault(Exception):
    """One error of a program, on its way to the report; `code` says whose fault it is."""

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        notes: Sequence[Note] = (),
        code: int = USAGE,
    ) -> None:
        super().__init__(message)
        self.message, self.span, self.notes, self.code = message, span, tuple(notes), code


class Stop(Exception):
    """Elaboration cannot go on; the reason is reported."""


def describe(thing: Thing) -> str:
    """What was given, in words for a message."""
    match thing:
        case int() | float():
            return f"the number {thing!r}"
        case str():
            return f'the text "{thing}"'
        case tuple():
            return f"an array of {len(thing)}"
        case Axis(name):
            return f"the dynamic axis {name}"
        case Dtype(name):
            return f"the dtype {name}"
        case Absent(name):
            return f"{name}, which the checkpoint lacks"
        case Results(of, values):
            return f"the {len(values)} results of {of}"
        case Record(name, _, kind):
            return f"{name}, a record of {kind}s"
        case Group(name, kind, records):
            return f"{name}, a group of {len(records)} records of {kind}s"
        case Value():
            return str(thing.type)
        case Poison():
            return "an error"


def nearest(name: str, known: Sequence[str]) -> str:
    """`; did you mean x?` or nothing."""
    near = get_close_matches(name, known, 2)
    return f"; did you mean {' or '.join(near)}?" if near else ""
