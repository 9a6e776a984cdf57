"""attention: grouped-query attention of the step's rows over their sequences' caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np

from compiler import exact
from compiler.exact.attention import PAGE
from compiler.ops import Error, Op, OpError, define, sample
from compiler.ops.errors import EXP, TANH, TINY, U, frame_roundings, gamma
from compiler.ops.rules import Array, Reals, count, need, positive, same_rows, width
from compiler.types import CACHES, Type
from compiler.values import Cache, Rows


def _infer(
    q: Type, k: Type, v: Type, window: int, scale: float, softcap: float, sinks: Type | None,
    rows: Type,
) -> Type:  # fmt: skip
    hd = width("attention", q)
    need(q.rank == 3, "attention needs q[T, H, HD]", q)
    same_rows("attention", q, rows)
    need(k == v and k.dtype in CACHES and k.rank == 2 and k.shape[1] == hd,
         "attention needs k and v caches [KV, HD] for q[T, H, HD]", q, k, v)  # fmt: skip
    need(int(q.shape[1]) % int(k.shape[0]) == 0,
         "attention needs KV to divide H for q[T, H, HD] and k[KV, HD]", q, k)  # fmt: skip
    if window < 0 or not scale >= 0.0:
        raise OpError(f"attention needs window and scale of 0 or more, got {window} and {scale}")
    positive("attention", "softcap", softcap, zero=True)
    need(sinks is None or sinks == Type("f32", q.shape[1:2]),
         f"attention needs sinks of f32[{q.shape[1]}]", sinks)  # fmt: skip
    return Type("f32", (q.shape[0], int(q.shape[1]) * hd))


def scale_of(scale: float, hd: int) -> float:
    """What scores are multiplied by: `scale`, or 1 / sqrt(HD) where it is 0; rounded to f32."""
    return float(np.float32(scale or 1.0 / sqrt(hd)))


def _span(rows: Rows, t: int, window: int) -> slice:
    """The positions that row t sees: its own and those before it, `window` at most if not 0."""
    end = int(rows.pos[t]) + 1
    return slice(max(0, end - window) if window else 0, end)


def _exact(
    q: Array, k: Cache, v: Cache, window: int, scale: float, softcap: float,
    sinks: Array | None, rows: Rows,
) -> Array:  # fmt: skip
    """compiler.exact.attention: pages of 64 positions, each summed in key order, then folded."""
    y = exact.attention(q, k, v, rows, scale_of(scale, q.shape[-1]), window, softcap, sinks)
    return y.reshape(len(q), -1)


def _meaning(
    q: Reals, k: Cache, v: Cache, window: int, scale: float, softcap: float,
    sinks: Reals | None, rows: Rows,
) -> Reals:  # fmt: skip
    """softmax(scale * q . k) v over the positions that a row sees."""

    def row(t: int, keys: Reals, values: Reals, first: int) -> Reals:
        del first
        return _row(q[t], keys, values, scale or 1.0 / sqrt(q.shape[-1]), softcap, sinks)

    return _by_row(row, k, v, window, rows)


def _by_row(
    row: Callable[[int, Reals, Reals, int], Reals], k: Cache, v: Cache, window: int, rows: Rows
) -> Reals:
    """row(t, keys, values, the first one's position) of each row, for what it sees: [T, H * HD]."""
    out: list[Reals] = []
    for t, seq in enumerate(rows.seq.tolist()):
        span = _span(rows, t, window)
        keys, values = (c.keys(seq)[span].astype(np.float64) for c in (k, v))
        out.append(row(t, keys, values, span.start))
    return np.stack(out).reshape(len(rows), -1)


def _row(
    q: Reals, keys: Reals, values: Reals, scale: float, softcap: float, sinks: Reals | None
) -> Reals:  # fmt: skip
    """q [H, HD], keys and values [J, KV, HD] -> [H, HD]; no keys: 0."""
    if not len(keys):
        return np.zeros_like(q)
    grouped = q.reshape(keys.shape[1], -1, q.shape[-1])
    score = np.einsum("gid,jgd->gij", grouped, keys) * scale
    if softcap:
        score = softcap * np.tanh(score / softcap)
    if sinks is not None:  # a score of its own, to which no value belongs
        score = np.concatenate([score, sinks.reshape(*score.shape[:2], 1)], axis=-1)
    weight = np.exp(score - score.max(axis=-1, keepdims=True))
    weight = (weight / weight.sum(axis=-1, keepdims=True))[..., : len(keys)]
    return np.einsum("gij,jgd->gid", weight, values).reshape(q.shape)


def _bound(
    q: Reals, k: Cache, v: Cache, window: int, scale: float, softcap: float,
    sinks: Reals | None, rows: Rows,
) -> Reals:  # fmt: skip
    def row(t: int, keys: Reals, values: Reals, first: int) -> Reals:
        pages = (first + len(keys) - 1) // PAGE - first // PAGE + 1 + (sinks is not None)
        factor = scale or 1.0 / sqrt(q.shape[-1])
        return _row_bound(q[t], keys, values, factor, softcap, sinks, pages)

    return _by_row(row, k, v, window, rows)


def _row_bound(
    q: Reals, keys: Reals, values: Reals, scale: float, softcap: float, sinks: Reals | None,
    pages: int,
) -> Reals:  # fmt: skip
    """A key's weight: what its score is off, what exps of differences down from the greatest score
    are, one a page, and a page's chain and the pages behind it."""
    grouped = q.reshape(keys.shape[1], -1, q.shape[-1])
    score = np.einsum("gid,jgd->gij", grouped, keys) * scale
    sizes = np.einsum("gid,jgd->gij", np.abs(grouped), np.abs(keys)) * scale
    off = sizes * gamma(frame_roundings(q.shape[-1]) + 2)
    if softcap:
        off, score = off + 2 * U * np.abs(score), softcap * np.tanh(score / softcap)
        off += (TANH + 2) * U * np.abs(score)
    if sinks is not None:
        sink = sinks.reshape(*score.shape[:2], 1)
        score = np.concatenate([score, sink], axis=-1)
        off = np.concatenate([off, np.zeros_like(sink)], axis=-1)
    away = np.minimum(score.max(axis=-1, keepdims=True) - score, 200.0)
    each = np.expm1(off + U * away + gamma(EXP * (pages + 1) + min(len(keys), PAGE) + pages))
    weight = np.exp(-away) / np.exp(-away).sum(axis=-1, keepdims=True)
    whole = np.sum(weight * each, axis=-1, keepdims=True)
    weight, each = weight[..., : len(keys)], each[..., : len(keys)]
    mixed = np.abs(np.einsum("gij,jgd->gid", weight, values))
    mine = np.einsum("gij,jgd->gid", weight * each, np.abs(values)) + mixed * (whole + U)
    lost = 8 * TINY * len(keys) * (np.abs(values).max(initial=0.0) + 1)
    return (np.where(whole < 1, mine / (1 - whole), np.inf) + lost).reshape(q.shape)


def _flops(ins: Sequence[Type], outs: Sequence[Type]) -> int:
    """Of one cached position: a dot and a weighted sum a head."""
    del outs
    return 4 * count(ins[0])


def _sample(
    n: int, h: int, kv: int, hd: int, rows: str = "", more: str = "", sinks: bool = False
) -> str:
    return sample(
        f"q: f32[{n}, {h}, {hd}]; k: f32[{n}, {kv}, {hd}]; v: f32[{n}, {kv}, {hd}]; "
        f"r: rows[{n}]{rows}" + (f"; s: f32[{h}]" if sinks else ""),
        f"cache c {{ k [{kv}, {hd}], v [{kv}, {hd}] }}",
        "c.k = append(c.k, k)",
        "c.v = append(c.v, v)",
        f"attention(q, c.k, c.v{more})",
    )


FOUR = " = [[0, 0], [0, 1], [1, 0], [0, 2]]"

define(
    Op(
        "attention",
        "q, k, v, window:int=0, scale:real=0.0, softcap:real=0.0, sinks?, rows",
        infer=_infer,
        meaning=_meaning,
        exact=_exact,
        doc="softmax(scale * q . k) v of q[T, H, HD] over the positions of its sequence up to its "
        "own in caches [KV, HD], the last `window` if not 0: f32[T, H * HD]; softcap: scores are "
        "softcap * tanh(score / softcap); sinks[H]: a score more for each head, without a value",
        truths=(
            "attention([[[1.0]]], cache([[[nan]]]), cache([[[-0.0]]]), rows=[[0, 0]]) = [[nan]]",
            "attention([[[1.0]]], cache([[[-inf]]]), cache([[[1.0]]]), rows=[[0, 0]]) = [[nan]]",
            "attention([[[1.0]]], cache([[[1.0]]]), cache([[[-0.0]]]), rows=[[0, 0]]) = [[-0.0]]",
            "attention([[[1.0]], [[1.0]]], cache([[[nan]], [[1.0]]]), cache([[[inf]], "
            "[[2.0]]]), window=1, rows=[[0, 0], [0, 1]]) = [[nan], [2.0]]",
            "attention([[[1.0]]], cache([[[1.0]]]), cache([[[3.0]]]), sinks=[-inf], rows=[[0, "
            "0]]) = [[3.0]]",
        ),
        error=Error(
            "sum_j y_j (t_j + t) |v_j|, y_j being the keys' weights, t_j what they are off and t "
            "the mean of that; t_j = scale * sum |q k_j| * gamma(min(HD, 128) + ceil(HD / 128) + 1)"
            " + u (greatest score - score_j) + gamma(66 + 3 pages); a softcap adds 7 u |score_j|",
            _bound,
        ),
        samples=(
            _sample(1, 1, 1, 1),
            _sample(4, 6, 3, 37, FOUR),
            _sample(4, 4, 2, 64, FOUR),
            _sample(4, 2, 2, 32, FOUR, ", window=2, scale=0.5"),
            _sample(70, 2, 1, 32),
            _sample(70, 2, 1, 20, more=", window=65"),
            _sample(4, 4, 2, 32, FOUR, ", softcap=0.5"),
            _sample(4, 6, 3, 33, FOUR, ", sinks=s", sinks=True),
            _sample(70, 2, 1, 32, more=", window=65, softcap=20.0, sinks=s", sinks=True),
        ),
        flops=_flops,
    )
)
