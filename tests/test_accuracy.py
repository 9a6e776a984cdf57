"""SmolLM2 by our arithmetic against transformers: logits, first choices, divergence, perplexity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.accuracy import DIVERGENCE, Golden, Logits, golden, measure
from compiler import api
from tests.model_runs import compiled, smollm2

CLOSE = {"f32": 1e-5, "int8x2": 1e-3, "int8": 0.02}  # perplexities, relatively


@pytest.mark.model
def test_bounds_hold_in_every_numerics() -> None:
    """f32 against transformers itself; the others' divergence against f32's 200 whole rows."""
    path, expected = smollm2(), golden()
    reference: Logits | None = None
    for numerics in DIVERGENCE:
        made = compiled(path, numerics)
        given = api.run(made, prompts=[expected.ids], n=0, logits=True).logits[0]
        reference = given if reference is None else reference
        figures = measure(given, expected, reference)
        assert figures.missed(numerics) == [], numerics
        assert figures.clear > 190  # so that first choices say something
        near = pytest.approx(figures.expected_perplexity, rel=CLOSE[numerics])
        assert figures.perplexity == near, numerics


def test_golden_rows_agree_with_each_other() -> None:
    """The positions stored whole have the best logits that are stored of every position."""
    expected = golden()
    best = np.take_along_axis(expected.logits, expected.top_ids[expected.whole], 1)
    np.testing.assert_allclose(best, expected.top_logits[expected.whole], atol=1e-6)
    assert (expected.logits.argmax(axis=1) == expected.top_ids[expected.whole][:, 0]).all()


def made_up() -> tuple[Logits, Golden]:
    """Ten rows of logits over 40 tokens, and what would be kept of them."""
    random = np.random.default_rng(0)
    rows = random.normal(0, 3, (10, 40)).astype(np.float32)
    best = np.argsort(-rows, axis=1)[:, :5]
    kept = np.take_along_axis(rows, best, 1).astype(np.float64)
    ids = random.integers(40, size=10).tolist()
    return rows, Golden(ids, best, kept, np.zeros(9), [2, 5], rows[[2, 5]])


def test_measure_sees_what_is_wrong() -> None:
    """A logit off, another first choice, a neighbour's logits: each is said, right ones are not."""
    rows, expected = made_up()
    assert measure(rows, expected, rows).missed("f32") == []
    off = rows.copy()
    off[5, np.argmin(rows[5])] += 0.0011
    (words,) = measure(off, expected, rows).missed("f32")
    assert words == "a logit is 1.10e-03 off, 0.001 may be"
    turned = replace(expected, top_ids=expected.top_ids[:, [1, 0, 2, 3, 4]])
    assert any("clear first choices" in w for w in measure(rows, turned, rows).missed("f32"))
    (words,) = measure(np.roll(rows, 1, axis=0), expected, rows).missed("int8")
    assert words.startswith("divergence is")
    (words,) = measure(np.full_like(rows, np.nan), expected, rows).missed("int8")
    assert words.startswith("divergence is nan")
