"""A random program in the making: values that later steps may read, leaves, cache versions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from compiler.fuzz import draw
from compiler.fuzz.draw import EVERYTHING, Menu
from compiler.graph import Attr, Graph, Node, Note, Value, const, consumers, leaf
from compiler.ops import OPS, OpError, build
from compiler.types import BLOCKS, CACHES, GROUP, ROWS, WANTED, Dim, Type, size, whole

ELEMENTS = 1 << 15  # of a value, at most
FLOPS = 3_000_000  # of an op: the reference runs it too
SAMPLE_ROWS = 24  # what T counts for these limits

State = tuple[list[Value], dict[str, Value], dict[Node, Note]]


@dataclass
class Builder:
    """rows: the first dim of values that have one entry a row; T in programs that run in steps.

    bounds: inputs whose integers are indices below a number. weights: names of inputs that a
    checkpoint could hold. words: what weights, other inputs and values are called last. menu: sizes
    that come more often. Kernels whose values are called alike and whose sizes are the same are
    compiled once a unit.
    """

    rng: Random
    rows: Dim
    pool: list[Value] = field(default_factory=list[Value])
    versions: dict[str, Value] = field(default_factory=dict[str, Value])
    bounds: dict[Value, int] = field(default_factory=dict[Value, int])
    weights: set[str] = field(default_factory=set[str])
    words: tuple[str, str, str] = ("w", "x", "v")
    menu: Menu = EVERYTHING
    notes: dict[Node, Note] = field(default_factory=dict[Node, Note])
    leaves: int = 0

    @property
    def in_steps(self) -> bool:
        return self.rows == ROWS

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def input(self, dtype: str, *shape: Dim, bound: int = 0, kept: bool = True) -> Value:
        """A new input; `bound`: its integers are indices below it.

        An input has the step's rows: where [R, ...] is asked for, those of it that are wanted.
        """
        if WANTED in shape:
            every = self.input(dtype, ROWS, *shape[1:], bound=bound, kept=kept)
            return self.op("wanted", every, self.step_rows)
        self.leaves += 1
        made = leaf("input", f"x{self.leaves}", Type(dtype, shape))
        if dtype in BLOCKS:
            self.weights.add(f"x{self.leaves}")
        if bound:
            self.bounds[made] = bound
        if kept and dtype not in BLOCKS:
            self.pool.append(made)
        return made

    def weight(self, *shape: int, dtype: str = "") -> Value:
        """A matrix, or a vector of f32; formats of blocks where they fit."""
        formats = ("f32", "f16", "bf16")
        if len(shape) > 1:
            fit = [f for f in BLOCKS if shape[-1] % whole(f) == 0]
            formats = (*fit, *fit, *fit, *formats)
        usual = [f for f in formats if f in self.menu.formats] or formats
        formats = usual if self.chance(0.9) else formats
        chosen = dtype or ("f32" if len(shape) == 1 else self.rng.choice(formats))
        made = self.input(chosen, *shape, kept=len(shape) == 1 and self.chance(0.3))
        self.weights.add(str(made.node.attr("name")))
        return made

    @property
    def step_rows(self) -> Value:
        """The rows of the step, one input for all."""
        return leaf("input", "rows", Type("rows", (self.rows,)))

    def cache(self, heads: int, dims: int) -> Value:
        """A new cache."""
        made = leaf("cache", f"c{len(self.versions)}", Type("cache_f32", (heads, dims)))
        self.versions[str(made.node.attr("name"))] = made
        return made

    def op(self, name: str, *operands: Value, **attrs: Attr) -> Value:
        """The first result of an op; OpError where its rule is broken or it is too large."""
        return self.call(name, operands, attrs)[0]

    def call(self, name: str, operands: Iterable[Value], attrs: dict[str, Attr]) -> list[Value]:
        """All results of an op, in program order from here on."""
        made = build(name, tuple(operands), attrs)
        check_size(made)
        over = [v for v in consumers([made]) if self.in_steps]
        if any(v.node.op != "cache" for v in over):
            raise OpError("in steps a cache is written once")
        if any(v in n.operands for n in self.notes for v in over):
            raise OpError("in steps a cache is written before it is read")
        rank = len(self.notes)
        names = tuple(f"n{rank}_{i}.{self.words[2]}" for i in range(len(made.types)))
        self.notes.setdefault(made, Note(names, frozenset(), rank))
        results = [made.result(i) for i in range(len(made.types))]
        for v in results:
            if v.type.dtype in CACHES:
                self.versions[cache_name(v)] = v
        return results

    def state(self) -> State:
        """What `restore` brings back when a draw came to nothing."""
        return list(self.pool), dict(self.versions), dict(self.notes)

    def restore(self, state: State) -> None:
        self.pool, self.versions, self.notes = state

    def put(self, *values: Value) -> None:
        """Lets later steps read these."""
        self.pool += [v for v in values if v.type.dtype not in (*CACHES, *BLOCKS)]

    def maybe(self, value: Value, probability: float = 0.12) -> Value:
        """The value; now and then later steps may read it too."""
        if self.chance(probability):
            self.put(value)
        return value

    def pick(self, values: list[Value]) -> Value:
        """One of them, the newest more often."""
        if self.chance(0.5):
            return values[-1 - min(int(self.rng.expovariate(0.7)), len(values) - 1)]
        return self.rng.choice(values)

    def activation(self, width: int = 0) -> Value:
        """A value f32[rows, width] from the pool, or a new one."""
        fits = [v for v in self.pool if v.type.rank == 2 and v.type.dtype == "f32"]
        fits = [v for v in fits if v.type.shape[0] == self.rows and width in (0, v.type.shape[1])]
        if fits and self.chance(0.8):
            return self.pick(fits)
        block = GROUP if self.chance(0.85) else 1
        return self.input("f32", self.rows, width or self.width(block))

    def width(self, block: int) -> int:
        """A last axis, a multiple of `block`."""
        usual = [w for w in (self.menu.grouped if block > 1 else self.menu.plain) if w % block == 0]
        usually = self.chance(0.85) and usual
        return self.rng.choice(usual) if usually else draw.width(self.rng, block)

    def scalar(self) -> Value:
        return const(self.rng.choice((0.5, -0.0, 2.0, -1.5, 0.0, 1e-3)), "f32")

    def graph(self) -> Graph:
        """Everything that nothing reads is a result, and a few values besides."""
        made = list(dict.fromkeys(v for v in self.pool if v.node in self.notes))
        read = {v for n in self.notes for v in n.operands}
        results = [v for v in made if v not in read or self.chance(0.1)]
        unread = [
            n.result(i)
            for n in self.notes
            for i, t in enumerate(n.types)
            if n.result(i) not in read and t.is_number
        ]
        whole = dict.fromkeys([v for v in (*unread, *results) if v.type.is_number])
        named = tuple((f"r{i}", v) for i, v in enumerate(whole))
        effects = tuple(v for v in self.versions.values() if v.node.op != "cache")
        graph = Graph(named, effects, self.notes)
        leaves = {n: self._leaf_note(n) for n in graph.nodes() if n.op in ("input", "cache")}
        return graph.with_notes({**leaves, **self.notes})

    def _leaf_note(self, n: Node) -> Note:
        name = str(n.attr("name"))
        return Note((f"{name}.{self.words[name not in self.weights]}",))


def cache_name(version: Value) -> str:
    """The name of the cache that a version is of."""
    while version.node.op != "cache":
        version = next(v for v in version.node.operands if v.type.dtype in CACHES)
    return str(version.node.attr("name"))


def check_size(n: Node) -> None:
    """OpError where an op is more than the reference does in a moment."""
    if any(size(t.shape, SAMPLE_ROWS, SAMPLE_ROWS) > ELEMENTS for t in n.types):
        raise OpError("too many elements")
    ins, outs = [v.type for v in n.operands], list(n.types)
    rows = SAMPLE_ROWS if any(t.is_dynamic for t in (*ins, *outs)) else 1
    if rows * OPS[n.op].flops(ins, outs) > FLOPS:
        raise OpError("too much work")
