"""What a run of the VM has computed, by name, as the binary's `--dump` writes it.

Rows of all steps stand in order of sequence and position; a quantized value is several arrays
(NAME.words, NAME.low, NAME.scales, NAME.sums). A cache is what it holds behind the run at the
places of its rows, by the name of its last version; leaves are left out.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.graph import Graph, Node
from compiler.graph import Value as Ref
from compiler.program import Program
from compiler.types import ROWS, WANTED
from compiler.values import Cache, Quantized, Rows, Value
from runtime.inputs import default_inputs
from runtime.vm import Environment, Session, Trace, caches_of, run

Array = NDArray[Any]
CHUNK = 64  # rows of a step

Place = tuple[int, int]  # sequence, position


@dataclass
class Recorder:
    """Collects values as steps go by; `graph` names every one of its values."""

    graph: Graph
    parts: dict[str, list[Array]] = field(default_factory=dict[str, "list[Array]"])
    lead: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    place: dict[str, int] = field(default_factory=dict[str, int])
    caches: dict[int, tuple[Ref, Cache]] = field(default_factory=dict[int, tuple[Ref, Cache]])
    rows: list[Place] = field(default_factory=list[Place])
    wanted: list[Place] = field(default_factory=list[Place])

    def seen(self, ref: Ref, value: Value) -> None:
        """The VM's trace."""
        name = self.graph.name(ref)
        assert name is not None, ref.node.op
        if isinstance(value, Cache):  # one object in all versions: the last one names it
            self.caches[id(value)] = ref, value
        first = ref.type.shape[0] if ref.type.shape else None
        lead = first if isinstance(first, str) else None
        for part, array in arrays(name, value):
            kept = self.parts.setdefault(part, [])
            if lead is None:
                kept.clear()
            kept.append(array)
            self.lead[part] = lead
            self.place[part] = self.order[ref]

    def values(self) -> dict[str, Array]:
        """Every value by name, in program order."""
        order = {ROWS: _order(self.rows), WANTED: _order(self.wanted)}
        out: dict[str, Array] = {}
        for name, kept in self.parts.items():
            lead = self.lead[name]
            out[name] = kept[0] if lead is None else np.concatenate(kept)[order[lead]]
        place = dict(self.place)
        for ref, cache in self.caches.values():
            name = self.graph.name(ref)
            assert name is not None
            out[name] = self._entries(cache)
            place[name] = self.order[ref]
        return {name: out[name] for name in sorted(out, key=place.__getitem__)}

    def _entries(self, cache: Cache) -> Array:
        """What a cache holds at the places of the rows, in order of sequence and position."""
        return np.stack([cache.keys(seq)[pos] for seq, pos in sorted(self.rows)])

    @cached_property
    def order(self) -> dict[Ref, int]:
        """Every value's place in the program; a fused function's are those of its members."""
        places: dict[Ref, int] = {}
        for n in self.graph.nodes():
            inner = _members(n)
            for index in sorted(range(len(n.types)), key=inner.__getitem__):
                places[n.result(index)] = len(places)
        return places


def _members(n: Node) -> list[int]:
    """For each result, which member of the function that `n` calls computes it."""
    if n.op != "call":
        return [0] * len(n.types)
    at = {member: i for i, member in enumerate(n.function.body)}
    return [at.get(v.node, -1) for v in n.function.results]


def _order(places: Sequence[Place]) -> list[int]:
    return sorted(range(len(places)), key=places.__getitem__)


def arrays(name: str, value: Value) -> Iterator[tuple[str, Array]]:
    """The arrays that a value is dumped as; none for caches, weights and rows."""
    if isinstance(value, np.ndarray):
        yield name, value
    elif isinstance(value, Quantized):
        yield f"{name}.words", value.words
        if value.low is not None:
            yield f"{name}.low", value.low
        yield f"{name}.scales", value.scales
        yield f"{name}.sums", value.sums


def owner(name: str, known: Container[str]) -> str:
    """The value, one of those known, that an array of a trace or a dump belongs to."""
    head, _, last = name.rpartition(".")
    return head if name not in known and last in ("words", "low", "scales", "sums") else name


def trace_program(
    program: Program, inputs: Mapping[str, Array], meaning: bool = False
) -> dict[str, Array]:
    """Every value of an op program; its results are among them where ops compute them."""
    recorder = Recorder(program.graph)
    values = default_inputs(program, inputs)
    for rows in values.values():
        if isinstance(rows, Rows):
            recorder.rows = list(zip(rows.seq.tolist(), rows.pos.tolist(), strict=True))
    run(
        program.graph,
        Environment(values, None, caches_of(program.graph, meaning)),
        meaning,
        recorder.seen,
    )
    return recorder.values()


def trace_rows(session: Session, sequences: Sequence[Sequence[int]]) -> dict[str, Array]:
    """Every value of a model over all rows of these token lists, every row's logits wanted."""
    recorder = Recorder(session.program.graph)
    rows = [(t, s, p) for s, tokens in enumerate(sequences) for p, t in enumerate(tokens)]
    for at in range(0, len(rows), CHUNK):
        tokens, seqs, positions = zip(*rows[at : at + CHUNK], strict=True)
        places = list(zip(seqs, positions, strict=True))
        recorder.rows += places
        recorder.wanted += places
        session.step(tokens, seqs, positions, range(len(tokens)), recorder.seen)
    return recorder.values()


class LogitsSession(Session):
    """A session that keeps logits: of the rows that are wanted, or with `every` of all."""

    every = False

    @cached_property
    def kept(self) -> list[tuple[Place, Array]]:
        """The logits of each row so far and its place."""
        return []

    def step(
        self,
        tokens: Sequence[int],
        seqs: Sequence[int],
        positions: Sequence[int],
        wanted: Sequence[int],
        trace: Trace | None = None,
    ) -> tuple[NDArray[np.floating], NDArray[np.int32]]:
        rows = range(len(tokens)) if self.every else wanted
        logits, chosen = super().step(tokens, seqs, positions, rows, trace)
        places = [(seqs[t], positions[t]) for t in rows]
        self.kept.extend(zip(places, logits, strict=True))
        asked = [list(rows).index(t) for t in wanted]
        return logits[asked], chosen[asked]

    def logits(self, sequence: int) -> Array:
        """[rows, V]: those of one sequence, by position."""
        kept = sorted((p, i) for i, ((s, p), _) in enumerate(self.kept) if s == sequence)
        return np.stack([self.kept[i][1] for _, i in kept])


def all_logits(session: Session, tokens: Sequence[int]) -> Array:
    """f32[rows, V]: the logits of every row of one sequence."""
    parts: list[Array] = []
    for at in range(0, len(tokens), CHUNK):
        part = tokens[at : at + CHUNK]
        places = range(at, at + len(part))
        parts.append(session.step(part, [0] * len(part), places, range(len(part)))[0])
    return np.concatenate(parts)
