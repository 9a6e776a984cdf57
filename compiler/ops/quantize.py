"""quantize: activations as signed bytes with a scale for each 32; made by lower-numerics."""

from __future__ import annotations

import numpy as np

from compiler import exact
from compiler.ops import Error, Op, OpError, define, sample
from compiler.ops.errors import TINY
from compiler.ops.rules import Array, Reals, count, need, width
from compiler.types import GROUP, Type
from compiler.values import Quantized


def _infer(x: Type, words: int) -> Type:
    need(width("quantize", x) % GROUP == 0, f"quantize needs a multiple of {GROUP} as n", x)
    if words not in (1, 2):
        raise OpError(f"quantize needs words=1 or 2, got {words}")
    return x.with_dtype("q8" if words == 1 else "q8x2")


def _meaning(x: Reals, words: int) -> Reals:
    """The values themselves: what rounding adds is an error, not a meaning."""
    del words
    return x


def _exact(x: Array, words: int) -> Quantized:
    """compiler.exact.quantize and quantize2: words and scale for each 32."""
    return exact.quantize(x) if words == 1 else exact.quantize2(x)


def _bound(x: Reals, words: int) -> Reals:
    """Half a step of the last word; a low word needs a scale whose 128th is a normal number."""
    step = np.abs(x.reshape(*x.shape[:-1], -1, GROUP)).max(axis=-1, keepdims=True) / 127
    if words == 2:
        step = np.where(step / 128 > 2.0**-126, step / 128, step)
    off = np.broadcast_to(step * (0.5 + 2.0**-14) + 127 * TINY, (*step.shape[:-1], GROUP))
    return off.reshape(x.shape)


define(
    Op(
        "quantize",
        "x, words:int=1",
        infer=_infer,
        meaning=_meaning,
        exact=_exact,
        doc="x[..., n] as one signed byte a value (q8) or two (q8x2), a scale for each 32",
        truths=(
            "quantize([nan] + [1.0] * 31) = [nan] * 32",
            "quantize([inf] + [1.0] * 31) = [nan] * 32",
            "quantize([-0.0] * 32) = [0.0] * 32",
            "quantize([1e-45] * 32) = [0.0] * 32",
        ),
        error=Error(
            "half a step: max |x| / 254 of its 32 values, with two words max |x| / 32512", _bound
        ),
        samples=(
            sample("x: f32[1, 32]; w: q8_0[1, 32]", "linear(quantize(x), w)"),
            sample("x: f32[3, 96]; w: q4_1[37, 96]", "linear(quantize(x, words=2), w)"),
            sample("x: f32[4, 256]; w: q4_0[64, 256]", "linear(quantize(x), w)"),
            sample("x: f32[2, 64] = 0.0; w: q4_1[5, 64]", "linear(quantize(x, words=2), w)"),
        ),
        flops=lambda ins, _: 4 * count(ins[0]),
        traits=frozenset({"row", "internal"}),
    )
)
