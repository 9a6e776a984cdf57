"""Causal attention over cached keys and values, f32, in pages of 64 absolute positions.

For a row and a head, over the keys j in [max(0, pos - window + 1), pos], page by page:
  s_j = fl(dot(q, k_j) * scale), the dot in the frame of `compiler.exact.frame`; with a softcap
  s_j = fl(cap * tanh(fl(s_j / cap)));
  m = max s_j; e_j = exp(s_j - m); l = e_first, then l = fl(l + e_j) in key order;
  o = fl(e_first * v_first), then o = fma(e_j, v_j, o) in key order.
Pages are folded in order: M, L, O = m, l, o of the first; then n = max(M, m); a = exp(M - n);
b = exp(m - n); L = fma(L, a, fl(l * b)); O = fma(O, a, fl(o * b)); M = n. The result is O / L.
A head's sink is a page before the first, of one key whose score it is and whose value is 0:
M, L, O = sink, 1, 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compiler.exact.chain import TILE, Step, chain, fold, least
from compiler.exact.fma import Doubles, Floats, fma
from compiler.exact.frame import SEGMENT
from compiler.exact.functions import exp, tanh
from compiler.exact.sums import maximum, row_max
from compiler.values import Cache, Rows

PAGE = 64
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Pairs:
    """Every page that a row reads, rows and their pages in order: n pairs."""

    row: Indices  # the row
    page: Indices  # the page, among those of `_pages`
    nth: Indices  # 0 for the first page that the row reads
    start: Indices  # the first key of the page that takes part, 0..63
    end: Indices  # one past the last, 1..64

    def __getitem__(self, some: Indices) -> Pairs:
        parts = (self.row, self.page, self.nth, self.start, self.end)
        return Pairs(*(part[some] for part in parts))


@dataclass(frozen=True)
class Part:
    """What a page gives to each pair and head."""

    top: Floats  # m, f32[n, H]
    total: Floats  # l, f32[n, H]
    values: Floats  # o, f32[n, H, HD]


@dataclass(frozen=True)
class Scores:
    """What is done to dots: `* scale`, and, unless 0, the softcap."""

    scale: np.float32
    softcap: np.float32

    def of(self, dots: Floats) -> Floats:
        scores = dots * self.scale
        return self.softcap * tanh(scores / self.softcap) if self.softcap else scores


@np.errstate(all="ignore")
def attention(
    q: Floats,
    keys: Cache,
    values: Cache,
    rows: Rows,
    scale: float | None = None,
    window: int = 0,
    softcap: float = 0.0,
    sinks: Floats | None = None,
) -> Floats:
    """q f32[T, H, HD], caches of [KV, HD] that hold the rows' own keys -> f32[T, H, HD].

    Head h reads head h // (H / KV) of the cache. `scale` is rounded to f32; 1 / sqrt(HD) unless
    given. A window counts the row's own position; 0 is none. `softcap` is rounded to f32; 0 is
    none. sinks: f32[H]. A row without keys gives 0.
    """
    out = np.zeros_like(q, np.float32)
    pairs, places = _pairs(rows, window)
    if not pairs.row.size:
        return out
    factor = np.float32(q.shape[-1] ** -0.5 if scale is None else scale)
    form = Scores(factor, np.float32(softcap))
    parts = _parts(q, _pages(keys, places), _pages(values, places), pairs, form)
    return _fold(out, pairs, parts, sinks)


def _pairs(rows: Rows, window: int) -> tuple[Pairs, list[tuple[int, int]]]:
    """The pairs, and the (sequence, page of it) behind each page's number."""
    numbers: dict[tuple[int, int], int] = {}
    found: list[tuple[int, ...]] = []
    for t, (seq, pos) in enumerate(zip(rows.seq.tolist(), rows.pos.tolist(), strict=True)):
        first = max(0, pos - window + 1) if window else 0
        for nth, page in enumerate(range(first // PAGE, pos // PAGE + 1)):
            number = numbers.setdefault((seq, page), len(numbers))
            base = page * PAGE
            found.append((t, number, nth, max(first - base, 0), min(pos + 1 - base, PAGE)))
    columns = np.array(found, np.intp).reshape(-1, 5).T
    return Pairs(*columns), list(numbers)


def _pages(cache: Cache, places: list[tuple[int, int]]) -> Floats:
    """f32[P, 64, KV, HD]; 0 where nothing is written."""
    out = np.zeros((len(places), PAGE, *cache.entry), np.float32)
    for number, (seq, page) in enumerate(places):
        held = cache.keys(seq)[page * PAGE : (page + 1) * PAGE]
        out[number, : len(held)] = held
    return out


def _parts(q: Floats, keys: Floats, values: Floats, pairs: Pairs, form: Scores) -> Part:
    n, (heads, size) = len(pairs.row), q.shape[1:]
    out = Part(*(np.empty((n, heads, *more), np.float32) for more in ((), (), (size,))))
    turned = _turned(keys)
    doubles = values.astype(np.float64)
    grouped = q.reshape(len(q), keys.shape[2], -1, size)
    least_key, least_value = float(least(keys)), float(least(values))
    longest_first = np.argsort(-pairs.end, kind="stable")
    step = max(TILE // (heads * max(size, PAGE)), 1)
    for start in range(0, n, step):
        some = longest_first[start : start + step]
        mine = pairs[some]
        heads_q = grouped[mine.row]
        normal = bool(least(heads_q) * least_key >= 2.0**-100)
        top, total, weights = _weights(form.of(_scores(heads_q, turned, mine, normal)), mine)
        out.top[some], out.total[some] = top.reshape(-1, heads), total.reshape(-1, heads)
        normal = bool(least(weights) * least_value >= 2.0**-100)
        mixed = chain(heads_q.shape, _mix(weights, doubles, mine), normal)
        out.values[some] = mixed.reshape(-1, heads, size)
    return out


def _turned(keys: Floats) -> Doubles:
    """f32[P, 64, KV, HD] -> f64[min(HD, 128), S, P, KV, 64], as the frame reads them."""
    pages, _, heads, size = keys.shape
    depth, count = min(size, SEGMENT), -(-size // SEGMENT)
    out = np.zeros((count * depth, pages, heads, PAGE))
    out[:size] = keys.transpose(3, 0, 2, 1)
    return np.ascontiguousarray(out.reshape(count, depth, *out.shape[1:]).swapaxes(0, 1))


def _scores(q: Floats, keys: Doubles, pairs: Pairs, normal: bool) -> Floats:
    """q f32[n, KV, G, HD] with each pair's page -> f32[n, KV, G, 64]"""
    n, heads, group, size = q.shape
    depth, count = keys.shape[:2]
    padded = np.zeros((count * depth, n, heads, group, 1))
    padded[:size, ..., 0] = q.transpose(3, 0, 1, 2)
    inputs = padded.reshape(count, depth, n, heads, group, 1)

    def steps() -> Iterator[Step]:
        for d in range(depth):
            live = (size - d + SEGMENT - 1) // SEGMENT
            yield live, inputs[:live, d], keys[d, :live][:, pairs.page][:, :, :, None]

    return fold(chain((count, n, heads, group, PAGE), steps(), normal))


def _weights(scores: Floats, pairs: Pairs) -> tuple[Floats, Floats, Floats]:
    """m f32[n, KV, G], l likewise, and e f32[64, n, KV, G].

    e is -0.0, which adds nothing, for keys that take no part.
    """
    key = np.arange(PAGE)
    takes_part = (pairs.start[:, None] <= key) & (key < pairs.end[:, None])
    mask = takes_part[:, None, None]
    top = row_max(np.where(mask, scores, np.float32(-np.inf)))
    weights = np.where(mask, exp(scores - top[..., None]), np.float32(-0.0))
    by_key = np.ascontiguousarray(np.moveaxis(weights, -1, 0))
    return top, fold(by_key), by_key


def _mix(weights: Floats, values: Doubles, pairs: Pairs) -> Iterator[Step]:
    """The chain of e_j * v_j; pairs are sorted by `end`, the greatest first."""
    doubles = weights.astype(np.float64)
    late = bool(pairs.start.any())
    for j in range(int(pairs.end[0])):
        live = int(np.searchsorted(-pairs.end, -j, side="left"))
        v = values[pairs.page[:live], j]
        if late:
            v[pairs.start[:live] > j] = 0  # -0.0 * 0 adds nothing, whatever the value was
        yield live, doubles[j, :live, ..., None], v[:, :, None]


def _fold(out: Floats, pairs: Pairs, parts: Part, sinks: Floats | None) -> Floats:
    first = np.flatnonzero(pairs.nth == 0)
    rows = pairs.row[first]
    slot = np.empty(len(out), np.intp)
    slot[rows] = np.arange(len(rows))
    if sinks is None:
        top, total, values = parts.top[first], parts.total[first], parts.values[first]
    else:
        top = np.tile(sinks.astype(np.float32), (len(rows), 1))
        total, values = np.ones_like(top), np.zeros_like(parts.values[first])
    for nth in range(1 if sinks is None else 0, int(pairs.nth.max()) + 1):
        some = np.flatnonzero(pairs.nth == nth)
        at = slot[pairs.row[some]]
        high = maximum(top[at], parts.top[some])
        a, b = exp(top[at] - high), exp(parts.top[some] - high)
        total[at] = fma(total[at], a, parts.total[some] * b)
        values[at] = fma(values[at], a[..., None], parts.values[some] * b[..., None])
        top[at] = high
    out[rows] = values / total[..., None]
    return out
