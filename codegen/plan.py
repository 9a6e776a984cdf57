"""The plan: a graph as launches of named kernels, rolled into loops, every buffer, weight and cache
in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from codegen import guards, layers, library, memory, roll
from codegen.expr import identifier
from codegen.families import (
    PLAIN,
    TILES,
    CacheFamily,
    Family,
    Member,
    cache_families,
    tile_bytes,
    weight_families,
)
from codegen.kernel import Arg, Context, Kernel, Launch
from codegen.launching import Launches, launches_of
from codegen.memory_of import cache_leaf, is_view, root
from codegen.one_row import with_one_row
from compiler.graph import Graph, Node, Value
from compiler.program import Program
from compiler.target import Options, Target
from compiler.types import nbytes


@dataclass(frozen=True)
class Planned:
    """One launch of the flat list: what it runs, and the node that it computes (None: a repack of
    an input)."""

    launch: Launch
    kernel: str
    node: Node | None
    one_kernel: str = ""  # of launch.one
    before: Node | None = None  # of a pair that is one launch: what its first computes

    @property
    def nodes(self) -> tuple[Node, ...]:
        """What the launch computes."""
        return tuple(n for n in (self.before, self.node) if n is not None)


@dataclass(frozen=True)
class Buffer:
    """A slot of the activations' allocation. name: how the emitted struct calls it; values: whose
    it is."""

    name: str
    offset: int
    nbytes: int
    values: tuple[Value, ...]
    first: int  # launch that it is alive at, of a loop's in the first iteration; and the last one
    last: int


@dataclass(frozen=True)
class Plan:
    """Everything that the emitted file says, as data."""

    program: Program
    target: Target
    options: Options
    names: Mapping[Value, str]
    kernels: Mapping[str, Kernel]  # in launch order
    launches: tuple[Planned, ...]
    loops: tuple[roll.Loop, ...]
    buffers: tuple[Buffer, ...]
    buffer_of: Mapping[Value, int]  # index into buffers, of every stored value and view
    buffer_bytes: int
    families: tuple[Family, ...]
    weights: Mapping[tuple[Value, int], Member]
    weight_bytes: int
    cache_families: tuple[CacheFamily, ...]
    caches: Mapping[Value, Member]
    cache_bytes: int  # of one position of one sequence

    @property
    def graph(self) -> Graph:
        return self.program.graph

    @property
    def makes_tiles(self) -> bool:
        """Whether launches make tiles of inputs, which others read as weights."""
        return any(p.node is None for p in self.launches)

    @cached_property
    def family_names(self) -> tuple[str, ...]:
        """What the emitted tables call each family."""
        taken: set[str] = set()
        labels = (f.label.replace(".", "_").upper() for f in self.families)
        return tuple(identifier(label, taken) for label in labels)

    @cached_property
    def cache_names(self) -> tuple[str, ...]:
        """The same of each cache family."""
        taken = set(self.family_names)
        names = (f.name.replace("{}", "").replace(".", "_").strip("_") for f in self.cache_families)
        return tuple(identifier(f"{n.upper().replace('__', '_')}_CACHE", taken) for n in names)

    def nodes_of(self, kernel: str) -> list[Node]:
        """What a kernel computes, by each of its launches."""
        out: list[Node] = []
        for before, p in zip((None, *self.launches), self.launches, strict=False):
            if p.one_kernel == kernel and before is not None and before.node is not None:
                out.append(before.node)
            if kernel in (p.kernel, p.one_kernel) and p.node is not None:
                out.append(p.node)
        return out

    def step(self, rows: int) -> tuple[Planned, ...]:
        """The launches of a step of so many rows, in order."""
        out: list[Planned] = []
        for p in self.launches:
            if rows == 1 and p.launch.one is not None:
                out[-1] = Planned(p.launch.one, p.one_kernel, p.node, before=out[-1].node)
            else:
                out.append(p)
        return tuple(out)

    def cache_leaf(self, value: Value) -> Value:
        """The cache that a version belongs to."""
        return cache_leaf(value)


def plan(program: Program, target: Target, options: Options, names: Mapping[Value, str]) -> Plan:
    """Plans a lowered program, whole; ProgramError lists every node that the target cannot
    compute."""
    context = Context(target, options, dict(names), on_request=_unread_logits(program))
    launches = with_one_row(launches_of(program.graph, context), program.graph, context)
    kernels, named = _name(launches)
    planned = tuple(
        Planned(a, named[a.kernel], node, named[a.one.kernel] if a.one else "")
        for a, node in launches
    )
    read = (
        (arg.value, TILES if arg.kind == "weight" else PLAIN)
        for p in planned
        for arg in p.launch.every_arg
        if arg.value.node.op == "weight"
    )
    families, weights, weight_bytes = weight_families(read, guards.gap(options))
    leaves = [n.result() for n in program.graph.nodes() if n.op == "cache"]
    caches, where, cache_bytes = cache_families(leaves, guards.cache_gap(options))
    store = _Store(program, options, planned, weights, where, layers.of(families))
    loops = roll.loops(store.items, store.kept)
    buffers, buffer_of, total = store.place(loops, names)
    return Plan(
        program, target, options, names, kernels, planned, loops, buffers, buffer_of, total,
        families, weights, weight_bytes, caches, where, cache_bytes,
    )  # fmt: skip


def _unread_logits(program: Program) -> frozenset[Value]:
    """A model's logits, where no launch reads them."""
    read = {root(v) for n in program.graph.nodes() for v in n.operands}
    found = [v for name, v in program.graph.results if program.is_model and name == "logits"]
    return frozenset(found) - read


def _name(launches: Launches) -> tuple[dict[str, Kernel], dict[Kernel, str]]:
    """Each distinct kernel once, called after what it computes, and as no helper is."""
    kernels: dict[str, Kernel] = {}
    named: dict[Kernel, str] = {}
    taken = set(library.defined())
    for launch, _ in launches:
        for kernel in (launch.kernel, *([launch.one.kernel] if launch.one else ())):
            if kernel not in named:
                name = identifier(kernel.base, taken)
                named[kernel] = name
                kernels[name] = kernel
    return kernels, named


class _Store:
    """Which launch makes which value, and where each value lives."""

    def __init__(
        self,
        program: Program,
        options: Options,
        planned: Sequence[Planned],
        weights: Mapping[tuple[Value, int], Member],
        caches: Mapping[Value, Member],
        known: layers.Layers,
    ) -> None:
        self.program, self.options, self.planned = program, options, planned
        self.weights, self.caches, self.layers = weights, caches, known
        self.makers: dict[Value, tuple[int, int]] = {}
        inputs = [n.result() for n in program.graph.nodes() if n.op == "input"]
        inputs = [v for v in inputs if v.type.dtype != "rows" and not self._is_token(v)]
        for index, leaf in enumerate(inputs):
            self.makers[leaf] = (-1 - index, 0)
        self.inputs = tuple(inputs)
        for number, p in enumerate(planned):
            for result, arg in enumerate(a for a in p.launch.args if a.writes):
                if arg.kind == "value" and p.node is not None:  # a repack makes tiles, no value
                    self.makers[arg.value] = (number, result)
        self.tiles = {
            p.launch.args[0].value: (number, 0)
            for number, p in enumerate(planned)
            if p.node is None
        }
        keys: dict[object, int] = {}
        self.items = tuple(self._item(number, p, keys) for number, p in enumerate(planned))

    def _is_token(self, value: Value) -> bool:
        return self.program.is_model and value.node.attr("name") == "token"

    def _item(self, number: int, p: Planned, keys: dict[object, int]) -> roll.Item:
        launch = p.launch
        read = [self._member(a) for a in launch.every_arg if a.value.node.op == "weight"]
        key = tuple(
            (a.kernel, self.layers.alike(a.arguments, read), a.grid, a.threads, a.shared)
            for a in (launch, launch.one)
            if a
        )
        refs = tuple(self._ref(number, arg, launch, p.node is None) for arg in launch.every_arg)
        return roll.Item(keys.setdefault(key, len(keys)), refs)

    def _ref(self, number: int, arg: Arg, launch: Launch, repacks: bool) -> roll.Ref:
        if arg.value.node.op == "weight":
            return roll.Ref("member", *self.layers.place(self._member(arg)))
        if arg.kind == "cache":
            where = self.caches[cache_leaf(arg.value)]
            return roll.Ref("member", -1 - where.family, where.index)
        if arg.kind == "rows" or self._is_leaf_token(arg):
            return roll.Ref("same")
        if arg.kind == "weight":
            return roll.Ref("value", *self.tiles[arg.value])
        if arg.writes and repacks:
            return roll.Ref("value", number, 0, True)
        maker = self.makers[root(arg.value)]
        return roll.Ref("value", *maker, arg.writes, arg.value in launch.in_place)

    def _member(self, arg: Arg) -> Member:
        return self.weights[arg.value, TILES if arg.kind == "weight" else PLAIN]

    def _is_leaf_token(self, arg: Arg) -> bool:
        return arg.value.node.op == "input" and arg.value not in self.makers

    @property
    def kept(self) -> list[roll.Made]:
        """What the program returns: read behind its last launch."""
        roots = (root(v) for _, v in self.program.graph.results)
        return [self.makers[v] for v in roots if v in self.makers]

    def nbytes(self, value: Value) -> int:
        limits = self.options
        wanted = min(limits.max_seqs, limits.max_rows)
        need = nbytes(value.type, limits.max_rows, wanted)
        parts = {"q8": 3, "q8x2": 4}.get(value.type.dtype, 1)  # each begins at a multiple of ALIGN
        return need + (parts - 1) * (memory.ALIGN + guards.part_gap(limits))

    def place(
        self, loops: tuple[roll.Loop, ...], names: Mapping[Value, str]
    ) -> tuple[tuple[Buffer, ...], dict[Value, int], int]:
        """The buffers in order of first use, which one each value has, and the bytes of all."""
        sizes = {maker: self.nbytes(v) for v, maker in self.makers.items()}
        sizes |= {maker: tile_bytes(v.type) for v, maker in self.tiles.items()}
        inputs = [self.makers[v] for v in self.inputs]
        lives = memory.lifetimes(self.items, loops, sizes, [*inputs, *self.kept])
        offsets, total = memory.place(
            lives, not (self.options.dump or self.options.guard), guards.gap(self.options)
        )
        join = memory.joined(self.items, loops)
        owners: dict[memory.Slot, list[Value]] = {}
        for value, maker in (*self.makers.items(), *self.tiles.items()):
            owners.setdefault(memory.slot_of(*maker, loops, join), []).append(value)
        life_of = {life.slot: life for life in lives}
        buffers: list[Buffer] = []
        buffer_of: dict[Value, int] = {}
        taken: set[str] = set()
        for slot in sorted((s for s in offsets), key=lambda s: (s[0] >= 0, abs(s[0]), s[1])):
            values = owners[slot]
            tile = slot in self.tiles.values()
            base = f"{names[values[-1]]}_tiles" if tile else names[values[-1]]
            name = identifier(short_name(base), taken)
            for value in values if not tile else ():
                buffer_of[value] = len(buffers)
            life = life_of[slot]
            where = (offsets[slot], life.nbytes, tuple(values), life.first, life.last)
            buffers.append(Buffer(name, *where))
        for node in self.program.graph.nodes():
            for v in map(node.result, range(len(node.types))):
                if is_view(node) and root(v) in buffer_of:
                    buffer_of[v] = buffer_of[root(v)]
        return tuple(buffers), buffer_of, total


def short_name(name: str) -> str:
    """`l3.attend.q` -> `attend_q`: what all layers call it."""
    parts = [p for p in name.split(".") if not (p[:1] == "l" and p[1:].isdigit())]
    return "_".join(parts)
