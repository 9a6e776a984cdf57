"""Where elaboration stands (the stack of defs and loops), and the notes that it leaves on nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from compiler.diagnostics import Span
from compiler.graph import Frame, Node, Origin, Value
from compiler.graph import Note as NodeNote
from compiler.text import Names
from frontend.things import Note, Thing


@dataclass
class Level:
    """One def (or the file) being elaborated."""

    name: str | None  # None: the file, or forward
    scope: dict[str, Thing]
    statement: Span
    file: str  # where its text stands: the program or the prelude
    loops: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    result: Thing | None = None


class Trace:
    """The stack of levels, innermost last; names, origins and ranks of the nodes made so far."""

    def __init__(self) -> None:
        self.levels: list[Level] = []
        self.names: dict[Value, str] = {}
        self.suggested: dict[Value, str] = {}  # for values that end up without a name
        self.origins: dict[Node, dict[Origin, None]] = {}  # in the order of ranks
        self.unique = Names().unique
        self._origin: tuple[list[object], Origin] = ([], ())

    @property
    def level(self) -> Level:
        return self.levels[-1]

    def origin(self) -> Origin:
        """The call stacks of the statement at hand; made once a statement."""
        key: list[object] = [(e.statement, e.loops[-1:]) for e in self.levels]
        if self._origin[0] != key:
            frames = [Frame(e.statement, e.loops[-1][1] if e.loops else None) for e in self.levels]
            self._origin = (key, tuple(frames))
        return self._origin[1]

    def add(self, node: Node, origin: Origin | None = None) -> None:
        self.origins.setdefault(node, {})[self.origin() if origin is None else origin] = None

    def prefix(self) -> str:
        """What a name starts with: `l3.attend.`, from loop indices and defs."""
        loops = "_".join(str(index) for level in self.levels for _, index in level.loops)
        defs = [level.name for level in self.levels if level.name]
        return "".join(f"{piece}." for piece in ([f"l{loops}"] if loops else []) + defs)

    def name(self, value: Value, variable: str, whole: bool = False) -> None:
        """Name a value after the variable that it is bound to, unless it has a name."""
        if value not in self.names and value.node.op != "const":
            self.names[value] = self.unique(variable if whole else self.prefix() + variable)

    def suggest(self, value: Value, name: str) -> None:
        self.suggested.setdefault(value, name)

    def notes(self) -> dict[Node, NodeNote]:
        """The side table; ranks are the order in which nodes were made."""
        for value, name in self.suggested.items():
            self.name(value, name, whole=True)
        out: dict[Node, NodeNote] = {}
        for rank, (node, origins) in enumerate(self.origins.items()):
            names = tuple(self.names.get(node.result(i)) for i in range(len(node.types)))
            out[node] = NodeNote(names, frozenset(origins), float(rank))
        return out

    def born(self, node: Node, file: str) -> Span | None:
        """The line of `file` that made a node; of several the first."""
        for origin in self.origins.get(node, ()):
            spans = [frame.span for frame in origin if frame.span.file == file]
            if spans:
                return spans[-1]
        return None

    def operand_notes(self, operands: Sequence[tuple[str, Value]], file: str) -> list[Note]:
        """For each operand where it got its type."""
        return [
            (self.born(value.node, file), f"{name} is {value.type}")
            for name, value in operands
            if value.node.op != "const"
        ]

    def stack_notes(self, file: str) -> list[Note]:
        """The calls that led here, innermost first, then the loops' indices."""
        notes: list[Note] = []
        for outer, inner in reversed(list(pairwise(self.levels))):
            if inner.statement.file == file:
                notes.append((outer.statement, f"in {inner.name}, called here"))
            else:
                notes.append((None, f"in {inner.name}, at {inner.statement}"))
        loops = [f"{name} = {index}" for level in self.levels for name, index in level.loops]
        return notes + ([(None, f"where {', '.join(loops)}")] if loops else [])

    def user_span(self, file: str) -> Span:
        """The innermost statement at hand that stands in `file`."""
        spans = [level.statement for level in self.levels if level.statement.file == file]
        return spans[-1] if spans else Span(file, 1, 1, 1)
