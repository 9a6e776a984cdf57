"""fma, sums, extremes, rounding and quantize: exact results, and all pairs of 64 special values."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from compiler.exact import (
    fma,
    fma_full,
    maximum,
    minimum,
    quantize,
    quantize2,
    rint,
    round_bf16,
    round_f16,
    row_max,
    tree_sum,
)
from tests.awkward import SPECIAL, differing, pairs, random_floats
from tests.test_exact_dots import fmaf

f32 = np.float32


def close_calls(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a, b, c with c near -a * b, or with a sum on a tie, or anything."""
    rng = np.random.default_rng(2)
    a, b, c = (random_floats(count, seed) for seed in (1, 2, 3))
    with np.errstate(all="ignore"):
        near = -(a * b) * (1 + rng.integers(-4, 5, count).astype(f32) * f32(2.0**-23))
        c = np.where(rng.random(count) < 0.5, near, c).astype(f32)
    whole = rng.integers(-(2**24), 2**24, (3, count)) * 2.0 ** rng.integers(-6, 7, (3, count))
    a, b, c = (np.concatenate([u, v.astype(f32)]) for u, v in zip((a, b, c), whole, strict=True))
    return a, b, c


def test_fma_is_libm_s() -> None:
    a, b, c = close_calls(20_000)
    with np.errstate(all="ignore"):
        want = np.array([fmaf(*v) for v in zip(a, b, c, strict=True)], f32)
    assert differing(fma(a, b, c), want) == 0
    assert differing(fma_full(a, b, c), want) == 0


def test_fast_and_careful_fma_agree() -> None:
    a, b, c = close_calls(300_000)
    assert differing(fma(a, b, c), fma_full(a, b, c)) == 0


def test_fma_of_all_special_triples() -> None:
    a, b = pairs(SPECIAL)
    for c in SPECIAL:
        assert differing(fma(a, b, c), fma_full(a, b, c)) == 0


def test_fma_where_two_roundings_go_wrong() -> None:
    a, b = f32(1 + 2.0**-12), f32(1 + 2.0**-12)  # the square is 1 + 2^-11 + 2^-24: a tie
    c = f32(2.0**-80)
    naive = f32(float(a) * float(b) + float(c))
    assert fma(a, b, c) == naive + f32(2.0**-23)
    assert fma(a, b, -c) == naive
    a, b = f32(2.0**-75 + 2.0**-93), f32(2.0**-75 - 2.0**-93)  # the product is just below 2^-150
    c = f32(2.0**-127 + 2.0**-149)  # of float32 2^-150 is the half of the last place here
    assert f32(float(a) * float(b) + float(c)) == c + f32(2.0**-149)
    assert fma(a, b, c) == c


def loop_tree(values: list[np.float32]) -> np.float32:
    if len(values) == 1:
        return values[0]
    values = values + [f32(-0.0)] * (len(values) % 2)
    return loop_tree([f32(u + v) for u, v in zip(values[::2], values[1::2], strict=True)])


@pytest.mark.parametrize("n", (1, 2, 3, 5, 8, 31, 33, 100))
def test_tree_sum_is_the_tree(n: int) -> None:
    rng = np.random.default_rng(n)
    for draw in (rng.standard_normal((50, n)).astype(f32), rng.choice(SPECIAL, (50, n))):
        with np.errstate(all="ignore"):
            want = np.array([loop_tree(list(row)) for row in draw], f32)
        assert differing(tree_sum(draw), want) == 0


def test_a_sum_of_negative_zeros_is_one() -> None:
    assert np.signbit(tree_sum(np.full(3, -0.0, f32))) and np.signbit(tree_sum(np.zeros(0, f32)))


def extreme(a: np.float32, b: np.float32, greater: bool) -> np.float32:
    if np.isnan(a) or np.isnan(b):
        return f32(np.nan)
    if a == b:
        return a if np.signbit(a) != greater else b
    return max(a, b) if greater else min(a, b)


def test_extremes_of_all_pairs() -> None:
    a, b = pairs(SPECIAL)
    for function, greater in ((maximum, True), (minimum, False)):
        want = [extreme(u, v, greater) for u, v in zip(a, b, strict=True)]
        assert differing(function(a, b), np.array(want, f32)) == 0
    assert differing(row_max(np.stack([a, b], axis=1)), maximum(a, b)) == 0


def neighbour(x: float, mantissa: int, lowest: int, top: float) -> float:
    """The nearest number of `mantissa` bits and exponents from `lowest`, ties to even, exactly."""
    exact = Fraction(x)
    exponent = max(int(np.frexp(x)[1]) - mantissa, lowest)
    scaled = exact / Fraction(2) ** exponent
    rounded = Fraction(round(scaled)) * Fraction(2) ** exponent  # round() is half to even
    return float("inf") if rounded > Fraction(top) else float(rounded)


def test_rounding_to_16_bits() -> None:
    x = np.concatenate(
        [SPECIAL, random_floats(3000), np.exp2(np.linspace(-27, 17, 3000)).astype(f32)]
    )
    x = x[np.isfinite(x)]
    bf16_top = float(np.array(0x7F7F0000, np.uint32).view(f32))
    for function, shape in ((round_f16, (11, -24, 65504.0)), (round_bf16, (8, -133, bf16_top))):
        want = [np.copysign(neighbour(abs(v), *shape), v) for v in x.tolist()]
        assert differing(function(x), np.array(want, f32)) == 0
        ends = function(np.array([np.inf, -np.inf, np.nan], f32))
        assert ends[0] == np.inf and ends[1] == -np.inf and np.isnan(ends[2])


def test_rint_is_half_even_and_keeps_the_sign() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -0.2, 8388607.5, np.inf], f32)
    want = np.array([0, 2, 2, -0.0, -2, -0.0, 8388608, np.inf], f32)
    assert differing(rint(x), want) == 0


def loop_quantize(v: np.ndarray, two: bool):
    """A group of 32, value by value."""
    amax = f32(0)
    for value in np.abs(v):
        amax = maximum(amax, value)[()]
    s = f32(amax / f32(127))
    fine = f32(s * f32(2.0**-7))
    words, low = [], []
    for value in v:
        good = s > 0 and np.isfinite(s)
        h = min(max(round(float(f32(value / s))), -127), 127) if good else 0
        good = fine >= f32(2.0**-126) and np.isfinite(s)
        rest = fmaf(-h, s, value) / fine
        words.append(h)
        low.append(min(max(round(float(f32(rest))), -127), 127) if good else 0)
    whole = 128 * sum(words) + sum(low) if two else sum(words)
    return words, low, s, f32((fine if two else s) * f32(whole))


@pytest.mark.parametrize("two", (False, True), ids=("q8", "q8x2"))
def test_quantize_is_the_loop(two: bool) -> None:
    rng = np.random.default_rng(8)
    plain = rng.standard_normal((60, 32)) * 2.0 ** rng.integers(-149, 120, (60, 1))
    halves = rng.integers(-126, 126, (9, 32)) + 0.5  # between two words, and then two low ones
    halves[:, 0], halves[4:] = 127, halves[4:] / 128
    halves[4:, 0] = 127
    parts = [plain, rng.choice(SPECIAL, (20, 32)), np.zeros((1, 32)), halves]
    x = np.concatenate([part.astype(f32) for part in parts])
    got = (quantize2 if two else quantize)(x)
    with np.errstate(all="ignore"):
        want = [loop_quantize(v, two) for v in x]
    assert got.words.tolist() == [w[0] for w in want]
    assert (got.low is None) != two
    if got.low is not None:
        assert got.low.tolist() == [w[1] for w in want]
    assert differing(got.scales[:, 0], np.array([w[2] for w in want], f32)) == 0
    assert differing(got.sums[:, 0], np.array([w[3] for w in want], f32)) == 0


def test_quantize_refuses_a_ragged_row() -> None:
    with pytest.raises(ValueError, match="multiple of 32"):
        quantize(np.zeros((2, 33), f32))
