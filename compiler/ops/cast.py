"""cast: a value in another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler import exact
from compiler.ops import Op, OpError, define, sample
from compiler.ops.rules import need, static
from compiler.types import ELEMENT_BYTES, INTEGERS, Type

NUMPY = {"i32": np.int32, "i64": np.int64}


def _infer(x: Type, dtype: str) -> Type:
    if dtype not in ELEMENT_BYTES:
        raise OpError(f"cast needs one of {', '.join(ELEMENT_BYTES)}, got {dtype}")
    need(x.is_number, f"cast needs x of {', '.join(ELEMENT_BYTES)}", x)
    return static("cast", x).with_dtype(dtype)


def _meaning(x: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Rounding to a shorter real is no part of the meaning; toward zero to an integer is."""
    if dtype not in INTEGERS:
        return x.astype(np.float64)
    if x.dtype.kind != "f":
        return x.astype(NUMPY[dtype])
    limit = np.iinfo(NUMPY[dtype])
    whole = [0 if v != v else int(min(max(v, limit.min), limit.max)) for v in x.reshape(-1)]
    return np.array(whole, NUMPY[dtype]).reshape(x.shape)


def _exact(x: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Integers wrap; reals are rounded half to even; to an integer they go toward zero.

    An integer becomes f16 or bf16 by way of f32.
    NaN becomes 0, and what no integer holds the last one on its side, as CUDA's conversions do.
    """
    if dtype in INTEGERS and x.dtype.kind == "f":
        return _to_integer(x, NUMPY[dtype])
    if dtype in INTEGERS:
        return x.astype(NUMPY[dtype])
    if dtype == "bf16":
        return exact.round_bf16(x.astype(np.float32))
    return exact.to_f16(x) if dtype == "f16" else x.astype(np.float32)


def _to_integer(x: NDArray[Any], kind: type[np.signedinteger[Any]]) -> NDArray[Any]:
    limit, wide = np.iinfo(kind), x.astype(np.float64)
    above, below = wide >= -float(limit.min), wide < float(limit.min)
    inside = np.where(above | below | np.isnan(wide), 0.0, wide).astype(kind)
    return np.where(above, limit.max, np.where(below, limit.min, inside)).astype(kind)


define(
    Op(
        "cast",
        "x, dtype:dtype",
        infer=_infer,
        meaning=_meaning,
        exact=_exact,
        doc="x in another dtype: reals half to even, reals to integers toward zero, integers wrap",
        truths=(
            "cast([65519.0, 65520.0, inf, nan, -0.0, -1e-9], dtype=f16) = "
            "[65504.0, inf, inf, nan, -0.0, -0.0]",
            "cast([3.4e38, inf, nan, -0.0], dtype=bf16) = [inf, inf, nan, -0.0]",
            "cast([3e9, inf, -inf, nan, -0.0, -2.9], dtype=i32) = "
            "[2147483647, 2147483647, -2147483648, 0, 0, -2]",
        ),
        samples=(
            sample("x: f32[1, 1] = 0.1", "cast(x, f16)"),
            sample("x: f32[3, 37]", "cast(cast(x, bf16), f32)"),
            sample("x: f32[4, 64]", "cast(x, i32)"),
            sample("x: f32[5] = [1e9, -3.7, 2.5, 3e9, -1e19]", "cast(x, i64)"),
            sample("x: i64[3] = [4294967297, -3, 5]", "cast(x, i32)"),
            sample("x: i32[2, 9]", "cast(x, f32)"),
            sample("x: i32[5] = [2049, -4097, 7, 65504, -3]", "cast(x, f16)"),
            sample("x: i64[4] = [257, -100001, 3, 4294967297]", "cast(x, bf16)"),
        ),
        flops=lambda _, __: 0,
        traits=frozenset({"row"}),
    )
)
