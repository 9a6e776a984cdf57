"""Comparing values bit by bit: a walk in program order, the first difference, how far off it is.

Bits are equal up to a NaN's payload; -0 and +0 differ. Distances are in ulps: how many floats lie
from one to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Mask = Callable[[Array, Array], NDArray[np.bool_]]
NAN = -1  # the distance where one of the two is NaN
ROUNDINGS = 1e-9  # of a value's largest element: more than float64 sums in another order lose


@dataclass(frozen=True)
class Difference:
    """Where two arrays of one name differ first (`index` in C order) and in how many elements."""

    name: str
    index: tuple[int, ...]
    expected: np.generic
    given: np.generic
    ulps: int  # NAN where one is NaN
    count: int
    size: int

    def __str__(self) -> str:
        at = f"[{', '.join(map(str, self.index))}]" if self.index else ""
        many = f"{self.count} of {self.size} values differ"
        both = f"{self.expected!s} expected, {self.given!s} given"
        return f"{self.name}{at}: {both}{self._apart()}; {many}"

    def _apart(self) -> str:
        """In words; of integers the numbers themselves say it."""
        if self.expected.dtype.kind != "f":
            return ""
        if self.ulps == NAN:
            return ", one is NaN"
        return f", {self.ulps} ulp{'s' if self.ulps != 1 else ''} apart"


@dataclass(frozen=True)
class Report:
    """A whole comparison: how many numbers, the first difference, the names of all that differ."""

    compared: int
    first: Difference | None
    names: tuple[str, ...]

    def __str__(self) -> str:
        if self.first is None:
            return f"compared {self.compared} values: 0 bits differ"
        more = f"; {len(self.names)} named values differ" if len(self.names) > 1 else ""
        return f"{self.first}{more}"


def walk(pairs: Iterable[tuple[str, Array, Array]], differ: Mask | None = None) -> Report:
    """Compares (name, expected, given) in order; ValueError where types or shapes differ."""
    compared, first, names = 0, None, list[str]()
    for name, expected, given in pairs:
        compared += expected.size
        found = difference(name, expected, given, differ)
        if found is not None:
            first = first or found
            names.append(name)
    return Report(compared, first, tuple(names))


def difference(
    name: str, expected: Array, given: Array, differ: Mask | None = None
) -> Difference | None:
    """The first element that `differ` finds (whose bits differ), None where there is none."""
    if expected.dtype != given.dtype or expected.shape != given.shape:
        kinds = [f"{a.dtype}{list(a.shape)}" for a in (expected, given)]
        raise ValueError(f"{name}: {kinds[0]} is needed, {kinds[1]} was given")
    wrong = (differ or different)(expected, given)
    if not wrong.any():
        return None
    flat = int(wrong.reshape(-1).argmax())
    index = tuple(int(i) for i in np.unravel_index(flat, wrong.shape))
    a, b = expected.reshape(-1)[flat], given.reshape(-1)[flat]
    return Difference(
        name, index, a, b, ulps(a, b), int(wrong.sum()), expected.size
    )  # fmt: skip


def different(expected: Array, given: Array) -> NDArray[np.bool_]:
    """Which elements' bits differ, NaN's payload aside."""
    if expected.dtype.kind != "f":
        return expected != given
    both_nan = np.isnan(expected) & np.isnan(given)
    return (_bits(expected) != _bits(given)) & ~both_nan


def far(expected: Array, given: Array) -> NDArray[np.bool_]:
    """Which elements are farther apart than the roundings of float64 explain."""
    if expected.dtype.kind != "f":
        return expected != given
    sizes = np.abs(expected[np.isfinite(expected)])
    with np.errstate(invalid="ignore"):
        near = np.abs(expected - given) <= ROUNDINGS * sizes.max(initial=0.0)
    same = (expected == given) | (np.isnan(expected) & np.isnan(given))
    return ~(near | same)


def ulps(a: np.generic, b: np.generic) -> int:
    """How many representable numbers from `a` to `b`; -0 and +0 are 1 apart; NAN with a NaN."""
    if np.isnan(a) or np.isnan(b):
        return NAN
    return abs(_place(a) - _place(b))


def _bits(a: Array) -> Array:
    return np.ascontiguousarray(a).view(f"i{a.dtype.itemsize}").reshape(a.shape)


def _place(a: np.generic) -> int:
    """Its place among the numbers of its type, in their order."""
    if np.asarray(a).dtype.kind != "f":
        return int(a)
    bits = int(_bits(np.asarray(a).reshape(1))[0])
    lowest = -(1 << (8 * a.dtype.itemsize - 1))
    return bits if bits >= 0 else lowest - bits - 1
