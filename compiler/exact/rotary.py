"""Sine and cosine for rotary embeddings: spelled float64, no fma, rounded to float32 at the end.

The same operations as sincos64 of codegen/lib/math.cuh, so the bits are the same everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compiler.exact.fma import Doubles, Floats

MAGIC = 1.5 * 2.0**52  # added and taken away again, it rounds to an integer
TWO_OVER_PI = float.fromhex("0x1.45f306dc9c883p-1")
# pi / 2 in three parts. n * PART is exact for the first two, of 27 bits each, while n < 2^26.
PART_1 = float.fromhex("0x1.921fb54p+0")
PART_2 = float.fromhex("0x1.10b461p-30")
PART_3 = float.fromhex("0x1.a62633145c06ep-58")
# fdlibm's __kernel_sin and __kernel_cos (Sun Microsystems, 1993)
SINE = (
    1.58969099521155010221e-10,
    -2.50507602534068634195e-08,
    2.75573137070700676789e-06,
    -1.98412698298579493134e-04,
    8.33333333332248946124e-03,
    -1.66666666666666324348e-01,
)
COSINE = (
    -1.13596475577881948265e-11,
    2.08757232129817482790e-09,
    -2.75573143513906633035e-07,
    2.48015872894767294178e-05,
    -1.38888888888741095749e-03,
    4.16666666666666019037e-02,
)


def _polynomial(z: Doubles, coefficients: tuple[float, ...]) -> Doubles:
    p = np.full_like(z, coefficients[0])
    for c in coefficients[1:]:
        p = p * z + c
    return p


def sincos(angle: ArrayLike) -> tuple[Floats, Floats]:
    """angle f64[...] in radians -> (sin, cos) as f32[...]; NaN for what is not finite.

    Cody and Waite's reduction by n = round(angle 2/pi), r = ((angle - n P1) - n P2) - n P3, then
    fdlibm's polynomials. Both are the true values rounded, give or take one ulp of float32, for
    |angle| <= 2^26.
    """
    x = np.asarray(angle, np.float64)
    with np.errstate(all="ignore"):
        finite = np.abs(x) <= 2.0**30
        x = np.where(finite, x, 0.0)
        n = (x * TWO_OVER_PI + MAGIC) - MAGIC
        r = ((x - n * PART_1) - n * PART_2) - n * PART_3
        z = r * r
        s = r + (r * z) * _polynomial(z, SINE)
        c = 1.0 - (0.5 * z - (z * z) * _polynomial(z, COSINE))
        quadrant = n.astype(np.int64) & 3
        sine, cosine = np.where(quadrant & 1, c, s), np.where(quadrant & 1, s, c)
        sine = np.where(quadrant & 2, -sine, sine)
        cosine = np.where((quadrant + 1) & 2, -cosine, cosine)
        nan = np.float32(np.nan)
        return (
            np.where(finite, sine.astype(np.float32), nan),
            np.where(finite, cosine.astype(np.float32), nan),
        )


def rope_table(
    pos: NDArray[np.integer], inv_freq: Doubles, freqs: Floats | None = None
) -> tuple[Floats, Floats]:
    """(cos, sin), each f32[T, P], of P rotations for T positions.

    angle = f64(pos[t]) * inv_freq[i], then, where `freqs` f32[P] is given, / f64(freqs[i]).
    """
    with np.errstate(all="ignore"):
        angle = np.asarray(pos, np.float64)[:, None] * np.asarray(inv_freq, np.float64)
        if freqs is not None:
            angle = angle / np.asarray(freqs, np.float64)
    sine, cosine = sincos(angle)
    return cosine, sine
