"""exp, log, tanh and erf of float32: our own fused polynomials, those of codegen/lib/math.cuh.

Every line is one IEEE operation of float32. Error bounds were measured over all 2^32 floats against
the C library's float64; the polynomials of exp, log and erf are after N. Juffa's published ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compiler.exact.fma import Floats, elementwise, fma

f32 = np.float32
NAN, INF, ONE, ZERO = f32(np.nan), f32(np.inf), f32(1), f32(0)
MAGIC = f32(1.5 * 2**23)  # added and taken away again, it rounds to an integer
LOG2_E = f32(float.fromhex("0x1.715476p+0"))
LN2 = f32(float.fromhex("0x1.62e430p-1"))
LN2_HIGH = f32(float.fromhex("0x1.62e400p-1"))  # few bits: n * LN2_HIGH is exact
LN2_LOW = f32(float.fromhex("0x1.7f7d1cp-20"))


def _horner(x: NDArray[np.floating], *coefficients: float) -> Floats:
    """fma(...fma(fma(c0, x, c1), x, c2)..., x, c_last)"""
    p = np.broadcast_to(f32(coefficients[0]), x.shape)
    for c in coefficients[1:]:
        p = fma(p, x, f32(c))
    return p


def _power_of_two(exponent: NDArray[np.int32]) -> Floats:
    return ((exponent + np.int32(127)) << np.int32(23)).view(f32)


def _exp(x: Floats) -> Floats:
    inside = (x <= f32(89)) & (x >= f32(-104))
    v = np.where(inside, x, ZERO)
    n = fma(v, LOG2_E, MAGIC) - MAGIC
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, v))
    p = _horner(
        r, 1.37805939e-3, 8.37312452e-3, 4.16695364e-2, 1.66664720e-1, 4.99999851e-1, 1.0, 1.0
    )
    whole = n.astype(np.int32)
    half = whole >> 1
    p = (p * _power_of_two(half)) * _power_of_two(whole - half)
    return np.where(inside, p, np.where(x > ZERO, INF, np.where(x < ZERO, ZERO, NAN)))


@elementwise
def exp(x: Floats) -> Floats:
    """exp(x), f32[...]: within 0.87 ulp. Above 88.7 inf, below -104 +0, subnormal between.

    x = n ln 2 + r with |r| <= ln 2 / 2; a polynomial of degree 6 in r; 2^n as two factors.
    """
    return _exp(x)


@elementwise
def log(x: Floats) -> Floats:
    """log(x), f32[...]: within 0.86 ulp. log(+-0) = -inf, of a negative number NaN, log(inf) = inf.

    x = m 2^e with m in [2/3, 4/3); log1p(m - 1) by a polynomial of degree 9; e ln 2 added last.
    """
    tiny = x < f32(2.0**-126)
    a = np.where(tiny, x * f32(2.0**23), x)
    bits = a.view(np.int32)
    e = (bits - np.int32(0x3F2AAAAB)) & np.int32(-(1 << 23))
    m = (bits - e).view(f32) - ONE
    scale = fma(e.astype(f32), f32(2.0**-23), np.where(tiny, f32(-23), ZERO))
    s = m * m
    r = _horner(s, -0.130310059, -0.121483512, -0.166846126, -0.249996200)
    t = _horner(s, 0.140869141, 0.139814854, 0.200120345)
    r = fma(t, m, r)
    r = fma(fma(r, m, f32(0.333331972)), m, f32(-0.5))
    y = fma(scale, LN2, fma(r, s, m))
    special = np.where(x == ZERO, -INF, np.where(x == INF, INF, NAN))
    return np.where((x > ZERO) & (x < INF), y, special)


@elementwise
def tanh(x: Floats) -> Floats:
    """tanh(x), f32[...]: within 1.41 ulp; tanh(-0) = -0.

    |x| < 0.6: an odd polynomial. Else 1 - 2 / (exp(2|x|) + 1), with the sign of x.
    """
    t = np.abs(x)
    s = x * x
    p = _horner(s, -5.89059666e-3, 2.07923576e-2, -5.37828542e-2, 1.33319139e-1, -3.33332986e-1)
    near = fma(p * s, t, t)
    far = ONE - f32(2) / (_exp(t + t) + ONE)
    return _signed(np.where(t >= f32(0.6), far, near), x)


@elementwise
def erf(x: Floats) -> Floats:
    """erf(x), f32[...]: within 1.0 ulp; erf(-0) = -0.

    |x| < 0.921875: an odd polynomial. Else 1 - exp(polynomial), and 1 above 4, with the sign of x.
    """
    t = np.abs(x)
    s = x * x
    p = _horner(
        s,
        *(-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1),
        1.28379166e-1,
    )
    near = fma(p, t, t)
    r = fma(f32(-1.72853470e-5), t, f32(3.83197126e-4))
    u = fma(f32(-3.88396438e-3), t, f32(2.42546219e-2))
    q = _horner(t, -1.06777877e-1)
    q = fma(fma(r, s, u), t, q)
    q = fma(fma(q, t, f32(-6.34846687e-1)), t, f32(-1.28717512e-1))
    far = np.where(t > f32(4), ONE, ONE - _exp(fma(q, t, -t)))
    return _signed(np.where(t >= f32(0.921875), far, near), x)


def _signed(size: Floats, sign: Floats) -> Floats:
    """The sign of `sign` on `size`, which is not negative; NaN where `sign` is."""
    return np.where(np.isnan(sign), NAN, np.copysign(size, sign))
