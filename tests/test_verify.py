"""The verifier: a good graph passes; every row has graphs that it must refuse, by that row."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compiler.graph import (
    Function,
    Graph,
    Node,
    Note,
    Value,
    call,
    const,
    function,
    leaf,
    node,
    param,
)
from compiler.ops import apply
from compiler.types import Type
from compiler.verify import ROWS, VerifyError, functions, verify

X = Type("f32", ("T", 64))
x = leaf("input", "x", X)
rows = leaf("input", "rows", Type("rows", ("T",)))
cache = leaf("cache", "c.k", Type("cache_f32", (2, 32)))
entry = apply("heads", x, count=2)
written = apply("append", cache, entry, rows)


def of(*values: Value, effects: tuple[Value, ...] = ()) -> Graph:
    return Graph(tuple((f"r{i}", v) for i, v in enumerate(values)), effects)


def attend(version: Value) -> Value:
    return apply("attention", entry, version, version, rows)


def chain(body: list[Node] | None = None, results: list[Value] | None = None) -> Function:
    p = param(0, X)
    a = apply("silu", p.result())
    b = apply("mul", a, const(2.0, "f32"))
    return function(
        "chain",
        [p],
        [a.node, b.node] if body is None else body,
        [b] if results is None else results,
    )


P0, P1 = param(0, X), param(1, X)
SILU = apply("silu", P0.result())
ONE = const(1.0, "f32")


def one(result: Value, *before: Node) -> Function:
    """A function of one param whose body is `before` and the result's node."""
    return function("f", [P0], [*before, result.node], [result])


def good() -> Graph:
    y = call(chain(), [x]).result()
    logits = attend(written)
    return of(y, logits, effects=(written,))


def copy(n: Node) -> Node:
    return Node(n.op, n.operands, n.attrs, n.types)


def typed(op: str, type_: Type, *operands: Value, **attrs: int) -> Value:
    """A node that no rule of an op made."""
    return node(op, operands, attrs, (type_,)).result()


def called(fn: Function, *operands: Value) -> Graph:
    return of(*(call(fn, operands).result(i) for i in range(len(fn.results))))


def stale() -> Graph:
    """Reads the first version behind the append, which needs what was read."""
    late = apply("append", cache, apply("heads", attend(cache), count=2), rows)
    return of(apply("attention", apply("heads", attend(late), count=2), cache, cache, rows),
              effects=(late,))  # fmt: skip


BROKEN: tuple[tuple[str, str, Callable[[], Graph]], ...] = (
    ("dtypes", "f33", lambda: of(leaf("input", "a", Type("f33", (4,))))),
    ("dims", "[0]", lambda: of(leaf("input", "a", Type("f32", (0,))))),
    ("dims", "[S]", lambda: of(leaf("input", "a", Type("f32", ("S",))))),
    ("dims", "[4, T]", lambda: of(leaf("input", "a", Type("f32", (4, "T"))))),
    ("groups", "q4_1[8, 48]", lambda: of(leaf("weight", "w", Type("q4_1", (8, 48))))),
    ("groups", "q8[T, 65]", lambda: of(typed("quantize", Type("q8", ("T", 65)), x, words=1))),
    ("types", "its rule says f32[T, 64]", lambda: of(typed("silu", Type("f32", ("T", 63)), x))),
    ("types", "add needs", lambda: of(typed("add", X, x, leaf("input", "i", Type("i32", (4,)))))),
    ("types", "there is no op", lambda: of(typed("silo", X, x))),
    ("types", "eps", lambda: of(typed("rmsnorm", X, x))),
    ("interned", "silu", lambda: of(copy(apply("silu", x).node).result())),
    ("interned", "second function", lambda: called(
        Function(chain().kind, chain().params, chain().body, chain().results), x)),
    ("leaves", "f32[4]", lambda: of(leaf("input", "a", Type("f32", (4,))),
                                   leaf("input", "a", Type("f32", (5,))))),
    ("leaves", "param", lambda: of(SILU)),
    ("results", "2 results are called 'y'", lambda: Graph((("y", x), ("y", apply("silu", x))))),
    ("results", "''", lambda: Graph((("", x),))),
    ("consumed", "2 nodes write over", lambda: of(
        effects=(written, apply("append", cache, apply("relu", entry), rows)))),
    ("readers", "attention", stale),
    ("effects", "no final version", lambda: of(
        effects=(written, apply("append", written, entry, rows)))),
    ("effects", "no final version", lambda: of(effects=(x,))),
    ("effects", "twice", lambda: of(effects=(written, written))),
    ("effects", "but no effect", lambda: of(attend(written))),
    ("calls", "takes f32[T, 64], got nothing", lambda: called(chain())),
    ("calls", "got f32[4, 64]", lambda: called(chain(), leaf("input", "a", Type("f32", (4, 64))))),
    ("calls", "its call has", lambda: of(
        node("call", [x], {"function": chain()}, [Type("f32", ("T", 1))]).result())),
    ("params", "out of order", lambda: called(
        function("f", [P1, P0], [apply("add", P0.result(), P1.result()).node],
                 [apply("add", P0.result(), P1.result())]), x, apply("silu", x))),
    ("params", "does not read param 1", lambda: called(
        function("f", [P0, P1], [SILU.node], [SILU]), x, apply("silu", x))),
    ("bodies", "before it is there", lambda: called(chain([apply("exp", SILU).node],
                                                          [apply("exp", SILU)]), x)),
    ("bodies", "before it is there", lambda: called(
        one(apply("add", P0.result(), x)), x)),
    ("bodies", "input", lambda: called(
        one(apply("add", SILU, x), SILU.node, x.node), x)),
    ("bodies", "call", lambda: called(
        one(call(chain(), [P0.result()]).result()), x)),
    ("bodies", "const", lambda: called(
        one(apply("add", P0.result(), ONE), ONE.node), x)),
    ("bodies", "not in its body", lambda: called(chain([SILU.node], [P0.result()]), x)),
    ("live", "nothing reads exp", lambda: called(chain([SILU.node, apply("exp", SILU).node],
                                                       [SILU]), x)),
    ("live", "one value twice", lambda: called(chain([SILU.node], [SILU, SILU]), x)),
    ("notes", "2 names for 1", lambda: Graph((("y", x),), (), {x.node: Note(("a", "b"))})),
)  # fmt: skip


def test_a_good_graph_passes() -> None:
    graph = good()
    assert verify(graph) is graph
    assert functions(graph) == [chain()]


IDS = [f"{row}-{i}" for i, (row, _, _) in enumerate(BROKEN)]


@pytest.mark.parametrize(("row", "text", "broken"), BROKEN, ids=IDS)
def test_refuses(row: str, text: str, broken: Callable[[], Graph]) -> None:
    with pytest.raises(VerifyError) as error:
        verify(broken())
    lines = [line for line in str(error.value).splitlines() if line.startswith(f"{row}: ")]
    assert any(text in line for line in lines), str(error.value)


def test_every_row_has_a_graph_that_it_refuses() -> None:
    assert {row.name for row in ROWS} == {row for row, _, _ in BROKEN}
