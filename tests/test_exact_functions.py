"""exp, log, tanh, erf, sin and cos against float64, in ulps; the ends of their range."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler.exact import erf, exp, log, rope_table, sincos, tanh

f32 = np.float32
STRIDE = 4099  # a prime: about a million of the 2^32 floats


def every_few() -> NDArray[np.float32]:
    x = np.arange(0, 2**32, STRIDE, dtype=np.int64).astype(np.uint32).view(f32)
    return x[~np.isnan(x)]


def ulps(got: NDArray[np.float32], want: NDArray[np.float64]) -> float:
    """The greatest error, in units of the last place of the true value; inf must be inf."""
    top = float(np.finfo(f32).max)
    over = np.abs(want) > top * (1 + 2.0**-25)
    assert np.array_equal(np.isinf(got), over) and np.array_equal(np.isnan(got), np.isnan(want))
    fine = ~over & ~np.isnan(want)
    unit = np.exp2(np.maximum(np.frexp(want[fine])[1] - 24, -149).astype(np.float64))
    return float(np.max(np.abs(got[fine].astype(np.float64) - want[fine]) / unit))


@pytest.mark.parametrize(
    ("function", "true", "bound"), ((exp, np.exp, 0.87), (log, np.log, 0.86), (tanh, np.tanh, 1.41))
)
def test_errors_are_within_the_stated_bounds(function, true, bound: float) -> None:
    x = every_few()
    with np.errstate(all="ignore"):
        assert 0.5 < ulps(function(x), true(x.astype(np.float64))) <= bound


def test_erf_s_error() -> None:
    x = every_few()[::8]
    want = np.array([math.erf(v) for v in x.tolist()])
    assert 0.5 < ulps(erf(x), want) <= 1.0


@pytest.mark.parametrize(
    ("function", "x", "want"),
    (
        (exp, (0, -0.0, np.inf, -np.inf, 88.73, -104, 1e30), (1, 1, np.inf, 0, np.inf, 0, np.inf)),
        (exp, (-103.9,), (2.0**-149,)),
        (log, (0, -0.0, 1, np.inf, -1, -np.inf), (-np.inf, -np.inf, 0, np.inf, np.nan, np.nan)),
        (tanh, (0.0, -0.0, np.inf, -np.inf, 1e-45, 20), (0.0, -0.0, 1, -1, 1e-45, 1)),
        (erf, (0.0, -0.0, np.inf, -np.inf, 5, -5), (0.0, -0.0, 1, -1, 1, -1)),
        *((f, (np.nan,), (np.nan,)) for f in (exp, log, tanh, erf)),
    ),
)
def test_the_ends_of_the_range(function, x, want) -> None:
    got, want = function(np.array(x, f32)), np.array(want, f32)
    assert np.array_equal(got, want, equal_nan=True)
    assert np.array_equal(np.signbit(got), np.signbit(want)) or np.isnan(want).any()


def test_the_log_of_subnormal_floats() -> None:
    x = np.array([1, 2, 3, 0x7FFFFF, 0x400000], np.uint32).view(f32)
    assert np.allclose(log(x), np.log(x.astype(np.float64)), rtol=1e-7)


def test_functions_keep_the_shape() -> None:
    assert exp(f32(1)).shape == () and exp(np.zeros((2, 0, 3), f32)).shape == (2, 0, 3)
    x = np.random.default_rng(0).standard_normal((5, 40_000)).astype(f32)
    assert np.array_equal(exp(x)[3, 30_000:], exp(x[3, 30_000:]))


def test_sine_and_cosine_are_within_an_ulp() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(-(2.0**24), 2.0**24, 300_000), rng.uniform(-9, 9, 300_000)])
    sine, cosine = sincos(x)
    assert ulps(sine, np.sin(x)) < 0.51 and ulps(cosine, np.cos(x)) < 0.51


def test_multiples_of_a_quarter_turn() -> None:
    x = np.arange(1, 200_000) * (np.pi / 2)
    sine, cosine = sincos(x)
    assert ulps(sine, np.sin(x)) < 1 and ulps(cosine, np.cos(x)) < 1


def test_angles_that_are_not_finite_give_nan() -> None:
    sine, cosine = sincos(np.array([np.inf, -np.inf, np.nan]))
    assert np.isnan(sine).all() and np.isnan(cosine).all()


def test_the_rope_table() -> None:
    pos = np.array([0, 1, 8191], np.int32)
    inv_freq = np.array([1.0, 0.01])
    freqs = np.array([1, 4], f32)
    cosine, sine = rope_table(pos, inv_freq, freqs)
    angle = pos[:, None] * inv_freq / freqs
    assert np.array_equal(cosine, np.cos(angle).astype(f32))
    assert np.array_equal(sine, np.sin(angle).astype(f32))
    assert np.array_equal(rope_table(pos, inv_freq)[1][:, 0], sine[:, 0])
