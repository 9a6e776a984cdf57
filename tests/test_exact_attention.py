"""Attention against a loop over keys that spells its order, on ordinary and awkward values."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.exact import attention, exp, fma, frame_dot, maximum, tanh
from compiler.formats import F16, F32
from compiler.values import Cache, Rows
from tests.awkward import SPECIAL, differing

f32 = np.float32


def loop_page(s, v):
    """Scores f32[n] and values f32[n, HD] of the keys of one page that take part."""
    m = s[0]
    for value in s:
        m = maximum(m, value)[()]
    e = exp(s - m)
    total, o = e[0], e[0] * v[0]
    for j in range(1, len(s)):
        total = f32(total + e[j])
        o = fma(e[j], v[j], o)
    return m, total, o


def loop_attention(q, k, v, first, pos, scale, cap=0.0, sink=None):
    """One row and head: q f32[HD], k and v f32[positions, HD]."""
    if first > pos:
        return np.zeros_like(q)
    top = None
    if sink is not None:
        top, whole, mixed = sink, f32(1), np.zeros_like(q)
    for page in range(first // 64, pos // 64 + 1):
        some = slice(max(first, page * 64), min(pos + 1, page * 64 + 64))
        s = frame_dot(q[None], k[some])[0] * f32(scale)
        s = f32(cap) * tanh(s / f32(cap)) if cap else s
        m, total, o = loop_page(s, v[some])
        if top is None:
            top, whole, mixed = m, total, o
            continue
        n = maximum(top, m)[()]
        a, b = exp(top - n)[()], exp(m - n)[()]
        whole = fma(whole, a, f32(total * b))
        mixed = fma(mixed, a, o * b)
        top = n
    return mixed / whole


def filled(entry, lengths, draw, fmt=F32):
    cache = Cache(entry, fmt)
    for seq, length in enumerate(lengths):
        rows = Rows(
            np.full(length, seq, np.int32), np.arange(length, dtype=np.int32), np.zeros(0, np.int32)
        )
        cache.write(rows, draw((length, *entry)).astype(np.float16 if fmt is F16 else f32))
    return cache


def rows_at(*places):
    seq, pos = np.array(places, np.int32).T
    return Rows(seq, pos, np.arange(len(seq), dtype=np.int32))


def drawer(kind):
    rng = np.random.default_rng(3)
    if kind == "special":
        return lambda shape: rng.choice(SPECIAL, shape)
    if kind == "zeros":
        return lambda shape: rng.choice(np.array([0, -0.0], f32), shape)
    return lambda shape: rng.standard_normal(shape).astype(f32)


PLACES = [(0, 0), (1, 63), (0, 64), (0, 149), (1, 64), (2, 20), (1, 5), (0, 128)]


@pytest.mark.parametrize("kind", ("normal", "zeros", "special"))
@pytest.mark.parametrize(
    "window, size", ((0, 8), (1, 8), (7, 8), (64, 8), (100, 8), (0, 144), (100, 144))
)
def test_attention_is_the_loop(kind, window, size):
    draw = drawer(kind)
    fmt = F16 if kind == "normal" and size == 8 else F32
    keys, values = (filled((2, size), (150, 65, 21), draw, fmt) for _ in "kv")
    rows, q = rows_at(*PLACES), draw((len(PLACES), 4, size))
    got = attention(q, keys, values, rows, 0.3, window)
    with np.errstate(all="ignore"):
        for t, (seq, pos) in enumerate(PLACES):
            first = max(0, pos - window + 1) if window else 0
            for h in range(4):
                k, v = (c.keys(seq)[:, h // 2].astype(f32) for c in (keys, values))
                want = loop_attention(q[t, h], k, v, first, pos, 0.3)
                assert differing(got[t, h], want) == 0, (t, h)


@pytest.mark.parametrize("kind", ("normal", "zeros", "special"))
@pytest.mark.parametrize("cap, sinks, window", ((0.7, False, 0), (0.0, True, 7), (5.0, True, 100)))
def test_softcap_and_sinks_are_the_loop(kind, cap, sinks, window):
    draw = drawer(kind)
    keys, values = (filled((2, 8), (150, 65, 21), draw) for _ in "kv")
    rows, q = rows_at(*PLACES), draw((len(PLACES), 4, 8))
    sink = draw((4,)).astype(f32) if sinks else None
    got = attention(q, keys, values, rows, 0.3, window, cap, sink)
    with np.errstate(all="ignore"):
        for t, (seq, pos) in enumerate(PLACES):
            first = max(0, pos - window + 1) if window else 0
            for h in range(4):
                k, v = (c.keys(seq)[:, h // 2].astype(f32) for c in (keys, values))
                one = sink[h] if sinks else None
                want = loop_attention(q[t, h], k, v, first, pos, 0.3, cap, one)
                assert differing(got[t, h], want) == 0, (t, h)


def test_a_row_s_bits_depend_on_no_other_row():
    draw = drawer("normal")
    keys, values = (filled((3, 64), (300, 90), draw) for _ in "kv")
    places = [(0, p) for p in range(100, 300)] + [(1, 89)]
    q = draw((len(places), 9, 64))
    whole = attention(q, keys, values, rows_at(*places))
    for t in (0, 27, 28, 199, 200):
        assert (
            differing(whole[t : t + 1], attention(q[t : t + 1], keys, values, rows_at(places[t])))
            == 0
        )


def test_a_row_without_keys_gives_0():
    keys = values = filled((1, 4), (3,), drawer("normal"))
    assert not attention(np.ones((1, 1, 4), f32), keys, values, rows_at((0, -1))).any()
