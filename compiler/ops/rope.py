"""rope: rotary position embedding of heads."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from compiler import exact
from compiler.ops import Error, Op, OpError, define, sample
from compiler.ops.errors import TINY, gamma
from compiler.ops.rules import Array, Reals, count, need, positive, same_rows, width
from compiler.types import Type
from compiler.values import Rows

Floats = NDArray[np.float32]


def _infer(
    x: Type, theta: float, interleaved: int, dims: int, factor: float, freqs: Type | None,
    rows: Type,
) -> Type:  # fmt: skip
    n = width("rope", x)
    same_rows("rope", x, rows)
    need(2 <= x.rank <= 3, "rope needs x[T, H, HD] or x[T, HD]", x)
    turned = dims or n
    need(0 < turned <= n and turned % 2 == 0, f"rope needs an even dims of at most HD, got "
         f"dims={dims}; x", x)  # fmt: skip
    need(freqs is None or freqs == Type("f32", (turned // 2,)),
         f"rope needs freqs of f32[{turned // 2}]", freqs)  # fmt: skip
    if interleaved not in (0, 1):
        raise OpError(f"rope needs interleaved=0 or 1, got {interleaved}")
    positive("rope", "theta", theta)
    positive("rope", "factor", factor)
    return x


def inverse_frequencies(theta: float, dims: int, factor: float) -> tuple[float, ...]:
    """Radians a position of each of dims / 2 pairs: theta^(-2i / dims) / factor, as float64."""
    return tuple(theta ** (-2.0 * i / dims) / factor for i in range(dims // 2))


@lru_cache(maxsize=16)
def _table(
    pos: bytes, theta: float, dims: int, factor: float, freqs: bytes | None
) -> tuple[Floats, Floats]:
    """(cos, sin) f32[T, dims / 2]; all layers of a step turn by the same angles."""
    return exact.rope_table(
        np.frombuffer(pos, np.int32),
        np.array(inverse_frequencies(theta, dims, factor)),
        None if freqs is None else np.frombuffer(freqs, np.float32),
    )


def _turn(x: Array, cos: Array, sin: Array, interleaved: int) -> Array:
    """(a, b) -> (a * c - b * s, a * s + b * c); c and s [T, pairs], x [T, ..., HD]."""
    pairs = cos.shape[-1]
    each = (len(cos), *(1,) * (x.ndim - 2), pairs)
    c, s = cos.reshape(each), sin.reshape(each)
    out = x.copy()
    first, second = (
        (np.s_[..., 0 : 2 * pairs : 2], np.s_[..., 1 : 2 * pairs : 2])
        if interleaved
        else (np.s_[..., :pairs], np.s_[..., pairs : 2 * pairs])
    )
    a, b = x[first], x[second]
    out[first], out[second] = a * c - b * s, a * s + b * c
    return out


def _exact(
    x: Array, theta: float, interleaved: int, dims: int, factor: float, freqs: Array | None,
    rows: Rows,
) -> Array:  # fmt: skip
    """Angles, sine and cosine in spelled float64, rounded to f32; products and sums in f32."""
    kept = None if freqs is None else np.ascontiguousarray(freqs, np.float32).tobytes()
    cos, sin = _table(rows.pos.astype(np.int32).tobytes(), theta, dims or x.shape[-1], factor, kept)
    return _turn(x, cos, sin, interleaved)


def _meaning(
    x: Reals, theta: float, interleaved: int, dims: int, factor: float, freqs: Reals | None,
    rows: Rows,
) -> Reals:  # fmt: skip
    """Pairs as complex numbers, each turned by e^(i angle)."""
    turn = np.exp(1j * _angles(x, theta, dims, factor, freqs, rows))
    axis = -1 if interleaved else -2
    real, imaginary = np.moveaxis(_pairs(x, interleaved, dims), axis, 0)
    turned = (real + 1j * imaginary) * turn
    y = np.stack([turned.real, turned.imag], axis=axis)
    return np.concatenate([y.reshape(*x.shape[:-1], -1), x[..., dims or x.shape[-1] :]], axis=-1)


def _angles(
    x: Reals, theta: float, dims: int, factor: float, freqs: Reals | None, rows: Rows
) -> Reals:
    n = dims or x.shape[-1]
    rate = theta ** (-np.arange(0, n, 2) / n) / factor
    angle = rows.pos[:, None] * (rate if freqs is None else rate / freqs)
    return angle.reshape(len(rows), *(1,) * (x.ndim - 2), n // 2)


def _pairs(x: Reals, interleaved: int, dims: int) -> Reals:
    n = dims or x.shape[-1]
    return x[..., :n].reshape(*x.shape[:-1], *((n // 2, 2) if interleaved else (2, n // 2)))


def _bound(
    x: Reals, theta: float, interleaved: int, dims: int, factor: float, freqs: Reals | None,
    rows: Rows,
) -> Reals:  # fmt: skip
    axis = -1 if interleaved else -2
    length = np.hypot(*np.moveaxis(_pairs(x, interleaved, dims), axis, 0))
    angle = np.abs(_angles(x, theta, dims, factor, freqs, rows))
    off = length * (gamma(4) + angle * 2.0**-50) + TINY
    off = np.stack([off, off], axis=axis).reshape(*x.shape[:-1], -1)
    return np.concatenate([off, np.zeros_like(x[..., dims or x.shape[-1] :])], axis=-1)


ROWS = "r: rows[4] = [[0, 0], [0, 1], [1, 0], [0, 2]]"

define(
    Op(
        "rope",
        "x, theta:real, interleaved:int=0, dims:int=0, factor:real=1.0, freqs?, rows",
        infer=_infer,
        meaning=_meaning,
        exact=_exact,
        doc="pairs of x[T, H, HD] turned by position * theta^(-2i / dims) / factor / freqs[i]",
        truths=(
            "rope([[nan, 1.0]], theta=1e4, rows=[[0, 0]]) = [[nan, nan]]",
            "rope([[inf, 1.0]], theta=1e4, rows=[[0, 0]]) = [[inf, nan]]",
            "rope([[-0.0, 0.0]], theta=1e4, rows=[[0, 0]]) = [[-0.0, 0.0]]",
        ),
        error=Error("(gamma(4) + 2^-50 angle) * the length of a pair", _bound),
        samples=(
            sample("x: f32[1, 1, 2]; r: rows[1] = [[0, 5]]", "rope(x, 10000.0)"),
            sample(f"x: f32[4, 3, 38]; {ROWS}", "rope(x, 10000.0)"),
            sample(f"x: f32[4, 2, 64]; {ROWS}", "rope(x, 1e6, interleaved=1)"),
            sample(f"x: f32[4, 96]; {ROWS}", "rope(x, 500.0, dims=32, factor=4.0)"),
            sample(f"x: f32[4, 2, 10]; f: f32[4] = [1.0, 2.0, 4.0, 8.0]; {ROWS}",
                   "rope(x, 1e4, interleaved=1, dims=8, freqs=f)"),
            sample("x: f32[2, 1, 64]; r: rows[2] = [[0, 40000], [3, 1]]", "rope(x, 1e4)"),
        ),
        flops=lambda ins, _: 3 * count(ins[0]),
    )
)  # fmt: skip
