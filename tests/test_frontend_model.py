"""Declarations, models, caches: what a program takes from outside, and what it keeps."""

import pytest
from elaborated import META, ROWS, X, body, graph, model, same
from model_metadata import metadata

import examples
from compiler.diagnostics import ProgramError, UserError
from compiler.program import Input
from compiler.types import Type
from compiler.verify import verify
from frontend.elaborate import elaborate

LLAMA = examples.find("llama").read_text()


# declarations


def test_inputs_keep_their_values():
    p = elaborate(
        "dim N = 2\ninput a: f32[N] = [1, -2.5]\ninput b: i32[N, 1] = [[3], [-4]]\n"
        "input c: f32[N] = N / 4.0\ninput d: i64[3]\ninput r: rows[N] = [[0, 0], [1, 7]]\nreturn a",
        "some/where/prog.model",
    )
    assert p.name == "prog" and not p.is_model
    assert p.inputs == (
        Input("a", Type("f32", (2,)), (1.0, -2.5)),
        Input("b", Type("i32", (2, 1)), ((3,), (-4,))),
        Input("c", Type("f32", (2,)), 0.5),
        Input("d", Type("i64", (3,)), None),
        Input("r", Type("rows", (2,)), ((0, 0), (1, 7))),
    )
    assert repr(p.inputs[0].value) == "(1.0, -2.5)"


def test_a_written_type_is_an_assertion():
    same("y: f32[4, 8] = silu(x)\nreturn y", "return silu(x)")


def test_metadata_is_read():
    text = (
        'if meta("toy.flag") and meta("toy.kind") == "neox" { x = x + meta("toy.windows")[1] }\n'
        'if meta("toy.windows")[2] { x = -x }\nx = x * meta("toy.absent", meta("toy.windows")[1])\n'
        'return x * shape("token_embd.weight", 0) * shape("token_embd.weight", -1)'
    )
    g = graph(X + text, META)
    assert g.roots == body("return (x + 32) * 32 * 96 * 64").roots


def test_a_model_is_driven_by_tokens():
    p = model("def forward(t) { return linear(wanted(embed(t, token_embd)), token_embd) }")
    verify(p.graph)
    (_, logits), (_, chosen) = p.graph.results
    assert (p.graph.name(logits), p.graph.name(chosen)) == ("logits", "next")
    assert chosen.node.op == "choose" and chosen.node.operands == (logits,)
    leaves = {n.attr("name"): str(n.types[0]) for n in p.graph.nodes() if n.op == "input"}
    assert leaves == {"token": "i32[T]", "rows": "rows[T]"}


def test_a_forward_may_name_its_rows_and_shape_by_them():
    p = model(
        "def forward(token, where) {\n  x = reshape(embed(token, token_embd), T, 2, 32)\n"
        "  x = reshape(rope(x, 10.0, where), T, 64)\n"
        "  return linear(wanted(x, rows), token_embd)\n}"
    )
    assert [str(n.types[0]) for n in p.graph.nodes() if n.op == "rope"] == ["f32[T, 2, 32]"]


def test_optional_weights_are_asked_for_in_conditions():
    p = model(
        "def forward(token) {\n  x = embed(token, token_embd)\n  for l in 0..3 {\n"
        "    if blk[l].down { x = x * 0.0 } else if blk[l].up_bias { x = x + blk[l].up_bias }\n"
        "    x = rmsnorm(x, blk[l].norm, 1e-6)\n  }\n"
        "  return linear(wanted(x), token_embd, blk[0].down)\n}"
    )
    assert [n.op for n in p.graph.nodes()].count("add") == 3
    assert len(p.graph.results[0][1].node.operands) == 2
    assert {"l2.up_bias", "l0.norm"} <= {p.graph.note(n).names[0] for n in p.graph.nodes()}


def test_a_weight_may_fall_back_beside_or_above():
    declared = (
        "weight token_embd [96, 64]\nweight head [96, 64] or token_embd\n"
        'weight blk[3] { norm [64], post [64] or norm, up_bias [64] as "blk.{}.up.bias" }\n'
    )
    p = model(
        "def forward(token) {\n  x = embed(token, token_embd)\n"
        "  for l in 0..3 { x = x * blk[l].post }\n  return linear(wanted(x), head)\n}", declared,
    )  # fmt: skip
    read = [n.attr("name") for n in p.graph.nodes() if n.op == "weight"]
    assert read == ["token_embd.weight", *(f"blk.{i}.norm.weight" for i in range(3))]


def test_leaves_are_in_order_of_declaration_layer_by_layer():
    held = metadata("tiny-llama")
    p = elaborate(LLAMA, "llama.model", held)
    names = [p.graph.note(n).names[0] for n in p.graph.nodes() if n.op == "weight"]
    assert names[:4] == ["token_embd", "output_norm", "l0.attn_norm", "l0.attn_q"]
    assert names.index("l0.ffn_down") < names.index("l1.attn_norm")


def test_a_model_needs_a_checkpoint():
    with pytest.raises(UserError, match="a checkpoint is needed") as caught:
        elaborate(LLAMA, "llama.model")
    assert caught.value.code == 2


def test_another_familys_checkpoint_is_the_checkpoints_fault():
    with pytest.raises(ProgramError) as caught:
        elaborate(LLAMA, "llama.model", metadata("tiny-qwen3"))
    assert caught.value.code == 3
    assert 'the checkpoint\'s general.architecture is "qwen3"' in str(caught.value)


# caches


CACHE = ROWS + "cache c[2] { k [2, 8], v [2, 8] }\n"


def test_a_cache_member_is_a_value_with_versions():
    g = body(
        "def put(c, a) {\n  c.k = append(c.k, a)\n  return attention(a, c.k, c.v)\n}\n"
        "return put(c[0], q) + put(c[1], q + 1.0)", CACHE,
    )  # fmt: skip
    assert [g.name(v) for v in g.effects] == ["l0.c.v", "l1.c.v", "l0.c.k_2", "l1.c.k_2"]
    assert [n.attr("name") for n in g.nodes() if n.op == "cache"] == [
        "c.0.k",
        "c.0.v",
        "c.1.k",
        "c.1.v",
    ]


def test_a_reader_of_an_old_version_comes_before_its_writer():
    g = body(
        "k = c[0].k\nc[0].k = append(k, q)\nreturn attention(q, k, k)", CACHE,
    )  # fmt: skip
    order = [n.op for n in g.nodes()]
    assert order.index("attention") < order.index("append")


def test_an_unindexed_cache_is_one_record():
    g = body("c.k = append(c.k, q)\nreturn q", ROWS + "cache c { k [2, 8] }\n")
    assert [g.name(v) for v in g.effects] == ["c.k_2"]


# robustness


def test_no_nesting_ends_in_a_traceback():
    chain = "".join(
        f"def g{i}(a) {{ return {'silu(' * 12}g{i - 1}(a){')' * 12} }}\n" for i in range(1, 30)
    )
    blocks = "".join(
        f"def g{i}(a) {{\n{'if 1 {' * 30}\nreturn g{i - 1}(a)\n{'}' * 30}\n}}\n"
        for i in range(1, 40)
    )
    for text in (chain, blocks):
        with pytest.raises(ProgramError, match="deep"):
            body(f"def g0(a) {{ return a }}\n{text}return g{text.count('def')}(x)")


def test_long_chains_are_no_nesting():
    terms = " + ".join(["1"] * 3000)
    same(f"return x * ({terms})", "return x * 3000")
