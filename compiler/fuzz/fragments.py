"""Stretches of programs as models have them, in all their forms: what every fusion is made for.

A fragment takes and gives f32[rows, width]; now and then a value inside is read later too.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler.fuzz.builder import Builder
from compiler.graph import Value, const
from compiler.ops import OpError
from compiler.types import GROUP

Fragment = Callable[[Builder, Value], Value]


def width(x: Value) -> int:
    last = x.type.shape[-1]
    assert isinstance(last, int)
    return last


def project(b: Builder, x: Value, outputs: int, dtype: str = "") -> Value:
    """A projection, with a bias now and then."""
    bias = [b.weight(outputs)] if b.chance(0.25) else []
    return b.op("linear", x, b.weight(outputs, width(x), dtype=dtype), *bias)


def norm(b: Builder, x: Value) -> Value:
    weight = [b.weight(width(x))] if b.chance(0.75) else []
    name = "layernorm" if b.chance(0.2) else "rmsnorm"
    more = [b.weight(width(x))] if name == "layernorm" and weight and b.chance(0.5) else []
    return b.maybe(b.op(name, x, *weight, *more, eps=b.rng.choice((1e-6, 1e-5))))


def activation(b: Builder, x: Value) -> Value:
    kind = b.rng.choice(("silu", "silu", "gelu_tanh", "gelu_erf", "relu", "sigmoid", "clamped"))
    return clamped(b, x) if kind == "clamped" else b.op(kind, x)


def number(value: float) -> Value:
    return const(value, "f32")


def clamped(b: Builder, gate: Value) -> Value:
    """min(g, 7) * sigmoid(1.702 min(g, 7)), by relu."""
    limit = number(7.0)
    least = b.op("sub", limit, b.op("relu", b.op("sub", limit, gate)))
    return b.op("mul", least, b.op("sigmoid", b.op("mul", number(1.702), least)))


def residual(b: Builder, x: Value, y: Value) -> Value:
    """x + y, y normed first now and then (a sandwich)."""
    if b.chance(0.25):
        y = norm(b, y)
    return b.op("add", *((x, y) if b.chance(0.8) else (y, x)))


def mlp(b: Builder, x: Value) -> Value:
    """x + down(act(gate(norm(x))) * up(norm(x)))."""
    hidden = b.width(GROUP)
    n = norm(b, x) if b.chance(0.9) else x
    gate = b.maybe(project(b, n, hidden))
    up = b.maybe(project(b, n, hidden))
    if b.chance(0.2):
        up = b.op("add", up, number(1.0))
    a = b.maybe(activation(b, gate))
    h = b.maybe(b.op("mul", *((a, up) if b.chance(0.7) else (up, a))))
    return residual(b, x, b.maybe(project(b, h, width(x))))


def head(b: Builder, x: Value, heads: int, dims: int, angles: dict[str, float | int]) -> Value:
    """Heads with their norm and their rotation, each now and then."""
    y = b.op("heads", x, count=heads)
    if b.chance(0.5):
        weight = [b.weight(dims)] if b.chance(0.8) else []
        y = b.maybe(b.op("rmsnorm", y, *weight, eps=1e-6))
    if angles:
        freqs = [b.weight(dims // 2)] if angles.get("freqs") else []
        plain = {k: v for k, v in angles.items() if k != "freqs"}
        y = b.op("rope", y, *freqs, b.step_rows, **plain)
    return b.maybe(y)


def rotation(b: Builder, dims: int) -> dict[str, float | int]:
    if dims % 2 or b.chance(0.2):
        return {}
    out: dict[str, float | int] = {"theta": b.rng.choice((10000.0, 1e6))}
    if b.chance(0.3):
        out["interleaved"] = 1
    if b.chance(0.3) and dims >= 4:
        out["dims"] = dims // 2 // 2 * 2
    elif b.chance(0.15):
        out["freqs"] = 1
    if b.chance(0.15):
        out["factor"] = 4.0
    return out


def attend(b: Builder, x: Value) -> Value:
    """x + out(attention(rope(q), k, v)) with all that models put between."""
    groups, queries, dims = b.rng.choice(b.menu.heads)
    heads = groups * queries
    n = norm(b, x)
    angles = rotation(b, dims)
    q = head(b, project(b, n, heads * dims), heads, dims, angles)
    k = head(b, project(b, n, groups * dims), groups, dims, angles)
    v = b.op("heads", project(b, n, groups * dims), count=groups)
    keys = b.op("append", b.cache(groups, dims), k, b.step_rows)
    values = b.op("append", b.cache(groups, dims), v, b.step_rows)
    sinks = [b.weight(heads)] if b.chance(0.2) else []
    y = b.maybe(b.op("attention", q, keys, values, *sinks, b.step_rows, **masks(b)))
    if b.chance(0.3):
        y = b.op("mul", y, b.op("sigmoid", project(b, n, heads * dims)))
    return residual(b, x, b.maybe(project(b, y, width(x))))


def masks(b: Builder) -> dict[str, float | int]:
    """What attention is told besides: a window, a scale, a softcap, each now and then."""
    out: dict[str, float | int] = {"window": b.rng.choice(b.menu.windows)}
    if b.chance(0.15):
        out["scale"] = b.rng.choice((1.0, 0.02, 0.125))
    if b.chance(0.2):
        out["softcap"] = b.rng.choice((50.0, 1.0))
    return out


def experts(b: Builder, x: Value) -> Value:
    """x + the prelude's moe of norm(x)."""
    (count, picks), hidden = b.rng.choice(b.menu.experts), b.width(GROUP)
    n = norm(b, x)
    scores = project(b, n, count, dtype=b.rng.choice(("f32", "f32", "")))
    values, index = b.call("top_k", [scores], {"k": picks})
    share = shares(b, scores, values)
    gate = b.weight(count, hidden, width(x))
    up = b.weight(count, hidden, width(x), dtype=gate.type.dtype if b.chance(0.7) else "")
    down = b.weight(count, width(x), hidden)
    g = b.maybe(b.op("expert_linear", n, gate, index))
    h = b.op("mul", activation(b, g), b.op("expert_linear", n, up, index))
    y = b.op("combine", b.maybe(b.op("expert_linear", h, down, index)), share)
    return residual(b, x, b.maybe(y))


def shares(b: Builder, scores: Value, values: Value) -> Value:
    if b.chance(0.7):
        return b.op("softmax", values)
    if b.chance(0.5):
        return b.op("sigmoid", values)
    greatest = b.op("max", b.op("heads", scores, count=1))
    shifted = b.op("exp", b.op("sub", scores, greatest))
    total = b.op("sum", b.op("heads", shifted, count=1))
    return b.op("div", b.op("exp", b.op("sub", values, greatest)), total)


def embedded(b: Builder, x: Value) -> Value:
    """The rows of a table, scaled now and then; its norm follows mostly."""
    table = b.weight(b.rng.choice((5, 16, 33)), width(x))
    entries = table.type.shape[0]
    assert isinstance(entries, int)
    y = b.op("embed", b.input("i32", b.rows, bound=entries), table)
    if b.chance(0.2):
        y = b.op("mul", y, number(8.0))
    return norm(b, b.maybe(y, 0.5)) if b.chance(0.7) else y


def chosen(b: Builder, x: Value) -> Value:
    """The end of a model: wanted rows, norm, logits, the choice."""
    last = b.op("wanted", x, b.step_rows) if b.chance(0.7) else x
    logits = project(b, norm(b, last), b.rng.choice((b.menu.plain[0], 257, 96, 256)))
    b.put(b.op("choose" if b.chance(0.7) else "argmax", b.maybe(logits, 0.6)))
    return x


def scaled(b: Builder, x: Value) -> Value:
    """A run of elementwise ops, with members that branch off."""
    for _ in range(b.rng.randint(1, 4)):
        kind = b.rng.choice(("one", "two", "number", "row", "column"))
        if kind == "one":
            x = activation(b, x)
        elif kind == "number":
            x = b.op(b.rng.choice(("mul", "add", "sub", "div")), x, b.scalar())
        elif kind == "row":
            x = b.op("mul", x, b.input("f32", b.rows, 1))
        elif kind == "column":
            x = b.op("add", x, b.weight(width(x)))
        else:
            x = b.op(b.rng.choice(("add", "mul", "sub")), x, b.activation(width(x)))
        x = b.maybe(x, 0.3)
    return x


def projected(b: Builder, x: Value) -> Value:
    """Projections of one activation, of different formats; a norm before them now and then."""
    n = norm(b, residual(b, x, b.activation(width(x)))) if b.chance(0.6) else x
    for _ in range(b.rng.randint(1, 3)):
        b.put(project(b, n, b.width(GROUP if b.chance(0.6) else 1)))
    return project(b, n, width(x))


def model(b: Builder, x: Value) -> Value:
    """Rows of a table, layers of one width, the choice."""
    y = embedded(b, x) if b.chance(0.7) else x
    for _ in range(b.rng.randint(1, 2)):
        y = b.rng.choice((mlp, mlp, experts))(b, attend(b, y))
    return chosen(b, y)


FRAGMENTS: tuple[Fragment, ...] = (
    attend, attend, attend, mlp, mlp, mlp, experts, experts, embedded, chosen, scaled, scaled,
    projected, projected, model,
)  # fmt: skip


def random_fragment(b: Builder) -> bool:
    """Adds a fragment; False where it would be too large."""
    before = b.state()
    try:
        x = b.activation()
        b.put(b.rng.choice(FRAGMENTS)(b, x))
    except OpError:
        b.restore(before)
        return False
    return True
