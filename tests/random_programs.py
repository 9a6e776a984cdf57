"""Random graphs over rows, for tests of passes: what models do, in any order."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from compiler.graph import Graph, Note, Value, const, leaf
from compiler.ops import apply
from compiler.types import Type

ROWS, WIDTH = 3, 64
FORMATS = ("q8_0", "q4_1", "q4_0", "f32", "f16")
ONE = ("silu", "neg", "relu", "tanh", "sigmoid")
TWO = ("add", "mul", "sub", "add", "mul")


@dataclass
class Builder:
    """A program in the making; every step adds a value that may read any value before it."""

    rng: random.Random
    values: list[Value] = field(default_factory=list[Value])
    versions: dict[str, Value] = field(default_factory=dict[str, Value])
    notes: dict[object, Note] = field(default_factory=dict[object, Note])
    leaves: int = 0

    def any(self, *shapes: tuple[int, ...]) -> Value:
        shapes = shapes or ((ROWS, WIDTH),)
        return self.rng.choice([v for v in self.values if v.type.shape in shapes])

    def leaf(self, dtype: str, *shape: int, op: str = "input") -> Value:
        self.leaves += 1
        return leaf(op, f"{op}{self.leaves}", Type(dtype, shape))

    def put(self, value: Value) -> None:
        self.values.append(value)


def _one(b: Builder) -> Value:
    return apply(b.rng.choice(ONE), b.any((ROWS, WIDTH), (ROWS, 1), (WIDTH,)))


def _two(b: Builder) -> Value:
    left, right = b.any(), b.any((ROWS, WIDTH), (ROWS, 1), (WIDTH,))
    if b.rng.random() < 0.2:
        right = const(b.rng.choice((0.5, -0.0, 2.0)), "f32")
    operands = (left, right) if b.rng.random() < 0.7 else (right, left)
    return apply(b.rng.choice(TWO), *operands)


def _norm(b: Builder) -> Value:
    x = b.any()
    weight = [b.any((WIDTH,))] if b.rng.random() < 0.7 else []
    if b.rng.random() < 0.3:
        return apply("layernorm", x, *weight, eps=1e-5)
    return apply("rmsnorm", x, *weight, eps=1e-5)


def _linear(b: Builder) -> Value:
    out = b.rng.choice((WIDTH, WIDTH, 1))
    weight = b.leaf(b.rng.choice(FORMATS), out, WIDTH, op="weight")
    bias = [b.any((WIDTH,))] if out == WIDTH and b.rng.random() < 0.3 else []
    return apply("linear", b.any(), weight, *bias)


def _residual(b: Builder) -> Value:
    return apply("add", b.any(), b.any())


def _normed(b: Builder) -> Value:
    """A projection of the norm of a residual, of whose parts later steps may read some."""
    total = _residual(b)
    weight = [b.any((WIDTH,))] if b.rng.random() < 0.7 else []
    norm = apply("rmsnorm", total, *weight, eps=1e-6)
    for part in (total, norm):
        if b.rng.random() < 0.4:
            b.put(part)
    return apply("linear", norm, b.leaf("q8_0", WIDTH, WIDTH, op="weight"))


def _gated(b: Builder) -> Value:
    """Gate and up projections and their product, and at times what reads it."""
    x = b.any()
    gate, up = (
        apply("linear", x, b.leaf(b.rng.choice(FORMATS), WIDTH, WIDTH, op="weight")) for _ in "gu"
    )
    act = apply(b.rng.choice(("silu", "gelu_tanh", "sigmoid")), gate)
    product = apply("mul", *((act, up) if b.rng.random() < 0.7 else (up, act)))
    if b.rng.random() < 0.3:
        return product
    down = apply("linear", product, b.leaf("q8_0", WIDTH, WIDTH, op="weight"))
    return apply("add", down, b.any()) if b.rng.random() < 0.5 else down


def _experts(b: Builder) -> Value:
    """Picked experts of a value or its norm, and at times what they are added to."""
    x = b.any()
    if b.rng.random() < 0.6:
        x = apply("rmsnorm", x, *([b.any((WIDTH,))] if b.rng.random() < 0.7 else []), eps=1e-6)
    values = apply("top_k", apply("linear", x, b.leaf("f32", 5, WIDTH, op="weight")), k=2)
    index, shape = values.node.result(1), (5, WIDTH, WIDTH)
    gate, up = (
        apply("expert_linear", x, b.leaf(b.rng.choice(FORMATS), *shape, op="weight"), index)
        for _ in "gu"
    )
    h = apply("mul", apply(b.rng.choice(ONE), gate), up)
    down = apply("expert_linear", h, b.leaf("q8_0", *shape, op="weight"), index)
    total = apply("combine", down, apply(b.rng.choice(("softmax", "sigmoid")), values))
    return apply("add", total, b.any()) if b.rng.random() < 0.7 else total


def _choice(b: Builder) -> Value:
    """The index of the greatest output of a projection, as one more column."""
    x = b.any()
    if b.rng.random() < 0.6:
        x = apply("rmsnorm", x, *([b.any((WIDTH,))] if b.rng.random() < 0.7 else []), eps=1e-6)
    logits = apply("linear", x, b.leaf(b.rng.choice(FORMATS), WIDTH, WIDTH, op="weight"))
    if b.rng.random() < 0.5:
        logits = apply(b.rng.choice(ONE), logits)
    if b.rng.random() < 0.5:
        b.put(logits)
    chosen = apply("cast", apply("choose", logits), dtype="f32")
    return apply("reshape", chosen, shape=(ROWS, 1))


def _embedded(b: Builder) -> Value:
    """Tokens' rows, perhaps scaled, and perhaps the norm of them."""
    token = apply("argmax", b.any())
    x = apply("embed", token, b.leaf(b.rng.choice(FORMATS), WIDTH, WIDTH, op="weight"))
    if b.rng.random() < 0.3:
        x = apply("mul", x, const(8.0, "f32"))
    if b.rng.random() < 0.5:
        b.put(x)
    norm = apply("rmsnorm", x, *([b.any((WIDTH,))] if b.rng.random() < 0.7 else []), eps=1e-6)
    if b.rng.random() < 0.5:
        return norm
    return apply("linear", norm, b.leaf("q8_0", WIDTH, WIDTH, op="weight"))


def _factor(b: Builder) -> Value:
    return apply("mul", b.any(), b.any((ROWS, 1)))


def _column(b: Builder) -> Value:
    return apply("sum", apply("transpose", b.any()))


def _view(b: Builder) -> Value:
    return apply("reshape", apply("neg", apply("heads", b.any(), count=2)), shape=(ROWS, WIDTH))


def _cast(b: Builder) -> Value:
    return apply("cast", apply("cast", b.any(), dtype="f16"), dtype="f32")


def _append(b: Builder) -> Value:
    """Reads a cache version, perhaps an old one, or writes the next."""
    rows = leaf("input", "rows", Type("rows", (ROWS,)))
    entry = _heads(b, rows)
    last = b.versions.get("c") or leaf("cache", "c", Type("cache_f32", (2, 32)))
    b.versions["c"] = apply("append", last, entry, rows)
    read = last if b.rng.random() < 0.3 else b.versions["c"]
    return apply("attention", _heads(b, rows), read, read, rows)


def _heads(b: Builder, rows: Value) -> Value:
    """Two heads, perhaps normed and turned."""
    heads = apply("heads", b.any(), count=2)
    if b.rng.random() < 0.5:
        heads = apply("rmsnorm", heads, eps=1e-6)
    if b.rng.random() < 0.5:
        theta, way = b.rng.choice((1e4, 1e4, 1e6)), b.rng.choice((0, 0, 1))
        heads = apply("rope", heads, rows, theta=theta, interleaved=way)
    return heads


STEPS: tuple[Callable[[Builder], Value], ...] = (
    _one, _one, _two, _two, _two, _norm, _norm, _linear, _linear, _linear, _residual, _residual,
    _normed, _gated, _gated, _experts, _choice, _embedded, _factor, _column, _view,
    _cast, _append, _append,
)  # fmt: skip


def random_graph(seed: int, steps: int = 24) -> Graph:
    """The same graph for the same seed; all named values, in program order."""
    b = Builder(random.Random(seed))
    for shape in ((ROWS, WIDTH), (ROWS, WIDTH), (ROWS, 1), (WIDTH,)):
        b.put(b.leaf("f32", *shape))
    for _ in range(steps):
        b.put(b.rng.choice(STEPS)(b))
    unread = set(b.values) - {v for n in b.values for v in n.node.operands}
    results = [v for v in dict.fromkeys(b.values) if v in unread or b.rng.random() < 0.1]
    notes = {v.node: Note((f"v{i}",), frozenset(), i) for i, v in reversed([*enumerate(b.values)])}
    named = tuple((f"r{i}", v) for i, v in enumerate(results))
    return Graph(named, tuple(b.versions.values()), notes)
