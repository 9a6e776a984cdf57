"""The emitted step replayed over poisoned memory: every launch must find the values that it needs.

The launches are read as the step function spells them, loops and all, and held against the flat
list of the plan: kernel, shape, weights, caches, and of each range of bytes which value it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from codegen import layers, render, tables
from codegen.expr import STRUCTS
from codegen.families import Member, tile_bytes
from codegen.kernel import Arg
from codegen.memory_of import root
from codegen.plan import Plan, Planned
from codegen.render import LaunchText
from compiler.graph import Value
from compiler.types import ELEMENT_BYTES, nbytes, size

GRANULE = 256  # bytes: every slot begins at a multiple


def replay(plan: Plan) -> list[str]:
    """What is wrong with a plan's launches and memory, a line each; nothing if all is well."""
    return [*_replay(plan, 2), *_replay(plan, 1)]


def _replay(plan: Plan, rows: int) -> list[str]:
    """The same of steps of one row, or of more."""
    memory = Memory(plan)
    as_listed = plan.step(rows) == plan.launches
    tabled = list(dumped(plan)) if as_listed else []
    for number, (text, planned, layer) in enumerate(emitted(plan, rows)):
        where = f"launch {number} ({planned.kernel})"
        memory.say(where, same_shape(text, planned))
        memory.launch(where, text, planned, layer)
        for name, offset, launch in tabled:
            if launch == number:
                memory.expect(f"{name} behind {where}", memory.named.get(name), offset)
    for name, value, offset in returned(plan):
        memory.expect(f"result {name} at the end", root(value), offset)
    return memory.problems


def emitted(plan: Plan, rows: int) -> Iterator[tuple[LaunchText, Planned, int]]:
    """Each launch in the order of the step: as it is spelled, as it is planned, and what `l` is."""
    number, launches = 0, plan.step(rows)
    others = ("more", "last") if rows == 1 else ("one",)
    for run in render._runs(plan):
        for layer in range(max(1, run.count)):
            for text in run.launches:
                if text.forms not in others:
                    yield chosen(plan, text, layer), launches[number], layer
                    number += 1
    assert number == len(launches), "the step launches more or less than the plan"


def chosen(plan: Plan, text: LaunchText, layer: int) -> LaunchText:
    """The launch with the template arguments that its layer has."""
    for v in text.variants:
        parts = re.findall(r"(\w+)\[([l\d +]+)\]\.family\.type == (\w+)::GGML", v.condition)
        types = [tabled(plan, name, eval(index, {"l": layer})) for name, index, _ in parts]
        formats = [STRUCTS[plan.families[place.family].type.dtype] for place in types]
        if formats == [struct for _, _, struct in parts]:
            return replace(text, arguments=v.arguments)
    return text


def tabled(plan: Plan, name: str, row: int) -> Member:
    """A row of a table of the tensors whose format differs by layer."""
    names = [t.name for t in tables.of(plan).layers]
    return layers.of(plan.families).tables[names.index(name)].members[row]


def same_shape(text: LaunchText, planned: Planned) -> list[str]:
    launch, grid = planned.launch, planned.launch.grid
    spelled = [g.strip() for g in _split(text.grid)]
    spelled += ["1"] * (3 - len(spelled))
    pairs = {
        "kernel": (text.kernel, planned.kernel),
        "template arguments": (text.arguments, ", ".join(launch.arguments)),
        "grid": (spelled, [grid.x, grid.y, grid.z]),
        "threads": (text.threads, launch.threads),
        "shared": (text.shared, launch.shared),
    }
    return [f"{name} {a} is launched, {b} planned" for name, (a, b) in pairs.items() if a != b]


def _split(text: str) -> list[str]:
    """At commas outside of parentheses."""
    parts, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def bytes_of(plan: Plan, value: Value) -> int:
    """What the kernels touch of a value at its largest."""
    rows, wanted = plan.options.max_rows, tables.max_wanted(plan)
    count = size(value.type.shape, rows, wanted)
    if value.type.dtype in ELEMENT_BYTES:
        return count * ELEMENT_BYTES[value.type.dtype]
    if value.type.dtype not in ("q8", "q8x2"):
        return nbytes(value.type, rows, wanted)
    words = 1 if value.type.dtype == "q8" else 2
    parts = [count] * words + [count // 8] * 2
    return sum(-(-part // GRANULE) * GRANULE for part in parts)


@dataclass
class Memory:
    """Which value each granule of the buffers holds; 0 is poison."""

    plan: Plan
    problems: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.owner: NDArray[np.int64] = np.zeros(self.plan.buffer_bytes // GRANULE + 1, np.int64)
        self.ids: dict[object, int] = {}
        self.offsets = {b.name: b.offset for b in self.plan.buffers}
        self.named = {name: root(v) for v, name in self.plan.names.items()}
        for value, where in self.plan.buffer_of.items():
            if value.node.op == "input":
                self.write("inputs", value, self.plan.buffers[where].offset)

    def say(self, where: str, problems: list[str]) -> None:
        self.problems += [f"{where}: {p}" for p in problems]

    def span(self, what: object, offset: int) -> slice:
        value, tiles = what if isinstance(what, tuple) else (what, False)
        need = tile_bytes(value.type) if tiles else bytes_of(self.plan, value)
        return slice(offset // GRANULE, -(-(offset + need) // GRANULE))

    def write(self, where: str, what: object, offset: int) -> None:
        span = self.span(what, offset)
        if offset % GRANULE or span.stop > self.plan.buffer_bytes // GRANULE + 1:
            self.say(where, [f"{what} is outside of the buffers, at {offset}"])
        self.owner[span] = self.ids.setdefault(what, len(self.ids) + 1)

    def expect(self, where: str, what: object, offset: int) -> None:
        held = self.owner[self.span(what, offset)] if what is not None else []
        if what is None or set(np.unique(held).tolist()) != {self.ids.get(what)}:
            self.say(where, [f"the bytes at {offset} hold something else"])

    def launch(self, where: str, text: LaunchText, planned: Planned, layer: int) -> None:
        reads: list[tuple[Arg, object, int]] = []
        writes: list[tuple[Arg, object, int]] = []
        for arg, spelled in zip(planned.launch.args, text.args, strict=True):
            found = re.fullmatch(r"(?:\([\w *]+\))?b\.(\w+)", spelled)
            if not found:
                self.say(where, self.fixed(arg, spelled, layer))
                continue
            offset = self.offsets[found[1]]
            tiles = (arg.kind == "weight") or (planned.node is None and arg.writes)
            what = (arg.value, True) if tiles else root(arg.value)
            (writes if arg.writes else reads).append((arg, what, offset))
        for arg, what, offset in reads:
            self.expect(f"{where} reads {self.plan.names.get(arg.value)}", what, offset)
        self.say(where, self.collisions(planned, reads, writes))
        for _, what, offset in writes:
            self.write(where, what, offset)

    def collisions(
        self,
        planned: Planned,
        reads: list[tuple[Arg, object, int]],
        writes: list[tuple[Arg, object, int]],
    ) -> list[str]:
        """What a launch writes over while it may still be read, or writes twice."""
        out: list[str] = []
        for at, (arg, what, offset) in enumerate(writes):
            for other, held, start in (*reads, *writes[at + 1 :]):
                a, b = self.span(what, offset), self.span(held, start)
                taken_over = other.value in planned.launch.in_place and offset == start
                if a.start < b.stop and b.start < a.stop and not (taken_over and not other.writes):
                    names = self.plan.names.get(arg.value), self.plan.names.get(other.value)
                    out.append(f"{names[0]} is written over {names[1]}")
        return out

    def fixed(self, arg: Arg, spelled: str, layer: int) -> list[str]:
        """An argument that is no buffer: the weight, cache or step that the plan means."""
        found = re.fullmatch(r"(tiles|vector)\(d, (\w+)\[([l\d +]+)\]\)", spelled)
        if found:
            place = self.plan.weights[arg.value, int(found[1] == "tiles")]
            here = tabled(self.plan, found[2], eval(found[3], {"l": layer}))
            return [] if here == place else [f"{spelled} is {here}, {place} is planned"]
        found = re.fullmatch(r"(tiles|vector|cache<\w+>)\(d, (\w+)(?:, ([l\d +]+))?\)", spelled)
        if not found:
            steps = arg.kind == "rows" or arg.value.node.op in ("input", "const")
            fits = steps and not (arg.kind == "rows" and spelled != "d.step")
            return [] if fits else [f"{arg.value} is spelled {spelled}"]
        how, name, index = found.groups()
        index = eval(index or "0", {"l": layer})
        plan = self.plan
        if how in ("tiles", "vector"):
            place = plan.weights[arg.value, int(how == "tiles")]
            want = (tables.family_name(plan, place.family), place.index)
            kind = "tiles" if arg.kind == "weight" else "vector"
        else:
            place = plan.caches[plan.cache_leaf(arg.value)]
            want = (tables.cache_name(plan, place.family), place.index)
            kind = f"cache<{'float' if arg.value.type.dtype == 'cache_f32' else 'uint16_t'}>"
        fits = (how, name, index) == (kind, *want)
        return [] if fits else [f"{spelled} is {name}[{index}], {want} is planned"]


ROW = re.compile(r'\{"([^"]*)", (\d+), (\d+), "(\w+)", \d+, \{([^}]*)\}, (\d+), (-?\d+), (-?\d+)\}')


def dumped(plan: Plan) -> Iterator[tuple[str, int, int]]:
    """(name, offset, launch) of every value that the table of stored values promises."""
    for row in tables.of(plan).values:
        found = ROW.fullmatch(row.fields[0])
        assert found, row.fields[0]
        name, first, count, _, _, offset, launch, period = found.groups()
        for i in range(int(count)):
            number = int(launch) + i * int(period)
            yield name.replace("%d", str(int(first) + i)), int(offset), number


def returned(plan: Plan) -> Iterator[tuple[str, Value, int]]:
    for row, (name, value) in zip(tables.of(plan).results, plan.graph.results, strict=True):
        found = ROW.fullmatch(row.fields[0])
        assert found and found[1] == name and found[4] == value.type.dtype, row
        yield name, value, int(found[6])


def promised(plan: Plan) -> set[str]:
    """The names of the table of stored values."""
    return {name for name, _, _ in dumped(plan)}
