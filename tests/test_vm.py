"""The reference VM: calls, dropped values, traces, inputs, and sessions of a small model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from compiler.diagnostics import UserError
from compiler.encode import encode
from compiler.formats import FORMATS
from compiler.graph import Graph, Note, call, const, function, leaf, param
from compiler.graph import Value as Ref
from compiler.ops import apply, build
from compiler.program import Input, Program
from compiler.types import Type
from compiler.values import Quantized, Rows, Weight, weight_of
from runtime.inputs import read_npy, value_of
from runtime.vm import Environment, Session, default_inputs, run, run_program, schedule

V, D, H, KV, HD = 37, 64, 4, 2, 16
SHAPES = {
    "embd": (V, D), "norm": (D,), "q": (H * HD, D), "k": (KV * HD, D), "v": (KV * HD, D),
    "o": (D, H * HD), "head": (V, D),
}  # fmt: skip


def model(fmt: str = "q8_0") -> tuple[Program, dict[str, Weight]]:
    """One layer of attention and its weights, drawn from a fixed seed."""
    rng = np.random.default_rng(7)
    draw = {n: rng.standard_normal(s).astype(np.float32) / 4 for n, s in SHAPES.items()}
    weights = {n: encode(FORMATS[fmt], w) if w.ndim == 2 else weight_of(w) for n, w in draw.items()}
    w = {n: leaf("weight", n, Type(v.format.name, v.shape)) for n, v in weights.items()}
    rows = leaf("input", "rows", Type("rows", ("T",)))
    x = apply("embed", leaf("input", "token", Type("i32", ("T",))), w["embd"])
    n = apply("rmsnorm", x, w["norm"], eps=1e-5)
    cache = {name: leaf("cache", f"kv.0.{name}", Type("cache_f32", (KV, HD))) for name in "kv"}
    for name in "kv":
        heads = apply("heads", project(n, w[name]), count=KV)
        turned = apply("rope", heads, rows, theta=1e4) if name == "k" else heads
        cache[name] = apply("append", cache[name], turned, rows)
    q = apply("rope", apply("heads", project(n, w["q"]), count=H), rows, theta=1e4)
    x = apply("add", x, project(apply("attention", q, cache["k"], cache["v"], rows), w["o"]))
    logits = project(apply("wanted", x, rows), w["head"])
    results = (("logits", logits), ("next", apply("choose", logits)))
    graph = Graph(results, tuple(cache.values()))
    return Program("tiny", graph, is_model=True, context_length=100), weights


def project(x: Ref, w: Ref) -> Ref:
    return apply("linear", x if w.type.dtype == "f32" else apply("quantize", x), w)


def session(fmt: str = "q8_0", meaning: bool = False, context: int | None = None) -> Session:
    program, weights = model(fmt)
    return Session(program, weights.__getitem__, context, meaning)


TOKENS = [5, 1, 36, 0, 9, 9, 22, 3, 17, 30, 2]


def logits_in_steps(chunk: int) -> np.ndarray:
    at, vm = range(0, len(TOKENS), chunk), session()
    parts = []
    for start in at:
        some = list(range(start, min(start + chunk, len(TOKENS))))
        rows = range(len(some))
        parts.append(vm.step([TOKENS[p] for p in some], [0] * len(some), some, rows)[0])
    return np.concatenate(parts)


@pytest.mark.parametrize("chunk", [1, 3, 11])
def test_chunks_do_not_change_a_bit(chunk: int) -> None:
    whole, parts = logits_in_steps(len(TOKENS)), logits_in_steps(chunk)
    assert whole.shape == (len(TOKENS), V)
    assert np.array_equal(whole.view(np.int32), parts.view(np.int32))


def test_a_batch_gives_what_each_sequence_gives_alone() -> None:
    prompts = [[5, 1, 36], [7], [2, 2, 2, 2, 2]]
    together = session().generate(prompts, 6, chunk=4)
    assert together == [session().generate([p], 6)[0] for p in prompts]
    assert [len(t) for t in together] == [6, 6, 6]


def test_generation_is_the_steps() -> None:
    vm, tokens, out = session(), list(TOKENS), []
    _, chosen = vm.step(tokens, [0] * len(tokens), range(len(tokens)), [len(tokens) - 1])
    for _ in range(4):
        out.append(int(chosen[0]))
        _, chosen = vm.step([out[-1]], [0], [len(tokens) + len(out) - 1], [0])
    assert session().generate([TOKENS], 4) == [out]


@pytest.mark.parametrize(("fmt", "bound"), [("f32", 1e-6), ("q4_1", 0.02)])
def test_meaning_of_a_model_is_near_its_exact_value(fmt: str, bound: float) -> None:
    rows = (TOKENS, [0] * len(TOKENS), range(len(TOKENS)), range(len(TOKENS)))
    exact, real = session(fmt).step(*rows)[0], session(fmt, meaning=True).step(*rows)[0]
    assert real.dtype == np.float64
    error = np.abs(exact - real).max() / np.abs(real).max()
    assert 0 < error < bound


def test_a_session_refuses_what_does_not_follow() -> None:
    vm = session(context=4)
    with pytest.raises(UserError, match="sequence 0 needs position 0 next, got 1"):
        vm.step([1], [0], [1], [0])
    vm.step([1, 2, 3, 4], [0] * 4, range(4), [])
    with pytest.raises(UserError, match="position 4 needs a context above 4 tokens"):
        vm.step([1], [0], [4], [0])
    with pytest.raises(UserError, match="got 2, 1 and 2"):
        vm.step([1, 2], [1], [0, 1], [0])
    with pytest.raises(UserError, match=r"tokens of 0\.\.36, got 37"):
        vm.step([37], [1], [0], [0])
    vm.drop(0)
    vm.step([1], [0], [0], [0])


def test_a_call_is_its_function() -> None:
    kind = Type("f32", (3, 8))
    a, b = param(0, kind), param(1, kind)
    total = apply("add", a.result(), b.result())
    half = apply("mul", total, const(0.5, "f32"))
    fused = function("elementwise-region", (a, b), (total.node, half.node), (total, half))
    x, y = leaf("input", "x", kind), leaf("input", "y", kind)
    made = call(fused, (x, y))
    graph = Graph((("sum", made.result(0)), ("half", made.result(1))))
    rng = np.random.default_rng(0)
    inputs = {n: rng.standard_normal((3, 8)).astype(np.float32) for n in "xy"}
    got = run(graph, Environment(inputs))
    assert np.array_equal(got["sum"], inputs["x"] + inputs["y"])
    assert np.array_equal(got["half"], got["sum"] * np.float32(0.5))


def test_every_value_is_dropped_after_its_last_reader() -> None:
    program, _ = model()
    order = schedule(program.graph)
    place = {n: at for at, n in enumerate(order.nodes)}
    roots = {v.node for v in program.graph.roots}
    dropped = {n: at for at, dead in enumerate(order.last_read) for n in dead}
    assert set(dropped) == set(order.nodes) - roots
    readers = program.graph.uses()
    for n, at in dropped.items():
        assert at == max(place[r] for r in readers[n])


def test_the_trace_names_values_in_program_order() -> None:
    x = leaf("input", "x", Type("f32", (2, 4)))
    first, second = apply("exp", x), apply("neg", apply("exp", x))
    notes = {first.node: Note(("e",), rank=1), second.node: Note(("n",), rank=2)}
    seen: list[tuple[str, object]] = []
    graph = Graph((("n", second),), notes=notes)
    value = np.ones((2, 4), np.float32)
    run(graph, Environment({"x": value}), trace=lambda v, a: seen.append((graph.name(v) or "", a)))
    assert [name for name, _ in seen] == ["e", "n"]
    assert np.array_equal(seen[1][1], -seen[0][1])  # type: ignore[operator]


def test_weights_of_plain_elements_are_values_of_their_dtype() -> None:
    gain = np.array([1, 2, 3], np.float32)
    held = {"f": encode(FORMATS["f32"], gain), "h": encode(FORMATS["f16"], gain / 3)}
    f, h = (leaf("weight", n, Type(w.format.name, w.shape)) for n, w in held.items())
    graph = Graph((("sum", apply("add", f, apply("cast", h, dtype="f32"))), ("h", h)))
    got = run(graph, Environment(weight=held.__getitem__))
    want = gain + (gain / 3).astype(np.float16).astype(np.float32)
    assert np.array_equal(got["sum"], want) and isinstance(got["h"], Weight)
    real = run(graph, Environment(weight=held.__getitem__), meaning=True)
    assert real["sum"].dtype == np.float64 and np.array_equal(real["sum"], want)


def test_two_results_of_an_op_are_two_results() -> None:
    x = leaf("input", "x", Type("f32", (1, 5)))
    top = build("top_k", (x,), {"k": 2})
    graph = Graph((("i", top.result(1)), ("v", top.result(0))))
    value = np.array([[1, 4, 4, np.nan, 0]], np.float32)
    got = run(graph, Environment({"x": value}))
    assert list(got) == ["i", "v"] and got["i"].tolist() == [[3, 1]]


# inputs


def declared(dtype: str, *shape: int, value: object = None) -> Input:
    return Input("x", Type(dtype, shape), value)  # type: ignore[arg-type]


def test_the_default_pattern() -> None:
    got = value_of(declared("f32", 2, 5))
    assert got.dtype == np.float32 and got.shape == (2, 5)
    assert got.reshape(-1).tolist() == [-1.5, -1, -0.5, 0, 0.5, 1, 1.5, -1.5, -1, -0.5]
    assert value_of(declared("i64", 9)).tolist() == [-3, -2, -1, 0, 1, 2, 3, -3, -2]
    rows = value_of(declared("rows", 3))
    assert isinstance(rows, Rows)
    assert (rows.seq.tolist(), rows.pos.tolist()) == ([0, 0, 0], [0, 1, 2])
    assert rows.wanted.tolist() == [0, 1, 2]


def test_an_input_in_blocks_holds_the_encoded_pattern() -> None:
    got = value_of(declared("q8_0", 2, 64))
    assert isinstance(got, Weight) and got.format.name == "q8_0"
    assert np.abs(got.values() - value_of(declared("f32", 2, 64))).max() < 1.5 / 127
    words = value_of(declared("q8x2", 2, 64))
    assert isinstance(words, Quantized) and words.dtype == "q8x2"


def test_literals_fill_or_give_each_element() -> None:
    assert value_of(declared("f32", 2, 2, value=0.5)).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert value_of(declared("i32", 2, value=(3, -1))).tolist() == [3, -1]
    rows = value_of(declared("rows", 2, value=((1, 5), (0, 2))))
    assert isinstance(rows, Rows) and rows.seq.tolist() == [1, 0] and rows.pos.tolist() == [5, 2]


REFUSED = [
    (declared("f32", 3, value=(1.0, 2.0)), None, r"shape \[3\], got 2 entries where 3 are needed"),
    (declared("f32", 2, value=(1.0, (2.0,))), None, "got one that is nested deeper"),
    (declared("f32", 1, 2, value=(1.0,)), None, "got the number 1.0 where 2 entries are needed"),
    (declared("i32", 2, value=(1, 0.5)), None, r"i32\[2\] cannot hold 0.5"),
    (declared("i32", 1, value=(2**31,)), None, r"i32\[1\] cannot hold 2147483648"),
    (declared("rows", 2, value=((0, 1), (0, 1))), None, "each position of a sequence once"),
    (declared("rows", 1, value=((0, -1),)), None, "sequences and positions of 0 or more"),
    (declared("f32", 2, 4), np.zeros((4, 2), np.float32), r"float32\[2, 4\], got float32\[4, 2\]"),
    (declared("f32", 2), np.zeros(2), r"float32\[2\], got float64\[2\]"),
    (declared("rows", 2), np.zeros(2, np.int32), r"int32\[2, 2\], got int32\[2\]"),
]


@pytest.mark.parametrize(("declaration", "array", "message"), REFUSED)
def test_what_does_not_fit_is_refused(
    declaration: Input, array: np.ndarray | None, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        value_of(declaration, array)


def test_a_wrong_name_is_refused_with_the_near_one(tmp_path: object) -> None:
    x = leaf("input", "gain", Type("f32", (2,)))
    program = Program("p", Graph((("y", apply("exp", x)),)), (Input("gain", x.type),))
    with pytest.raises(UserError, match=r"p has no input gian; did you mean gain\?"):
        default_inputs(program, {"gian": np.zeros(2, np.float32)})
    with pytest.raises(UserError, match="p has no input q, one of gain"):
        default_inputs(program, {"q": np.zeros(2, np.float32)})
    with pytest.raises(UserError, match=r"a \.npy file is needed"):
        read_npy(f"{tmp_path}/none.npy")
    ones = run_program(program, {"gain": np.zeros(2, np.float32)})["y"]
    assert ones.tolist() == [1.0, 1.0]  # type: ignore[union-attr]
    other = replace(program, inputs=(Input("gain", x.type, (0.0, 0.0)),))
    assert run_program(other)["y"].tolist() == [1.0, 1.0]  # type: ignore[union-attr]


SPANS = {"q8_0": 254, "q4_1": 15, "q4_0": 16, "q4_k": 15, "q5_k": 31, "q6_k": 64}


@pytest.mark.parametrize("name", SPANS)
def test_encoding_rounds_to_half_a_level(name: str) -> None:
    fmt = FORMATS[name]
    values = np.random.default_rng(1).standard_normal((5, 512)).astype(np.float32)
    values[2] = 0
    got = encode(fmt, values).values()
    grouped = np.abs(got - values).reshape(-1, fmt.group).max(axis=1)
    most = np.abs(values).reshape(-1, fmt.group).max(axis=1)
    # half a level, twice that where the shorter side is clamped, and f16's rounding of d and m
    span = most * 2 / SPANS[name] * (1 if fmt.zero else 0.5)
    # and what whole numbers leave of the greatest scale and offset of 256 weights
    rounding = most * 2e-3 if fmt.scales is None else np.abs(values).max() / 63
    assert (grouped <= span * 1.02 + rounding).all()
    assert (got[2] == 0).all()
    with pytest.raises(ValueError, match=f"a multiple of {fmt.block}"):
        encode(fmt, values[:, :40])
