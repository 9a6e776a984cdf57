"""The rewriting engine: what patterns match and build, what rules keep, and what stops them."""

from __future__ import annotations

from typing import cast

import pytest

from compiler.diagnostics import Span
from compiler.graph import Frame, Graph, Node, Note, Value, const, leaf
from compiler.ops import OpError, apply
from compiler.target import HOST, Options
from compiler.types import Type
from passes.context import Context
from passes.parse import parse_pattern
from passes.pattern import Match, instance, matches
from passes.rewrite import Rule, RuleError, Site, rewrite

CONTEXT = Context(Options(), HOST)
x, y = (leaf("input", name, Type("f32", (4, 64))) for name in "xy")
g = leaf("input", "g", Type("f32", (64,)))


def first(pattern: str, value: Value) -> dict[str, object] | None:
    found = next(matches(parse_pattern(pattern), value), None)
    return None if found is None else dict(found.bound)


def number(value: float) -> Value:
    return const(value, "f32")


@pytest.mark.parametrize(
    ("pattern", "value", "bound"),
    [
        ("a", x, {"a": x}),
        ("a - b", apply("sub", x, y), {"a": x, "b": y}),
        ("a + a", apply("add", x, x), {"a": x}),
        ("a + a", apply("add", x, y), None),
        ("silu(a) * b", apply("mul", y, apply("silu", x)), {"a": x, "b": y}),
        ("silu(a) - b", apply("sub", y, apply("silu", x)), None),
        ("a * b + a", apply("add", y, apply("mul", x, y)), {"a": y, "b": x}),
        ("a * 2", apply("mul", x, number(2.0)), {"a": x}),
        ("a * 2", apply("mul", number(2.0), x), {"a": x}),
        ("a * 2", apply("mul", x, number(3.0)), None),
        ("a * 0.0", apply("mul", x, number(-0.0)), None),
        ("rmsnorm(a, w)", apply("rmsnorm", x, g, eps=1e-6), {"a": x, "w": g}),
        ("rmsnorm(a, w)", apply("rmsnorm", x, eps=1e-6), None),
        ("rmsnorm(a, eps=e)", apply("rmsnorm", x, eps=1e-6), {"a": x, "e": 1e-6}),
        ("rmsnorm(a, eps=1e-6)", apply("rmsnorm", x, eps=1e-6), {"a": x}),
        ("rmsnorm(a, eps=1e-5)", apply("rmsnorm", x, eps=1e-6), None),
        ("rmsnorm(rmsnorm(a, eps=e), eps=e)",
         apply("rmsnorm", apply("rmsnorm", x, eps=1e-6), eps=1e-5), None),
        ("neg(a)", apply("neg", x), {"a": x}),
        ("-a / b", apply("div", apply("neg", x), y), {"a": x, "b": y}),
    ],
)  # fmt: skip
def test_match(pattern: str, value: Value, bound: dict[str, object] | None) -> None:
    assert first(pattern, value) == bound


def test_all_orders_of_commutative_operands_are_tried() -> None:
    value = apply("add", apply("mul", x, y), apply("mul", y, x))
    found = {(m.value("a"), m.value("b")) for m in matches(parse_pattern("a * b + b * a"), value)}
    assert found == {(x, y), (y, x)}


def test_matched_nodes_are_the_calls_root_first() -> None:
    inner = apply("silu", x)
    root = apply("mul", inner, y)
    (found, *_) = matches(parse_pattern("silu(a) * b"), root)
    assert found.nodes == (root.node, inner.node)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rmsnorm(a, epsilon=e)", "no attribute epsilon"),
        ("rmsnorm(a, eps=b + c)", "attribute is a letter or a number"),
        ("a[0]", "letters, numbers and calls"),
        ("a, b", "one expression"),
    ],
)
def test_what_is_no_pattern(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_pattern(text)
    with pytest.raises(OpError, match="no op rmsnrm; did you mean rmsnorm"):
        parse_pattern("rmsnrm(a)")


def test_instance_gives_numbers_the_dtype_beside_them() -> None:
    i = leaf("input", "i", Type("i64", (4,)))
    assert instance(parse_pattern("a * 2 + 1"), {"a": i}) == apply(
        "add", apply("mul", i, const(2, "i64")), const(1, "i64")
    )


def origin(line: int) -> frozenset[tuple[Frame, ...]]:
    return frozenset({(Frame(Span("m", line, 1, 2)),)})


def graph(value: Value, *named: tuple[Value, str]) -> Graph:
    """A graph whose named values stand on lines 0, 1, 2..."""
    notes = {v.node: Note((name,), origin(i), i) for i, (v, name) in enumerate(named)}
    return Graph((("out", value),), (), notes)


HALVE = Rule("halve", "a * 2.0", "a + a")


def test_rules_run_to_a_fixpoint_and_everywhere() -> None:
    twice = apply("mul", apply("mul", x, number(2.0)), number(2.0))
    done = rewrite(graph(apply("silu", twice)), [HALVE], CONTEXT)
    once = apply("add", x, x)
    assert done.results == (("out", apply("silu", apply("add", once, once))),)


def test_no_match_leaves_the_graph() -> None:
    before = graph(apply("silu", x), (x, "x"))
    assert rewrite(before, [HALVE], CONTEXT) is before


def test_the_first_rule_that_fits_wins_and_is_logged() -> None:
    log: list[str] = []
    other = Rule("other", "a * 2.0", "a - neg(a)")
    done = rewrite(
        graph(apply("mul", x, number(2.0))), [HALVE, other], Context(Options(), HOST, log.append)
    )
    assert done.results[0][1] == apply("add", x, x)
    assert log == ["halve"]


def test_names_origins_and_places_move_to_what_is_new() -> None:
    norm = apply("rmsnorm", x, g, eps=1e-6)
    root = apply("mul", norm, y)
    rule = Rule("split", "rmsnorm(a, w, eps=e) * b", "rmsnorm(a, eps=e) * w * b",
                suffixes={"rmsnorm": "plain"})  # fmt: skip
    before = graph(root, (x, "x"), (norm, "n"), (root, "r"))
    done = rewrite(before, [rule], CONTEXT)
    plain = apply("rmsnorm", x, eps=1e-6)
    scaled = apply("mul", plain, g)
    assert done.note(plain.node) == Note(("n.plain",), origin(1), 2)
    assert done.note(scaled.node) == Note((None,), origin(1) | origin(2), 2)
    assert done.note(apply("mul", scaled, y).node) == Note(("r",), origin(1) | origin(2), 2)
    assert done.note(x.node) == before.note(x.node)


def test_a_survivor_keeps_its_name() -> None:
    add = apply("add", x, y)
    root = apply("neg", apply("neg", add))
    done = rewrite(graph(root, (x, "x"), (add, "s"), (root, "t")),
                   [Rule("twice", "neg(neg(a))", "a")], CONTEXT)  # fmt: skip
    assert done.results == (("out", add),)
    assert done.note(add.node) == Note(("s",), origin(1) | origin(2), 1)


def test_guards_see_who_reads_a_node_and_that_results_are_read_outside() -> None:
    norm = apply("rmsnorm", x, eps=1e-6)
    root = apply("silu", norm)
    seen: list[list[Node] | None] = []

    def when(site: Site) -> bool:
        seen.append(site.readers(norm.node))
        assert site.context is CONTEXT
        return False

    rule = Rule("never", "silu(a)", "a", when=when)
    rewrite(graph(root), [rule], CONTEXT)
    rewrite(Graph((("a", root), ("b", norm))), [rule], CONTEXT)
    assert seen == [[root.node], None]


def test_a_rewrite_may_be_a_function() -> None:
    rule = Rule("swap", "a - b", lambda bound: apply("neg", cast(Value, bound["b"])))
    done = rewrite(graph(apply("sub", x, y)), [rule], CONTEXT)
    assert done.results[0][1] == apply("neg", y)


def test_a_rule_that_changes_a_type_is_refused_by_name() -> None:
    rule = Rule("lose-rows", "sum(a) + b", "b")
    wide = apply("add", apply("sum", x), leaf("input", "s", Type("f32", ())))
    with pytest.raises(RuleError, match=r"rule lose-rows changed a type: f32\[4\] became f32$"):
        rewrite(graph(wide), [rule], CONTEXT)


def test_rules_that_undo_each_other_are_named() -> None:
    there, back = Rule("there", "silu(a)", "relu(a)"), Rule("back", "relu(a)", "silu(a)")
    with pytest.raises(RuleError, match=r"each other without end: back, there$"):
        rewrite(graph(apply("silu", x)), [there, back, HALVE], CONTEXT)


def test_a_rule_that_grows_without_end_is_named() -> None:
    grow = Rule("grow", "silu(a)", "silu(relu(a))")
    with pytest.raises(RuleError, match=r"still fire after .* sweeps: grow$"):
        rewrite(graph(apply("silu", x)), [grow, HALVE], CONTEXT)


def test_a_match_binds_a_letter_once() -> None:
    match = Match().bind("a", x)
    assert match is not None
    assert match.bind("a", x) is match
    assert match.bind("a", y) is None
