"""What statements, calls and declarations of a program mean, as the graph that comes out."""

import pytest
from elaborated import ROWS, body, find, graph, model, same

from compiler.diagnostics import ProgramError, Span
from compiler.graph import Frame

# calls


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("return x + x * 2.0", "return add(x, mul(x, 2.0))"),
        ("return -x - x / 2.0", "return sub(neg(x), div(x, 2.0))"),
        ("return 1 + x", "return 1.0 + x"),
        ("return x * (2 + 3 * 4 - 6 / 3 % 2)", "return x * 14.0"),
        ("return sum(x)", "return sum(axis=-1, x=x)"),
        ("return sum(x, 0)", "return sum(x, axis=0)"),
        ("return rmsnorm(x, eps=1e-6)", "return rmsnorm(eps=0.000001, x=x)"),
        ("return reshape(x, 2, 16)", "return reshape(x, 4 / 2, 16)"),
        ("y = x\nreturn y + y", "return x + x"),
        ("dim n = 3\nreturn x * n", "return x * 3.0"),
    ],
)
def test_spellings_of_one_graph(a, b):
    same(a, b)


def test_a_chain_goes_left_to_right():
    (_, value), *_ = body("return x - x - x").results
    assert value.node.operands[0].node.op == "sub"


@pytest.mark.parametrize("spelled", ["", ", r", ", rows=r", ", theta=10.0, r"])
def test_rows_come_last_or_by_name_or_not_at_all(spelled):
    given = spelled if "theta" in spelled else f", 10.0{spelled}"
    same(f"return rope(q{given})", "return rope(q, 10.0, interleaved=0, rows=r)", ROWS)


def test_positions_follow_the_signature():
    node = body("return rope(q, 10.0, 1, 4, 2.0)", ROWS).results[0][1].node
    assert [node.attr(a) for a in ("theta", "interleaved", "dims", "factor")] == [10.0, 1, 4, 2.0]
    assert [o.type.dtype for o in node.operands] == ["f32", "rows"]


def test_a_number_takes_the_other_operands_type():
    g = graph("input a: i64[2]\ninput b: f32[2]\nreturn a * 2, b * 2, 3 - a, 0.5 + b")
    consts = [o.node for _, v in g.results for o in v.node.operands if o.node.op == "const"]
    assert [(str(c.types[0]), repr(c.attr("value"))) for c in consts] == [
        ("i64", "2"), ("f32", "2.0"), ("i64", "3"), ("f32", "0.5"),
    ]  # fmt: skip


def test_infinity_has_a_name():
    (_, v), *_ = body("return x + -inf").results
    assert v.node.operands[1].node.attr("value") == float("-inf")


def test_several_results_are_named_one_by_one():
    g = body("values, index = top_k(x, 2)\nreturn index, values")
    node = g.results[0][1].node
    assert g.note(node).names == ("values", "index")
    assert [v.index for _, v in g.results] == [1, 0]


def test_internal_ops_are_for_op_programs():
    assert body("return linear(quantize(x), w)", "input x: f32[2, 32]\ninput w: q8_0[3, 32]\n")
    with pytest.raises(ProgramError, match="quantize is made by passes"):
        model("def forward(token) { return quantize(embed(token, token_embd)) }")


# defs


def test_defs_are_expanded_with_defaults_and_keywords():
    same("def f(a, b=x, c=2.0) { return a * c + b }\nreturn f(x, c=3.0)", "return x * 3.0 + x")


def test_a_def_sees_what_is_declared_and_nothing_of_its_caller():
    same("def f(a) { return a + x }\ny = f(-x)\nreturn y", "return -x + x")
    with pytest.raises(ProgramError, match="there is no y here"):
        body("def f() { return y }\ny = x\nreturn f()")


def test_a_parameter_may_be_called_like_a_declaration():
    same("def f(x) { return x + 1.0 }\nreturn f(-x)", "return -x + 1.0")


def test_a_def_may_return_several_values_or_numbers():
    same("def f(a) { return a, -a }\np, m = f(x)\nreturn p * m", "return x * -x")
    same("def n() { return 4 / 2 }\nreturn reshape(x, n(), 16)", "return reshape(x, 2, 16)")


def test_a_programs_own_def_comes_before_the_prelude():
    same("def moe(a) { return -a }\nreturn moe(x)", "return -x")


MOE = "input x: f32[3, 32]\ninput r: f32[5, 32]\ninput g: f32[5, 7, 32]\ninput d: f32[5, 32, 7]\n"
EXPERTS = "combine(expert_linear(silu(expert_linear(x, g, i)) * expert_linear(x, g, i), d, i), s)"


def test_moe_is_its_primitives():
    by_hand = f"v, i = top_k(linear(x, r), 2)\ns = softmax(v)\nreturn {EXPERTS}"
    same("return moe(x, r, g, g, d, 2)", by_hand, MOE)


def test_moe_over_all_experts():
    by_hand = (
        "l = linear(x, r)\nv, i = top_k(l, 2)\nm = max(heads(l, 1))\n"
        f"s = exp(v - m) / sum(heads(exp(l - m), 1))\nreturn {EXPERTS}"
    )
    same("return moe(x, r, g, g, d, 2, renormalize=0)", by_hand, MOE)


# loops and conditions


def test_loops_are_unrolled():
    same("for i in 1..4 { x = x * i }\nreturn x", "return x * 1 * 2 * 3")
    same("for i in 0..0 { x = -x }\nreturn x", "return x")
    same("for i in 0..2 { for j in 0..2 { x = x + (i * 2 + j) } }\nreturn x",
         "return x + 0 + 1 + 2 + 3")  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("1", True), ("0", False), ("0.5", True), ("2 > 1", True), ("2 <= 1", False),
        ("1 == 1.0", True), ('"a" == "a"', True), ('"a" != "a"', False), ("not 1", False),
        ("not 1 == 2", True), ("1 and 0", False), ("1 or 1 / 0", True), ("0 and 1 / 0", False),
        ("1 == 1 and 2 == 2 and 3 == 4 or 5 == 5", True), ("not 0 and not 0", True),
    ],
)  # fmt: skip
def test_conditions(condition, holds):
    same(f"if {condition} {{ x = -x }}\nreturn x", "return -x" if holds else "return x")


def test_the_first_branch_that_holds_is_taken():
    text = (
        "for i in 0..4 { if i == 1 { x = x + 1 } else if i == 2 { x = x + 2 } else { x = x + 9 } }"
    )
    same(f"{text}\nreturn x", "return x + 9 + 1 + 2 + 9")


def test_a_return_may_stand_in_a_branch():
    same("def f(a) {\n  if 1 { return -a }\n  return a\n}\nreturn f(x)", "return -x")


# names, origins, order


def test_names_tell_loop_def_and_variable():
    g = body(
        "def f(a) {\n  b = -a\n  return silu(b)\n}\n"
        "for l in 0..2 {\n  x = x + f(x)\n}\nreturn x + f(x)"
    )
    names = [name for n in g.nodes() for name in g.note(n).names]
    assert names == [
        "x", "l0.f.b", "l0.f", "l0.x", "l1.f.b", "l1.f", "l1.x", "f.b", "f", "result",
    ]  # fmt: skip


def test_names_of_inner_loops_and_of_rebound_names():
    g = body("for i in 0..2 { for j in 0..2 {\n  x = x + 1.0\n  x = -x\n} }\nreturn x * 2.0")
    names = [name for n in g.nodes() for name in g.note(n).names if n.op != "const"]
    assert names[1:5] == ["l0_0.x", "l0_0.x_2", "l0_1.x", "l0_1.x_2"]


def test_origins_are_call_stacks():
    g = body("def f(a) {\n  b = -a\n  return b\n}\nfor l in 3..5 {\n  x = f(x)\n}\nreturn x")
    (origin,) = g.note(find(g, "l4.f.b")).origins
    call, statement = Span("p.model", 7, 3, 11), Span("p.model", 3, 3, 9)
    assert origin == (Frame(call, 4), Frame(statement, None))


def test_equal_computations_are_one_node_with_both_origins():
    g = body("a = silu(x)\nb = silu(x)\nreturn a + b")
    note = g.note(find(g, "a"))
    assert sorted(origin[-1].span.line for origin in note.origins) == [2, 3]


def test_order_is_the_programs():
    g = body("a = exp(x)\nb = silu(x)\nc = tanh(x)\nreturn c, a + b")
    assert [n.op for n in g.nodes()] == ["input", "exp", "silu", "tanh", "add"]


def test_the_prelude_is_among_the_sources_where_it_is_used():
    g = body("return moe(x, r, g, g, d, 2)", MOE)
    assert [file for file, _ in g.sources] == ["p.model", "<prelude>"]
    assert [file for file, _ in body("return x").sources] == ["p.model"]


def test_results_are_called_as_returned():
    g = body("y = -x\nreturn y, silu(x), x + y, last = x, silu(y)")
    assert [name for name, _ in g.results] == ["y", "silu", "result", "last", "silu_2"]
