"""How far an op's exact arithmetic is from its meaning in real numbers, at most.

The usual model of rounding: fl(a + b) = (a + b)(1 + d) with |d| <= u = 2^-24, so that what goes
through n roundings is off by gamma(n) = n u / (1 - n u) of itself (Higham, Accuracy and Stability
of Numerical Algorithms, 3.1); below the normal floats a rounding adds 2^-150 at most. Bounds hold
where nothing overflows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.formats import decode
from compiler.ops import Error
from compiler.ops.rules import Array, Reals, as_weight, real
from compiler.types import GROUP
from compiler.values import Quantized, Weight

U = 2.0**-24
TINY = 2.0**-149  # two roundings below the normal floats
EXP = 2 * 0.87  # u that exp32 is off, at most
TANH = 2 * 1.41
SEGMENT, BLOCKS = 128, 4  # values and blocks that are one chain


def gamma(n: float | Reals) -> Any:
    return n * U / (1 - n * U)


def depth(n: int) -> int:
    """Sums on the way of a value through the adjacent-first tree over n of them."""
    return (n - 1).bit_length()


def frame_roundings(k: int) -> int:
    """Of a dot of K values: a segment's chain, then the sums of the segments behind it."""
    return min(k, SEGMENT) - (-k // SEGMENT) - 1


CHOICE = Error("none: what it gives is one of its operands", lambda **_: np.float64(0))

DOT = (
    "gamma(min(K, 128) + ceil(K / 128) - 1) * sum |x w|, a rounding more where w is of blocks; "
    "of quantized x gamma(4 + ceil(K / 128)) * sum over blocks |x_b . w_b|, a rounding more of two "
    "words, in formats with an offset four more and |offset * sum x_b| as a block's further term"
)


def dot(x: Any, w: Any) -> Reals:
    """x [..., K], plain or quantized, with w [N, K] of any format -> f64[..., N], as DOT says."""
    weight = as_weight(w)
    if isinstance(x, Quantized):
        return _dot_of_blocks(x, weight)
    k = weight.shape[-1]
    count = frame_roundings(k) + weight.format.quantized
    return gamma(count) * (np.abs(real(x)) @ np.abs(real(weight)).T) + count * TINY


def _dot_of_blocks(x: Quantized, w: Weight) -> Reals:
    levels, d, m = decode(w.format, w.rows)
    rows = real(x).reshape(-1, d.shape[1], GROUP)
    weights = levels.reshape(*d.shape, GROUP) * d.astype(np.float64)[..., None]
    terms = np.abs(np.einsum("rbk,nbk->brn", rows, weights))
    steps = 1 + BLOCKS + (x.low is not None) - (-d.shape[1] // BLOCKS) - 1
    if m is not None:
        steps += BLOCKS
        terms = np.concatenate([terms, _offsets(rows, m)])
    lost = TINY * 2.0**31 * len(terms)  # by scales, times the greatest dot of a block
    return (gamma(steps) * terms.sum(axis=0) + lost).reshape(*x.shape[:-1], -1)


def _offsets(rows: Reals, m: Array) -> Reals:
    return np.abs(np.einsum("rb,nb->brn", rows.sum(axis=-1), m.astype(np.float64)))


def factor_roundings(sums: int, steps: float) -> float:
    """Of 1 / sqrt(s / n + eps), where what s is made of has `steps` roundings before the tree of
    `sums` values: division by n, eps and its sum; half of it under the root; root and quotient."""
    return (depth(sums) + steps + 2) / 2 + 2


def of_factor(squares: Reals, n: int, eps: float, roundings: float) -> Reals:
    """Relative: roundings, and what squares lose below the normal floats."""
    return gamma(roundings) + n * TINY / (squares + n * eps + TINY)
