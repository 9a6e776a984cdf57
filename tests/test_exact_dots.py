"""The frame of dots against plain loops over libm's fmaf, on ordinary and on awkward values."""

from __future__ import annotations

import ctypes
import ctypes.util

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler.exact import frame_dot, matmul, quantize, quantize2, weight_dot
from compiler.formats import FORMATS, Format, decode
from compiler.values import Quantized, Weight, weight_of
from tests.awkward import SPECIAL, differing, random_floats

f32 = np.float32
libm = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
libm.fmaf.restype = ctypes.c_float
libm.fmaf.argtypes = [ctypes.c_float] * 3
Floats = NDArray[np.float32]


def fmaf(a: float, b: float, c: float) -> np.float32:
    return f32(libm.fmaf(float(a), float(b), float(c)))


def added(parts: list[np.float32]) -> np.float32:
    total = parts[0]
    for part in parts[1:]:
        total = f32(total + part)
    return total


def loop_frame(x: Floats, w: Floats) -> Floats:
    """The frame of one row of each, element by element."""
    out = []
    for start in range(0, len(x), 128):
        p = f32(w[start] * x[start])
        for k in range(start + 1, min(start + 128, len(x))):
            p = fmaf(w[k], x[k], p)
        out.append(p)
    return added(out)


def loop_blocks(x: Quantized, row: int, levels: NDArray[np.int8], d: Floats, m: Floats | None):
    """The quantized dot of one row of each, block by block."""
    dots, scales = [], []
    for b in range(len(d)):
        at = slice(32 * b, 32 * b + 32)
        w = levels[at].astype(np.int64)
        whole = int(w @ x.words[row, at].astype(np.int64))
        a = f32(d[b] * x.scales[row, b])
        if x.low is not None:
            whole = 128 * whole + int(w @ x.low[row, at].astype(np.int64))
            a = f32(a * f32(2.0**-7))
        dots.append(f32(whole))
        scales.append(a)
    out = []
    for start in range(0, len(d), 4):
        some = range(start, min(start + 4, len(d)))
        p = f32(scales[start] * dots[start])
        for b in some[1:]:
            p = fmaf(scales[b], dots[b], p)
        for b in some if m is not None else ():
            p = fmaf(m[b], x.sums[row, b], p)
        out.append(p)
    return added(out)


def rows_of(kind: str, shape: tuple[int, ...], seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    if kind == "normal":
        return rng.standard_normal(shape).astype(f32)
    if kind == "ties":  # few bits: many sums land on a tie
        return (rng.integers(-9, 10, shape) * 2.0 ** rng.integers(-12, 13, shape)).astype(f32)
    if kind == "tiny":  # products and sums among the subnormal floats
        return (rng.standard_normal(shape) * 2.0 ** rng.integers(-80, -60, shape)).astype(f32)
    if kind == "bits":
        return random_floats(int(np.prod(shape)), seed).reshape(shape)
    return rng.choice(SPECIAL, shape)


KINDS = ("normal", "ties", "tiny", "bits", "special")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", (1, 3, 64, 127, 128, 129, 300))
def test_the_frame_is_the_loop(kind: str, k: int) -> None:
    x, w = rows_of(kind, (3, k), 1), rows_of(kind, (7, k), 2)
    with np.errstate(all="ignore"):
        want = np.array([[loop_frame(u, v) for v in w] for u in x], f32)
    assert differing(frame_dot(x, w), want) == 0
    assert differing(weight_dot(x, weight_of(w)), want) == 0


@pytest.mark.parametrize(("scale", "half"), ((0, -24), (-127, -150)))
def test_a_sum_beside_a_tie_is_rounded_once(scale: int, half: int) -> None:
    """The exact sum lies below a tie of float32, normal or subnormal; float64 rounds it onto it."""
    low, high = (2.0 ** (half // 2) * (1 + side * 2.0**-18) for side in (-1, 1))
    last = 2.0 ** max(scale - 23, -149)
    x = np.array([[1, low]], f32)
    w = np.array([[2.0**scale + last, high]], f32)
    assert f32(float(w[0, 0]) + low * high) == w[0, 0] + f32(last), "rounded twice"
    assert frame_dot(x, w) == w[0, 0]


def test_a_frame_s_bits_depend_on_no_tile() -> None:
    x, w = rows_of("ties", (37, 300), 3), rows_of("normal", (2500, 300), 4)
    whole = frame_dot(x, w)
    for m, n in ((0, 0), (36, 2499), (5, 1024), (20, 1777)):
        assert differing(whole[m : m + 1, n : n + 1], frame_dot(x[m : m + 1], w[n : n + 1])) == 0
    assert differing(whole[11:12], frame_dot(x[11:12], w)) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_leading_axes_broadcast(kind: str) -> None:
    a, b = rows_of(kind, (2, 1, 4, 40), 5), rows_of(kind, (3, 40, 6), 6)
    out = matmul(a, b)
    assert out.shape == (2, 3, 4, 6)
    one = frame_dot(a[1, 0], np.ascontiguousarray(b[2].T))
    assert differing(np.asarray(out[1, 2], f32), one) == 0


def test_integers_wrap() -> None:
    a = np.full((2, 3), 2**30, np.int32)
    assert matmul(a, np.full((3, 1), 2, np.int32)).tolist() == [[-(2**31)], [-(2**31)]]


def weight(fmt: Format, n: int, k: int, scales: Floats, seed: int = 9) -> Weight:
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 256, (n, k // fmt.block, fmt.size), dtype=np.uint8)
    for at in (fmt.scale, fmt.offset):
        if at is not None:
            halves = rng.choice(scales, (n, k // fmt.block, 1)).astype(np.float16)
            raw[:, :, at : at + 2] = halves.view(np.uint8)
    return Weight(fmt, (n, k), raw)


ORDINARY = np.linspace(-0.01, 0.01, 101, dtype=f32)
AWKWARD = np.array([0, -0.0, 2.0**-24, -(2.0**-24), 65504, 1, -1, np.inf, np.nan], f32)
QUANTIZED = [f for f in FORMATS.values() if f.quantized]


@pytest.mark.parametrize("fmt", QUANTIZED, ids=lambda f: f.name)
@pytest.mark.parametrize("make", (quantize, quantize2), ids=("q8", "q8x2"))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", (32, 96, 128, 288))
def test_the_quantized_dot_is_the_loop(fmt: Format, make, kind: str, k: int) -> None:
    k = k if fmt.block == 32 else -(-k // 128) * 256
    x = make(rows_of(kind, (3, k), 7))
    for scales in (ORDINARY, AWKWARD):
        w = weight(fmt, 6, k, scales)
        levels, d, m = decode(fmt, w.rows)
        with np.errstate(all="ignore"):
            want = [
                [loop_blocks(x, t, levels[n], d[n], None if m is None else m[n]) for n in range(6)]
                for t in range(3)
            ]
        assert differing(weight_dot(x, w), np.array(want, f32)) == 0


def test_two_words_are_rounded_together() -> None:
    """Dots that are greater than float32's whole numbers, so that each would be rounded."""
    rng = np.random.default_rng(11)
    raw = weight(FORMATS["q8_0"], 6, 288, ORDINARY).rows.reshape(6, 9, 34).copy()
    raw[:, :, 2:] = rng.integers(100, 128, (6, 9, 32))
    w = Weight(FORMATS["q8_0"], (6, 288), raw)
    x = quantize2(rng.uniform(0.9, 1, (3, 288)).astype(f32))
    levels, d, _ = decode(w.format, w.rows)
    want = [[loop_blocks(x, t, levels[n], d[n], None) for n in range(6)] for t in range(3)]
    assert differing(weight_dot(x, w), np.array(want, f32)) == 0


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda f: f.name)
def test_weights_under_f32_are_their_values(fmt: Format) -> None:
    k = max(160, fmt.block)
    w = weight(fmt, 5, k, ORDINARY) if fmt.quantized else random_weight(fmt)
    x = rows_of("normal", (2, 3, k), 8)
    out = weight_dot(x, w)
    assert out.shape == (2, 3, 5)
    assert differing(out, frame_dot(x, w.values())) == 0


def random_weight(fmt: Format) -> Weight:
    values = rows_of("normal", (5, 160), 10)
    bits = values.view(np.uint32)
    stored = {
        "f32": bits,
        "f16": values.astype(np.float16),
        "bf16": (bits >> np.uint32(16)).astype(np.uint16),
    }[fmt.name]
    return Weight(fmt, (5, 160), stored.view(np.uint8))


def test_padding_adds_nothing_bit_for_bit() -> None:
    """What padded tiles of a kernel rely on: scale -0, words 0, offset -0."""
    x = quantize(rows_of("normal", (4, 64), 11))
    padded = Quantized(
        np.pad(x.words, ((0, 0), (0, 64))),
        None,
        *(np.pad(v, ((0, 0), (0, 2))) for v in (x.scales, x.sums)),
    )
    fmt = FORMATS["q4_1"]
    w = weight(fmt, 5, 64, ORDINARY)
    more = np.zeros((5, 2, fmt.size), np.uint8)
    more[:, :, [1, 3]] = 0x80
    wide = Weight(fmt, (5, 128), np.concatenate([w.data, more], axis=1))
    assert differing(weight_dot(x, w), weight_dot(padded, wide)) == 0


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        weight_dot(np.zeros((1, 3), f32), weight_of(np.zeros((2, 4), f32)))
    with pytest.raises(ValueError, match="need quantized weights"):
        weight_dot(quantize(np.zeros((1, 32), f32)), weight_of(np.zeros((2, 32), f32)))
