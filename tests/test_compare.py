"""Comparing values: bits, distances, the first difference of a walk."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from runtime.compare import NAN, difference, ulps, walk


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def from_bits(bits: int) -> np.float32:
    return np.frombuffer(struct.pack("<I", bits), np.float32)[0]


@pytest.mark.parametrize(
    ("a", "b", "far"),
    [
        (np.float32(1), np.float32(1), 0),
        (np.float32(1), np.nextafter(np.float32(1), np.float32(2)), 1),
        (np.float32(0.0), np.float32(-0.0), 1),
        (from_bits(1), from_bits(0x8000_0001), 3),
        (np.float32(1), np.float32(2), 1 << 23),
        (np.float32(3.4028235e38), np.float32(np.inf), 1),
        (np.float32(-np.inf), np.float32(np.inf), 2 * 0x7F80_0000 + 1),
        (np.float16(1), np.float16(2), 1 << 10),
        (np.float32(1), np.float32(np.nan), NAN),
        (np.int32(-5), np.int32(7), 12),
        (np.int64(-(2**62)), np.int64(2**62), 2**63),
    ],
)
def test_ulps(a: np.generic, b: np.generic, far: int) -> None:
    assert ulps(a, b) == ulps(b, a) == far


def test_bits_and_not_numbers_are_compared() -> None:
    assert difference("x", f32(0.0, 1.0), f32(0.0, 1.0)) is None
    found = difference("x", f32(1.0, 0.0), f32(1.0, -0.0))
    assert found is not None and (found.index, found.ulps, found.count) == ((1,), 1, 1)


def test_payloads_of_nan_do_not_count() -> None:
    a = np.array([0x7FC0_0000, 0xFFC0_1234], np.uint32).view(np.float32)
    assert difference("x", a, a[::-1].copy()) is None
    found = difference("x", a, f32(np.nan, 1.0))
    assert found is not None and found.index == (1,) and "one is NaN" in str(found)


def test_the_first_difference_of_several() -> None:
    expected = np.zeros((3, 4), np.int32)
    given = expected.copy()
    given[1, 2], given[2, 0] = 7, 9
    found = difference("x", expected, given)
    assert found is not None
    assert str(found) == "x[1, 2]: 0 expected, 7 given; 2 of 12 values differ"


@pytest.mark.parametrize(
    ("a", "b", "apart"),
    [(1.0, 1.0000001, ", 1 ulp apart; "), (1.0, 1.0000002, ", 2 ulps apart; "),
     (0.0, -0.0, ", 1 ulp apart; "), (np.nan, 0.0, ", one is NaN; ")],
)  # fmt: skip
def test_a_distance_in_words(a: float, b: float, apart: str) -> None:
    assert apart in str(difference("x", f32(a), f32(b)))


def test_a_scalar_has_no_index() -> None:
    found = difference("x", np.array(1.5, np.float32), np.array(0.1, np.float32))
    assert found is not None and str(found).startswith("x: 1.5 expected, 0.1 given, ")


def test_a_walk_reports_in_order_and_counts_everything() -> None:
    same, other = f32(1, 2, 3), f32(1, 2, 4)
    report = walk([("a", same, same), ("b", same, other), ("c", other, same)])
    assert report.compared == 9 and report.names == ("b", "c")
    assert report.first is not None and report.first.name == "b"
    assert str(report).endswith("1 of 3 values differ; 2 named values differ")
    equal = walk([("a", same, same), ("b", other, other)])
    assert str(equal) == "compared 6 values: 0 bits differ"


@pytest.mark.parametrize("given", [np.zeros(3, np.float16), np.zeros((3, 1), np.float32)])
def test_other_types_and_shapes_are_no_comparison(given: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"x: float32\[3\] is needed"):
        difference("x", f32(0, 0, 0), given)
