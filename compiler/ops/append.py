"""append: a cache with the step's rows written at their positions."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ops import Op, define, sample
from compiler.ops.rules import Array, need, same_rows, static
from compiler.types import CACHES, Type, nbytes
from compiler.values import Cache, Rows


def _infer(cache: Type, x: Type, rows: Type) -> Type:
    need(cache.dtype in CACHES, "append needs a cache", cache)
    same_rows("append", x, rows)
    need(static("append", x).shape[1:] == cache.shape and x.dtype == cache.dtype[len("cache_") :],
         "append needs x[T, KV, HD] of the dtype of cache[KV, HD]", cache, x)  # fmt: skip
    return cache


def _write(cache: Cache, x: Array, rows: Rows) -> Cache:
    """In place: the version that it was is consumed. Two rows of one position: the later one."""
    cache.write(rows, x)
    return cache


def _bytes(ins: Sequence[Type], outs: Sequence[Type]) -> int:
    del outs
    return 2 * nbytes(ins[1]) + nbytes(ins[2])


ROWS = "r: rows[4] = [[0, 0], [0, 1], [1, 0], [0, 2]]"


def _sample(rows: str, kv: int, hd: int) -> str:
    n = rows[rows.index("[") + 1]
    return sample(
        f"x: f32[{n}, {kv}, {hd}]; {rows}",
        f"cache c {{ k [{kv}, {hd}] }}",
        "c.k = append(c.k, x)",
        "attention(x, c.k, c.k)",
    )


define(
    Op(
        "append",
        "cache, x, rows",
        infer=_infer,
        meaning=_write,
        exact=_write,
        doc="the cache with x[T, KV, HD] written at each row's position of its sequence",
        samples=(
            _sample("r: rows[1] = [[0, 0]]", 1, 1),
            _sample(ROWS, 3, 37),
            _sample(ROWS, 2, 64),
        ),
        flops=lambda _, __: 0,
        bytes=_bytes,
        traits=frozenset({"effect"}),
    )
)
