"""Rolls the flat launch list into loops: maximal repeats of launches that are equal up to the
layer.

A launch of iteration i equals that of iteration i - 1 when kernel, template arguments and shape are
the same and each argument is: the value of the launch the same distance back; or the same earlier
value; or, in iteration 0 alone, a value from before the loop where later iterations read their
predecessor's (a carried value: both get one slot); or the next member of the same family of weights
or caches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ref:
    """What an argument refers to, as rolling sees it: a producer launch's result, or a member of a
    family."""

    kind: str  # "value" (launch, result), "member" (family, index), "same" (anything fixed)
    a: int = 0
    b: int = 0
    writes: bool = False
    in_place: bool = False


@dataclass(frozen=True)
class Item:
    """A launch as rolling sees it: `key` identifies kernel, template arguments and shape."""

    key: int
    refs: tuple[Ref, ...]


@dataclass(frozen=True)
class Loop:
    """Launches start .. start + period * count are `count` iterations of `period` launches."""

    start: int
    period: int
    count: int

    @property
    def end(self) -> int:
        return self.start + self.period * self.count

    def __contains__(self, launch: int) -> bool:
        return self.start <= launch < self.end

    def first(self, launch: int) -> int:
        """The same launch of iteration 0."""
        return self.start + (launch - self.start) % self.period

    def iteration(self, launch: int) -> int:
        return (launch - self.start) // self.period


MAX_PERIOD = 64


Made = tuple[int, int]  # a value: the launch that makes it, and which of its results it is


def loops(items: Sequence[Item], kept: Sequence[Made] = ()) -> tuple[Loop, ...]:
    """The loops of a launch list, in order; `kept` values (results) are read behind the last
    launch.

    A loop that would overwrite a value still to be read is not made.
    """
    end = Item(-1, tuple(Ref("value", launch, result) for launch, result in kept))
    whole = (*items, end)
    last: dict[Made, int] = {}
    for launch, item in enumerate(whole):
        last |= {(r.a, r.b): launch for r in item.refs if r.kind == "value" and not r.writes}
    return _loops(whole, 0, len(items), last)


def _loops(
    items: Sequence[Item], low: int, high: int, last: Mapping[Made, int]
) -> tuple[Loop, ...]:
    best = _best(items, low, high, last)
    if best is None:
        return ()
    before, after = _loops(items, low, best.start, last), _loops(items, best.end, high, last)
    return (*before, best, *after)


def _best(items: Sequence[Item], low: int, high: int, last: Mapping[Made, int]) -> Loop | None:
    best, saved = None, 0
    for start in range(low, high):
        if high - start <= saved:
            break
        for period in range(1, min(MAX_PERIOD, (high - start) // 2) + 1):
            if items[start].key != items[start + period].key:
                continue
            loop = Loop(start, period, _iterations(items, start, period, high))
            if period * (loop.count - 1) <= saved:
                continue
            loop = _shortened(items, loop, last)
            gain = period * (loop.count - 1)
            if gain > saved and not hazards(items, loop):
                best, saved = loop, gain
    return best


def _shortened(items: Sequence[Item], loop: Loop, last: Mapping[Made, int]) -> Loop:
    """The loop as far as an iteration whose values are read behind the next one, which writes over
    them."""
    for iteration in range(loop.count - 1):
        first = loop.start + iteration * loop.period
        for launch in range(first, first + loop.period):
            made = ((r.a, r.b) for r in items[launch].refs if r.kind == "value" and r.writes)
            if any(last.get(m, 0) >= first + 2 * loop.period for m in made):
                return Loop(loop.start, loop.period, iteration + 1)
    return loop


def _iterations(items: Sequence[Item], start: int, period: int, high: int) -> int:
    launch = start + period
    while launch < high and _same(items, launch, period, start):
        launch += 1
    return (launch - start) // period


def _same(items: Sequence[Item], launch: int, period: int, start: int) -> bool:
    now, before = items[launch], items[launch - period]
    if now.key != before.key or len(now.refs) != len(before.refs):
        return False
    pairs = zip(now.refs, before.refs, strict=True)
    return all(_same_ref(n, b, launch, period, start) for n, b in pairs)


def _same_ref(now: Ref, before: Ref, launch: int, period: int, start: int) -> bool:
    if now.kind != before.kind or now.writes != before.writes:
        return False
    if now.kind == "member":
        return now.a == before.a and now.b - before.b in (0, 1)
    if now.kind == "same" or now == before:
        return now == before
    if now.a - before.a == period and before.a >= start:
        return now.b == before.b
    entering = launch - period < start + period and before.a < start
    return entering and start <= now.a < start + period


def carried(items: Sequence[Item], loop: Loop) -> dict[tuple[int, int], tuple[int, int]]:
    """(producer before the loop, result) -> (producer in iteration 0, result) for values that
    iterations hand on."""
    pairs: dict[tuple[int, int], tuple[int, int]] = {}
    for launch in range(loop.start, loop.start + loop.period):
        following = items[launch + loop.period]
        for first, later in zip(items[launch].refs, following.refs, strict=True):
            if first.kind == "value" and first.a < loop.start and later.a != first.a:
                pairs[first.a, first.b] = (loop.first(later.a), later.b)
    return pairs


def hazards(items: Sequence[Item], loop: Loop) -> bool:
    """Whether a carried value's one slot would be written before its last reader of an iteration
    has read it."""
    handed = set(carried(items, loop).values())
    body = range(loop.start + loop.period, loop.start + 2 * loop.period)
    for launch in body:
        for ref in items[launch].refs:
            if ref.kind != "value" or ref.writes:
                continue
            if not loop.start <= ref.a < loop.start + loop.period:
                continue  # of this iteration, or from before the loop and the same in all
            maker = (ref.a, ref.b)
            if maker not in handed:
                return True  # reaches back an iteration without an entry value
            written = maker[0] + loop.period
            if launch > written or (launch == written and not ref.in_place):
                return True
    entries = list(carried(items, loop))
    readers = (r for item in items[loop.start + loop.period :] for r in item.refs)
    late = {(r.a, r.b) for r in readers if r.kind == "value" and not r.writes}
    return any(entry in late for entry in entries) or len(handed) != len(entries)
