"""What ops give for values where a definition is needed, and what they refuse, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.diagnostics import UserError
from compiler.encode import encode
from compiler.formats import FORMATS
from compiler.graph import leaf
from compiler.ops import OpError, apply, build, get
from compiler.types import Type
from compiler.values import Cache, Rows, weight_of

INF, NAN = np.inf, np.nan


def f32(*values: object) -> np.ndarray:
    return np.array(values, np.float32)


def same(got: np.ndarray, want: object) -> bool:
    """Equal values and signs of zeros; NaN is NaN."""
    wanted = np.array(want, got.dtype)
    signs = np.isnan(wanted) | (np.signbit(got) == np.signbit(wanted))
    return np.array_equal(got, wanted, equal_nan=got.dtype.kind == "f") and bool(signs.all())


VALUES = [
    ("relu", {"x": f32(-0.0, 0.0, -1, NAN, INF, -INF)}, [0.0, 0.0, 0, NAN, INF, 0]),
    ("max", {"x": f32([-0.0, 0.0], [0.0, -0.0], [NAN, INF], [-INF, -INF]), "axis": 1},
     [0.0, 0.0, NAN, -INF]),
    ("argmax", {"x": f32([1, NAN, INF], [0.0, -0.0, -1], [-0.0, 0.0, 0], [5, 7, 7]), "axis": -1},
     [1, 0, 0, 1]),
    ("choose", {"logits": f32([-INF, -INF, -INF], [2, NAN, NAN])}, [0, 1]),
    ("softmax", {"x": f32([-INF, -INF], [0, -INF], [NAN, 0], [INF, 0])},
     [[0, 0], [1, 0], [NAN, NAN], [NAN, NAN]]),
    ("sum", {"x": f32([-0.0, -0.0, -0.0], [INF, -INF, 1], [1, 2, 4]), "axis": 1}, [-0.0, NAN, 7]),
    ("sum", {"x": np.array([[2**31 - 1, 1]], np.int32), "axis": 1}, [-(2**31)]),
    ("l2norm", {"x": f32([0, 0], [3, 4]), "eps": 10.0}, [[0, 0], [0.3, 0.4]]),
    ("rmsnorm", {"x": f32([0, 0], [NAN, 1]), "w": None, "eps": 1e-6}, [[0, 0], [NAN, NAN]]),
    ("cast", {"x": f32(65520, 65519, -1e9, 2**-25, 1 + 2**-11), "dtype": "f16"},
     [INF, 65504, -INF, 0, 1]),
    ("cast", {"x": f32(1 + 2**-8, 1 + 3 * 2**-8, NAN), "dtype": "bf16"}, [1, 1 + 2**-6, NAN]),
    ("cast", {"x": np.array([2**32 + 5, -1]), "dtype": "i32"}, [5, -1]),
    ("combine", {"y": f32([[1e8], [1], [-1e8]]), "weight": f32([1, 1, 1])}, [[0.0]]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "want"), VALUES)
def test_defined_values(name: str, operands: dict[str, object], want: object) -> None:
    with np.errstate(all="ignore"):
        assert same(get(name).exact(**operands), want)


def test_top_k_puts_nan_first_and_ties_by_index() -> None:
    x = f32(1, NAN, 3, 3, INF, -0.0, 0.0, NAN)
    values, index = get("top_k").exact(x=x, k=7)
    assert index.tolist() == [1, 7, 4, 2, 3, 0, 5]
    assert same(values, x[[1, 7, 4, 2, 3, 0, 5]])
    assert get("top_k").meaning(x=x.astype(np.float64), k=7)[1].tolist() == index.tolist()


def test_rope_turns_the_pairs_that_it_says() -> None:
    x = np.arange(8, dtype=np.float32).reshape(1, 1, 8)
    rows = Rows(np.zeros(1, np.int32), np.array([1], np.int32), np.zeros(0, np.int32))
    more = {"theta": 1e4, "factor": 1.0, "freqs": None, "rows": rows}
    quarter = np.pi / 2
    turned = get("rope").exact(x=x, interleaved=0, dims=2, **(more | {"factor": 1 / quarter}))
    # one pair, (0, 1), at a quarter turn: (a, b) -> (-b, a); the rest passes through
    assert np.allclose(turned[0, 0], [-1, 0, 2, 3, 4, 5, 6, 7], atol=1e-7)
    half = get("rope").exact(x=x, interleaved=0, dims=0, **more)[0, 0]
    pairs = get("rope").exact(x=x, interleaved=1, dims=0, **more)[0, 0]
    assert np.allclose(half[[0, 4]], [-4 * np.sin(1), 4 * np.cos(1)], atol=1e-6)
    assert np.allclose(pairs[[0, 1]], [-np.sin(1), np.cos(1)], atol=1e-6)


def test_attention_sees_the_window_of_its_own_sequence() -> None:
    held = [Cache((1, 1)), Cache((1, 1))]
    places = Rows(*(np.array(v, np.int32) for v in ([0, 0, 0, 1], [0, 1, 2, 0], [])))
    for cache, values in zip(held, ([0, 0, 0, 0], [1, 10, 100, 1000]), strict=True):
        cache.write(places, f32(*values).reshape(4, 1, 1))
    rest = {"scale": 0.0, "softcap": 0.0, "sinks": None, "rows": places}
    q = np.ones((4, 1, 1), np.float32)
    got = get("attention").exact(q=q, k=held[0], v=held[1], window=0, **rest)
    assert np.allclose(got[:, 0], [1, 5.5, 37, 1000])
    got = get("attention").exact(q=q, k=held[0], v=held[1], window=2, **rest)
    assert np.allclose(got[:, 0], [1, 5.5, 55, 1000])


def test_attention_s_sink_is_a_score_without_a_value_and_a_softcap_bounds_scores() -> None:
    held = [Cache((1, 1)), Cache((1, 1))]
    places = Rows(*(np.array(v, np.int32) for v in ([0, 0], [0, 1], [])))
    for cache, values in zip(held, ([1000, 2000], [8, 4]), strict=True):
        cache.write(places, f32(*values).reshape(2, 1, 1))
    rest = {"window": 0, "scale": 1.0, "softcap": 1e-3, "rows": places}
    q = np.ones((2, 1, 1), np.float32)
    got = get("attention").exact(q=q, k=held[0], v=held[1], sinks=None, **rest)
    assert np.allclose(got[:, 0], [8, 6])
    got = get("attention").exact(q=q, k=held[0], v=held[1], sinks=f32(1e-3), **rest)
    assert np.allclose(got[:, 0], [4, 4])
    got = get("attention").exact(q=q, k=held[0], v=held[1], sinks=f32(-np.inf), **rest)
    assert np.allclose(got[:, 0], [8, 6])


def test_embed_decodes_the_rows_that_it_needs() -> None:
    table = encode(FORMATS["q4_0"], np.random.default_rng(0).standard_normal((50, 64)).astype("f4"))
    token = np.array([[3, 49], [0, 3]], np.int32)
    assert np.array_equal(get("embed").exact(token=token, table=table), table.values()[token])
    assert np.allclose(get("embed").meaning(token=token, table=table), table.values()[token])
    assert not table._kept, "the whole table was decoded"


@pytest.mark.parametrize("token", [-1, 5])
def test_embed_refuses_tokens_out_of_the_table(token: int) -> None:
    with pytest.raises(UserError, match=rf"embed needs tokens of 0\.\.4, got {token}"):
        get("embed").exact(token=np.array([token], np.int32), table=np.zeros((5, 2), np.float32))


def test_expert_linear_is_linear_of_each_pick() -> None:
    rng = np.random.default_rng(0)
    w = weight_of(rng.standard_normal((4, 5, 37)).astype(np.float32))
    x = rng.standard_normal((3, 37)).astype(np.float32)
    index = np.array([[0, 3], [3, 3], [2, 1]], np.int32)
    got = get("expert_linear").exact(x=x, w=w, index=index)
    for t, p in np.ndindex(index.shape):
        one = get("linear").exact(x=x[t], w=w.values()[index[t, p]], b=None)
        assert np.array_equal(got[t, p], one)
    with pytest.raises(UserError, match=r"picks of 0\.\.3, got 4"):
        get("expert_linear").exact(x=x, w=w, index=index + 1)


def of(text: str) -> Type:
    dtype, _, dims = text.rstrip("]").partition("[")
    return Type(dtype, tuple(int(d) if d.isdigit() else d for d in dims.split(", ")))


REFUSALS = [
    ("rmsnorm", ("f32[4, 8]", "f32[7]"), {"eps": 1e-6},
     "rmsnorm needs w[n] for x[..., n], got f32[4, 8] and f32[7]"),
    ("rmsnorm", ("f32[4, 8]",), {"eps": -1.0}, "rmsnorm needs eps above 0, got -1.0"),
    ("rmsnorm", ("f16[4, 8]",), {"eps": 1e-6}, "rmsnorm needs f32, got f16[4, 8]"),
    ("softmax", ("f32[T]",), {}, "softmax needs a last axis of a fixed size, got f32[T]"),
    ("add", ("f32[4, 8]", "f32[4]"), {},
     "add needs axes that are equal, 1 or missing on the left, got f32[4, 8] and f32[4]"),
    ("add", ("f32[4]", "i32[4]"), {}, "add needs two of f32, i32, i64, got f32[4] and i32[4]"),
    ("div", ("i32[4]", "i32[4]"), {},
     "div needs two of f32 (cast integers first), got i32[4] and i32[4]"),
    ("add", ("f32[T]", "f32[3, 1]"), {}, "add needs T or R as the first axis, got f32[3, T]"),
    ("linear", ("f32[4, 8]", "f32[6, 7]"), {},
     "linear needs w[..., N, K] for x[..., K], got f32[4, 8] and f32[6, 7]"),
    ("linear", ("f32[4, 48]", "q8_0[6, 48]"), {},
     "linear needs K to be a multiple of 32 for q8_0, got f32[4, 48] and q8_0[6, 48]"),
    ("linear", ("q8[4, 32]", "f16[6, 32]"), {},
     "linear needs a block format as w for quantized x, got q8[4, 32] and f16[6, 32]"),
    ("linear", ("f32[4, 8]", "f32[6, 8]", "f32[8]"), {},
     "linear needs b of f32[N] for w[N, K], got f32[6, 8] and f32[8]"),
    ("matmul", ("f32[2, 3, 4]", "f32[3, 4, 5]"), {},
     "matmul needs the same leading axes, or b of two axes, got f32[2, 3, 4] and f32[3, 4, 5]"),
    ("reshape", ("f32[4, 6]",), {"shape": (5, 5)},
     "reshape to [5, 5] needs as many elements, got f32[4, 6]"),
    ("reshape", ("f32[T, 6]",), {"shape": (6, "T")},
     "reshape to [6, T] needs x with the same T or R as its first axis, got f32[T, 6]"),
    ("heads", ("f32[4, 10]",), {"count": 4},
     "heads needs a last axis that 4 divides, got f32[4, 10]"),
    ("transpose", ("f32[T, 4]",), {}, "transpose needs T or R as the first axis, got f32[4, T]"),
    ("transpose", ("f32[4]",), {}, "transpose needs an axis of x, got axis=-2 of f32[4]"),
    ("slice", ("f32[4, 8]",), {"axis": 1, "start": 3, "stop": 9},
     "slice 3..9 of axis 1 needs 0 <= start < stop <= the axis's size, got f32[4, 8]"),
    ("concat", ("f32[4, 8]", "f32[3, 8]"), {},
     "concat along axis -1 needs the same dtype and the same other axes, "
     "got f32[4, 8] and f32[3, 8]"),
    ("sum", ("f32[4, 8]",), {"axis": 2}, "sum needs an axis of x, got axis=2 of f32[4, 8]"),
    ("sum", ("f32[T, 8]",), {"axis": 0}, "sum needs an axis of a fixed size, got f32[T, 8]"),
    ("top_k", ("f32[4, 8]",), {"k": 9},
     "top_k needs k of 1..n for x[..., n], got k=9; x, got f32[4, 8]"),
    ("rope", ("f32[4, 2, 7]", "rows[4]"), {"theta": 1e4},
     "rope needs an even dims of at most HD, got dims=0; x, got f32[4, 2, 7]"),
    ("rope", ("f32[3, 2, 8]", "rows[4]"), {"theta": 1e4},
     "rope needs x[n, ...] for rows[n], got f32[3, 2, 8] and rows[4]"),
    ("append", ("cache_f16[2, 8]", "f32[T, 2, 8]", "rows[T]"), {},
     "append needs x[T, KV, HD] of the dtype of cache[KV, HD], "
     "got cache_f16[2, 8] and f32[T, 2, 8]"),
    ("attention", ("f32[T, 3, 8]", "cache_f32[2, 8]", "cache_f32[2, 8]", "rows[T]"), {},
     "attention needs KV to divide H for q[T, H, HD] and k[KV, HD], "
     "got f32[T, 3, 8] and cache_f32[2, 8]"),
    ("attention", ("f32[T, 2, 8]", "cache_f32[2, 8]", "cache_f32[2, 8]", "rows[T]"),
     {"softcap": -1.0}, "attention needs softcap above 0, got -1.0"),
    ("attention", ("f32[T, 2, 8]", "cache_f32[2, 8]", "cache_f32[2, 8]", "f32[3]", "rows[T]"), {},
     "attention needs sinks of f32[2], got f32[3]"),
    ("expert_linear", ("f32[T, 8]", "f32[4, 5, 8]", "i32[3, 2]"), {},
     "expert_linear needs x[T, K] or x[T, P, K] for picks [T, P], got f32[T, 8] and i32[3, 2]"),
    ("quantize", ("f32[4, 40]",), {}, "quantize needs a multiple of 32 as n, got f32[4, 40]"),
    ("cast", ("f32[4]",), {"dtype": "q8"}, "cast needs one of f32, f16, bf16, i32, i64, got q8"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "attrs", "message"), REFUSALS)
def test_refusals(
    name: str, operands: tuple[str, ...], attrs: dict[str, object], message: str
) -> None:
    values = [leaf("input", f"x{i}", of(t)) for i, t in enumerate(operands)]
    with pytest.raises(OpError) as error:
        build(name, values, attrs)  # type: ignore[arg-type]
    assert str(error.value) == message


def test_dynamic_rows_pass_through() -> None:
    rows = leaf("input", "rows", of("rows[T]"))
    x = leaf("input", "x", of("f32[T, 64]"))
    assert str(apply("wanted", x, rows).type) == "f32[R, 64]"
    assert str(apply("reshape", x, shape=("T", 2, 32)).type) == "f32[T, 2, 32]"
    assert str(apply("add", x, leaf("input", "b", of("f32[64]"))).type) == "f32[T, 64]"
    assert str(apply("sum", apply("heads", x, count=4), axis=1).type) == "f32[T, 16]"
    assert str(apply("quantize", x, words=2).type) == "q8x2[T, 64]"


def test_an_unknown_op_is_refused_with_near_names() -> None:
    with pytest.raises(OpError, match=r"there is no op rmsnrm; did you mean rmsnorm"):
        get("rmsnrm")
