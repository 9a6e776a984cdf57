"""Printed graphs: legal programs that give the same nodes back, at every stage; bad dumps."""

import pytest
from elaborated import X, body
from model_metadata import metadata

import examples
import passes
from compiler.diagnostics import ProgramError
from compiler.graph import Graph, Note, Value, call, const, function, leaf, node, param
from compiler.ops import OPS, apply, build, load
from compiler.target import HOST, NUMERICS, Options
from compiler.text import print_graph
from compiler.types import Type
from compiler.verify import verify
from frontend.elaborate import elaborate
from frontend.parser import parse_graph

load()
SAMPLES = [(name, i) for name, op in sorted(OPS.items()) for i in range(len(op.samples))]
MODELS = {"llama": "tiny-llama", "qwen3": "tiny-qwen3", "qwen3moe": "tiny-qwen3moe"}


def returns(graph: Graph) -> Graph:
    """The graph, if its text is read back as the same nodes and printed again as the same text."""
    text = print_graph(graph)
    again = parse_graph(text, "dump")
    assert again.results == graph.results  # values compare by the identity of their nodes
    assert again.effects == graph.effects
    assert print_graph(again) == text
    return again


def example(name: str) -> Graph:
    held = metadata(MODELS[name]) if name in MODELS else None
    return elaborate(examples.find(name).read_text(), f"{name}.model", held).graph


def of(**values: Value) -> Graph:
    return Graph(tuple(values.items()))


@pytest.mark.parametrize(("name", "index"), SAMPLES)
def test_every_sample_returns(name, index):
    returns(elaborate(OPS[name].samples[index], "s.model").graph)


@pytest.mark.parametrize("name", examples.names())
@pytest.mark.parametrize("numerics", NUMERICS)
def test_every_example_returns_after_every_pass(name, numerics):
    graph = returns(example(name))
    seen: list[str] = []
    done = passes.run(
        graph, Options(numerics=numerics), HOST,
        on_pass=lambda stage, _, after: seen.append(stage) or verify(returns(after)),
    )  # fmt: skip
    assert seen[0] == "lower-numerics" and len(seen) == len(passes.PASSES)
    assert name not in MODELS or any(n.op == "call" for n in done.nodes())


def test_the_text():
    graph = body(
        "def f(a) {\n  b = a * 2.0 + x\n  return sum(b, axis=0)\n}\n"
        "v, i = top_k(x, 2)\nfor l in 0..2 { y = f(-x) }\n"
        "return y, scores = softmax(v), i, rope(reshape(x, 4, 2, 4), 1e4, freqs=z, interleaved=1)",
        X + "input z: f32[2] = 1.0\ninput r: rows[4]\n",
    )
    assert print_graph(graph) == (
        "kernel forward() {\n"
        '  x: f32[4, 8] = input("x")\n'
        '  z: f32[2] = input("z")\n'
        '  r: rows[4] = input("r")\n'
        "  v: f32[4, 2], i: i32[4, 2] = top_k(x, k=2)\n"
        "  neg: f32[4, 8] = neg(x)\n"
        "  mul: f32[4, 8] = neg * 2.0\n"
        "  l0.f.b: f32[4, 8] = mul + x\n"
        "  l0.y: f32[8] = sum(l0.f.b, axis=0)\n"
        "  scores: f32[4, 2] = softmax(v)\n"
        "  reshape: f32[4, 2, 4] = reshape(x, 4, 2, 4)\n"
        "  rope: f32[4, 2, 4] = rope(reshape, r, theta=10000.0, interleaved=1, freqs=z)\n"
        "  return y = l0.y, scores, i, rope\n"
        "}\n"
    )


def test_fused_functions_are_kernels_called_as_at_their_first_call():
    t = Type("f32", (4, 8))
    a, b = param(0, t).result(), param(1, t).result()
    total = apply("add", a, b)
    halved = apply("mul", total, const(0.5, "f32"))
    made = function("add-halve", [a.node, b.node], [total.node, halved.node], [total, halved])
    x, y = leaf("input", "x", t), leaf("input", "y", t)
    first = call(made, [x, y])
    second = call(made, [first.result(1), y])
    notes = {
        x.node: Note(("l0.attend.x",)), y.node: Note(("y_2",)), first: Note(("s", None), rank=1.0),
    }  # fmt: skip
    graph = Graph((("p", second.result(0)), ("q", second.result(1))), (), notes)
    returns(graph)
    assert print_graph(graph) == (
        "kernel add_halve(x: f32[4, 8], y: f32[4, 8]) {\n"
        "  s: f32[4, 8] = x + y\n"
        "  add_halve: f32[4, 8] = s * 0.5\n"
        "  return s, add_halve\n"
        "}\n\n"
        "kernel forward() {\n"
        '  l0.attend.x: f32[4, 8] = input("x")\n'
        '  y_2: f32[4, 8] = input("y")\n'
        "  s: f32[4, 8], add_halve: f32[4, 8] = add_halve(l0.attend.x, y_2)\n"
        "  add_halve_2: f32[4, 8], add_halve_3: f32[4, 8] = add_halve(add_halve, y_2)\n"
        "  return p = add_halve_2, q = add_halve_3\n"
        "}\n"
    )


def test_functions_of_one_kind_are_told_apart():
    t = Type("f32", (4,))
    x = leaf("input", "x", t)
    p = param(0, t).result()
    made = [function("row-op", [p.node], [v.node], [v]) for v in (apply("exp", p), apply("neg", p))]
    graph = returns(of(a=call(made[0], [x]).result(), b=call(made[1], [x]).result()))
    assert {n.function.kind for n in graph.nodes() if n.op == "call"} == {"row-op"}
    assert "kernel row_op_2(" in print_graph(graph)


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (0.1, "0.1"), (-0.0, "-0.0"), (0.0, "0.0"), (1e-06, "1e-06"), (1e16, "1e+16"),
        (float("inf"), "inf"), (float("-inf"), "-inf"), (float("nan"), "nan"), (5e-324, "5e-324"),
        (2.0, "2.0"),
    ],
)  # fmt: skip
def test_constants_stand_inline_and_return(value, spelled):
    graph = of(y=apply("mul", leaf("input", "x", Type("f32", (4,))), const(value, "f32")))
    assert f"= input * {spelled}\n" in print_graph(graph)
    returns(graph)


def test_whole_numbers_return():
    x = leaf("input", "x", Type("i64", (4,)))
    returns(
        of(a=apply("sub", x, const(-(2**63), "i64")), b=apply("sub", const(2**63 - 1, "i64"), x))
    )


def test_constants_without_a_neighbour_stand_apart():
    x, two = leaf("input", "x", Type("f32", (4,))), const(2.0, "f32")
    graph = of(a=apply("exp", two), b=apply("add", two, two), c=apply("add", x, two), d=two)
    assert "constant: f32 = 2.0" in print_graph(graph)
    returns(graph)


@pytest.mark.parametrize(
    "names",
    [
        ("x", "x"), ("x_2", "x"), ("for", "if"), ("return", "T"), ("f32", "inf"), ("a b", "a-b"),
        ("1x", "l1.2y"), ("", "."), ("a" * 64, "a" * 64), ("größe", "kv[3].k"), ("exp", "exp_2"),
    ],
)  # fmt: skip
def test_any_name_is_made_legal_and_unique(names):
    x = leaf("input", "x", Type("f32", (4,)))
    a = apply("exp", x)
    b = apply("neg", a)
    again = returns(of(y=b).with_notes({a.node: Note((names[0],)), b.node: Note((names[1],))}))
    assert again.name(a) != again.name(b)


def test_a_checkpoints_name_may_hold_anything():
    returns(of(y=apply("exp", leaf("weight", 'a "b"\\c\nd', Type("f32", (4,))))))


def test_operands_behind_a_gap_are_named():
    x, r = leaf("input", "x", Type("f32", (4, 2, 8))), leaf("input", "r", Type("rows", (4,)))
    f = leaf("input", "f", Type("f32", (4,)))
    graph = returns(of(y=build("rope", [x, f, r], {"theta": 10.0}).result()))
    assert "theta=10.0, freqs=" in print_graph(graph)


def test_printing_twice_is_the_same():
    assert print_graph(example("qwen3moe")) == print_graph(example("qwen3moe"))


# dumps that are refused

GOOD = """\
kernel twice(a: f32[4]) {
  b: f32[4] = a + a
  return b
}
kernel forward() {
  x: f32[4] = input("x")
  y: f32[4] = twice(x)
  return y
}
"""


def test_the_dump_that_the_faults_are_planted_in():
    assert [n.op for n in returns(parse_graph(GOOD)).nodes()] == ["input", "call"]


@pytest.mark.parametrize(
    ("good", "bad", "line", "message"),
    [
        ("b: f32[4]", "b: f32[5]", 2, "b is written f32[5], its rule says f32[4]"),
        ("a + a", "a + c", 2, "there is no c here"),
        ("a + a", "twofold(a)", 2, "there is no op or def twofold"),
        ('input("x")', 'input("x", 3)', 6, "a leaf needs a name and a type"),
        ('input("x")', 'const("x")', 6, 'weight("name"), input("name") or cache("name") is needed'),
        ('x: f32[4] = input("x")', 'x = input("x")', 6, "a leaf needs a name and a type"),
        ('x: f32[4] = input("x")', "x: f32[4] = 2.0", 6, "a number is a scalar such as f32"),
        ("twice(x)", "twice(x, x)", 7, "twice takes 1 values, got 2"),
        ("x: f32[4] =", "x: f32[5] =", 7, "f32[4] is needed, got f32[5]"),
        ("y: f32[4] = twice", "x: f32[4] = twice", 7, "x has a value already"),
        ("y: f32[4] = twice", "y, z = twice", 7, "a name for each value is needed, got 1 for 2"),
        ("return y", "return z", 8, "there is no z here"),
        ("return y", "return 3", 8, "a value is needed, got the number 3"),
        ("  return b\n", "", 1, "twice needs a return at its end"),
        ("  b: f32[4] = a + a", "  if 1 { b = a + a }", 2, "a kernel holds assignments"),
        ("kernel forward", "kernel backward", 1, "a dump needs a kernel forward"),
        ("kernel twice", "y = 3\nkernel twice", 1, "a dump holds kernels"),
        ("a: f32[4])", "a: f33[4])", 1, "a dtype such as f32"),
        ("a: f32[4])", "a: f32[0])", 1, "an axis is an integer of 1 or more"),
    ],
)  # fmt: skip
def test_a_bad_dump_is_refused(good, bad, line, message):
    assert good in GOOD
    with pytest.raises(ProgramError) as caught:
        parse_graph(GOOD.replace(good, bad, 1), "dump")
    first = caught.value.diagnostics[0]
    assert message in first.message
    assert first.span.line == line


def test_interning_makes_equal_parts_one_node():
    x = leaf("input", "x", Type("f32", (4,)))
    assert node("exp", [x], {}, [x.type]) is apply("exp", x).node
