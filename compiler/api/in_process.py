"""A plan run in process: its launch list as plain tasks, its memory on a machine, steps of rows.

Contract: what a step computes is what `forward` of the emitted `.cu` computes. Programs of inputs;
weights are inputs that are given once, in the checkpoint's format.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen import render, tables
from codegen.expr import CTYPES
from codegen.families import TILES
from codegen.forms import MANY_PAGES, group_of_rows, have_many
from codegen.kernel import Arg, Launch
from codegen.memory_of import root
from codegen.plan import Plan, Planned
from compiler.api.tiles import tiled
from compiler.diagnostics import UserError
from compiler.encode import encode
from compiler.formats import FORMATS
from compiler.graph import Value
from compiler.types import ACTIVATIONS, FLOATS, Type, nbytes, size
from runtime.device import POISON, Argument, Machine, Module, Number, Place, Task, run
from runtime.inputs import plain_dtype

Array = NDArray[Any]
ALIGN = 256
GUARD = 4096  # bytes behind an allocation that nothing may write
PAGE = 64  # positions
STEP_SIZE = "sizeof(Step)"


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def tasks(plan: Plan, rows: int, wanted: int) -> tuple[Task, ...]:
    """Every launch of a step of these counts."""
    group = group_of_rows(rows, have_many(p.launch for p in plan.launches))
    forms = {"ROWS": group, "FEW": min(group, 8), "WANTED": group_of_rows(wanted, many=False)}
    counts = {"rows": rows, "wanted": wanted, "pages": MANY_PAGES}
    names = {**counts, "ceil_div": ceil_div, **forms}

    def number(text: str) -> int:
        return int(eval(text, {"__builtins__": {}}, names))

    def spelled(text: str) -> str:
        return re.sub(r"\b(ROWS|FEW|WANTED)\b", lambda m: str(forms[m[0]]), text)

    def task(p: Planned) -> Task:
        launch: Launch = p.launch
        arguments = ", ".join(map(spelled, launch.arguments))
        kernel = f"{p.kernel}<{arguments}>" if arguments else p.kernel
        grid = (number(launch.grid.x), number(launch.grid.y), number(launch.grid.z))
        hidden = "sizeof" in launch.shared
        shared = spelled(launch.shared) if hidden else number(launch.shared)
        args = tuple(argument(plan, p, arg) for arg in launch.args)
        return Task(kernel, grid, number(launch.threads), shared, args)

    return tuple(map(task, plan.step(rows)))


def argument(plan: Plan, p: Planned, arg: Arg) -> Argument:
    """An argument as render spells it, as a place."""
    value = arg.value
    if value.node.op == "weight":
        where = plan.weights[value, TILES if arg.kind == "weight" else 0]
        family = plan.families[where.family]
        return (Place("weights", family.offset + where.index * family.stride),)
    if arg.kind == "cache":
        where = plan.caches[plan.cache_leaf(value)]
        cache = plan.cache_families[where.family]
        return (Place("cache", cache.offset + where.index * cache.position_bytes),)
    if arg.kind == "rows":
        return (Place("step"),)
    if value.node.op == "const":
        held = value.node.attr("value")
        assert isinstance(held, int | float)
        return Number(held, CTYPES[value.type.dtype])
    if arg.kind == "weight" or (p.node is None and arg.writes):
        name = tables.tile_buffer(plan, value)
        return (Place("buffers", next(b.offset for b in plan.buffers if b.name == name)),)
    offset = plan.buffers[plan.buffer_of[root(value)]].offset
    return tuple(Place("buffers", at) for at in parts(plan, value.type, offset))


def parts(plan: Plan, t: Type, offset: int) -> list[int]:
    """Where the parts of a value begin: of a quantized one words, low words, scales, sums."""
    if t.dtype not in ACTIVATIONS:
        return [offset]
    count = size(t.shape, plan.options.max_rows, tables.max_wanted(plan))
    out = [offset]
    for nbytes_ in (count, *([count] if t.dtype == "q8x2" else []), count // 8):
        out.append(out[-1] + ceil_div(nbytes_, ALIGN) * ALIGN)
    return out


@dataclass(frozen=True)
class Rows:
    """A step: each row's sequence and position, which rows are wanted."""

    seq: Sequence[int]
    pos: Sequence[int]
    wanted: Sequence[int]


class Resident:
    """A plan in a machine's memory. `places`: every (sequence, position) pair that will come.

    counts: (rows, wanted) of the steps to come, whose kernels are compiled. weights: numbers of the
    weights, by name.
    """

    def __init__(
        self,
        plan: Plan,
        machine: Machine,
        counts: Sequence[tuple[int, int]],
        places: Array,
        weights: Mapping[str, Array],
    ) -> None:
        self.plan, self.machine = plan, machine
        self.tasks = {key: tasks(plan, *key) for key in dict.fromkeys(counts)}
        every = [t for listed in self.tasks.values() for t in listed]
        kernels = list(dict.fromkeys(t.kernel for t in every))
        sizes = [STEP_SIZE, *(t.shared for t in every if isinstance(t.shared, str))]
        text = render.render(plan)
        self.module: Module = machine.load(text, kernels, list(dict.fromkeys(sizes)))
        self.limits = limits(plan)
        self.sequences = int(places[:, 0].max()) + 1 if len(places) else 1
        last = int(places[:, 1].max()) if len(places) else 0
        self.pages = last // PAGE + 1
        self.lengths = {
            "weights": plan.weight_bytes,
            "buffers": plan.buffer_bytes,
            "cache": plan.cache_bytes * self.positions,
            "step": step_bytes(*self.limits),
            "pages": 4 * self.sequences * self.pages,
        }
        if self.module.sizes[STEP_SIZE] != self.lengths["step"]:
            raise UserError(f"Step has {self.module.sizes[STEP_SIZE]} bytes: its fields changed")
        self.spaces = {k: machine.allocate(n + GUARD) for k, n in self.lengths.items()}
        machine.upload(self.spaces["cache"], bytes(self.lengths["cache"]))
        table = np.arange(self.sequences * self.pages, dtype=np.int32)
        machine.upload(self.spaces["pages"], table.tobytes())
        for (leaf, layout), member in plan.weights.items():
            family = plan.families[member.family]
            at = self.spaces["weights"] + family.offset + member.index * family.stride
            machine.upload(at, laid_out(leaf, layout, weights[str(leaf.node.attr("name"))]))

    @property
    def positions(self) -> int:
        return self.sequences * self.pages * PAGE

    def step(self, rows: Rows, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Runs a step; the results by name, those of T or R rows as long as this step's counts."""
        self._poison()
        for n in self.plan.graph.nodes():
            if n.op == "input" and n.types[0].dtype != "rows":
                name = str(n.attr("name"))
                self._put(n.result(), inputs[name])
        record = packed_step(rows, *self.limits, self.pages, self.spaces["pages"])
        self.machine.upload(self.spaces["step"], record)
        counts = (len(rows.seq), len(rows.wanted))
        run(self.module, self.tasks[counts], self.spaces, self.positions)
        return {name: self._get(v, *counts) for name, v in self.plan.graph.results}

    def _poison(self) -> None:
        """What an earlier step left is not there for this one to find."""
        fresh = bytes([POISON]) * self.lengths["buffers"]
        self.machine.upload(self.spaces["buffers"], fresh)

    def _offset(self, value: Value) -> int:
        return self.plan.buffers[self.plan.buffer_of[root(value)]].offset

    def _put(self, value: Value, array: Array) -> None:
        at = self.spaces["buffers"] + self._offset(value)
        self.machine.upload(at, stored(value.type, array))

    def _get(self, value: Value, rows: int, wanted: int) -> Array:
        count = nbytes(value.type, rows, wanted)
        data = self.machine.download(self.spaces["buffers"] + self._offset(value), count)
        shape = [{"T": rows, "R": wanted}[d] if isinstance(d, str) else d for d in value.type.shape]
        return read(value.type, data).reshape(shape)

    def check_guards(self) -> None:
        """UserError where something wrote behind an allocation."""
        for name, length in self.lengths.items():
            tail = self.machine.download(self.spaces[name] + length, GUARD)
            if tail != bytes([POISON]) * GUARD:
                raise UserError(f"a kernel wrote behind the {name} of {length} bytes")

    def close(self) -> None:
        for at in self.spaces.values():
            self.machine.free(at)


def laid_out(leaf: Value, layout: int, array: Array) -> bytes:
    """A weight's numbers as the device holds them."""
    weight = encode(FORMATS[leaf.type.dtype], np.asarray(array, np.float32))
    return tiled(weight) if layout == TILES else weight.values().tobytes()


def limits(plan: Plan) -> tuple[int, int]:
    """MAX_ROWS and MAX_WANTED, by which Step is laid out."""
    scalars = tables.of(plan).scalars
    return int(scalars["rows"]), int(scalars["wanted"])


def step_bytes(rows: int, wanted: int) -> int:
    """sizeof(Step): it ends with a pointer."""
    ints = 2 + 3 * rows + wanted + 1
    return ceil_div(4 * ints, 8) * 8 + 8


def packed_step(rows: Rows, most: int, most_wanted: int, pages: int, table: int) -> bytes:
    """A Step (templates/header.cu.j2) as bytes; tokens are 0."""

    def padded(values: Sequence[int], count: int) -> list[int]:
        return [*map(int, values[:count]), *[0] * (count - len(values))]

    ints = [  # a program of a fixed count of rows has no room for those of a step
        *(min(len(rows.seq), most), min(len(rows.wanted), most_wanted)),
        *([0] * most),
        *padded(rows.seq, most),
        *padded(rows.pos, most),
        *padded(rows.wanted, most_wanted),
        pages,
    ]
    body = struct.pack(f"={len(ints)}i", *ints)
    return body + bytes(-len(body) % 8) + struct.pack("=Q", table)


def stored(t: Type, array: Array) -> bytes:
    """An input's plain array as a buffer holds it."""
    if t.dtype in FORMATS and t.dtype not in ("f32", "f16"):
        return encode(FORMATS[t.dtype], np.asarray(array, np.float32)).data.tobytes()
    return np.ascontiguousarray(array, plain_dtype(t)).tobytes()


def read(t: Type, data: bytes) -> Array:
    """A buffer's bytes as the array that the VM has; bf16 as f32."""
    if t.dtype == "bf16":
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    assert t.dtype in (*FLOATS, "i32", "i64"), t
    return np.frombuffer(data, plain_dtype(t))
