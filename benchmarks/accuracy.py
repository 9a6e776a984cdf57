"""SmolLM2's logits over a 200-token text against those of transformers, in every numerics.

    python -m benchmarks.accuracy [--reference LOGITS.npy] [--numerics NAMES] [--target host|cuda]

What transformers gives is in tests/golden (five best logits, logsumexp and the next token's
log-probability of each position; four positions whole). LOGITS.npy, which
tests/golden/make_smollm2.py writes, holds all of it. Where it is not given, divergence is taken
from our own f32 logits, once they are near enough to transformers'. Exit code 1: a bound is missed.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler import api, pipeline
from runtime import fetch

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
FAR = 1e-3  # f32 logits may be as far from transformers' as this
MARGIN = 2e-3  # of a first choice over the second, from which on it must be the same
DIVERGENCE = {"f32": 1e-9, "int8x2": 1e-5, "int8": 0.01}  # nats a token, on average

Logits = NDArray[np.float32]


@dataclass(frozen=True)
class Golden:
    """What is kept of transformers' pass over the text; `whole` rows have all their logits."""

    ids: list[int]
    top_ids: NDArray[np.int64]
    top_logits: NDArray[np.float64]
    logprobs: NDArray[np.float64]
    whole: list[int]
    logits: Logits


@dataclass(frozen=True)
class Figures:
    """How far logits are from transformers'. Divergence: KL(reference, ours) in nats."""

    difference: float  # the greatest of any logit that is known
    agreeing: int  # first choices that are the same ..
    clear: int  # .. of those with a clear margin
    mean_divergence: float
    max_divergence: float
    perplexity: float
    expected_perplexity: float

    def missed(self, numerics: str) -> list[str]:
        """The bounds that do not hold, in words."""
        found: list[str] = []
        if numerics == "f32" and not self.difference <= FAR:
            found.append(f"a logit is {self.difference:.2e} off, {FAR} may be")
        if numerics == "f32" and self.agreeing != self.clear:
            found.append(f"{self.clear - self.agreeing} clear first choices differ")
        if not self.mean_divergence <= DIVERGENCE[numerics]:
            found.append(f"divergence is {self.mean_divergence:.2e}, {DIVERGENCE[numerics]} may be")
        return found


def golden() -> Golden:
    kept = json.loads((GOLDEN / "smollm2.json").read_text())["passage"]
    arrays = [np.array(kept[name]) for name in ("top_ids", "top_logits", "logprobs")]
    return Golden(kept["ids"], *arrays, kept["whole"], np.load(GOLDEN / "smollm2_logits.npy"))


def measure(given: Logits, expected: Golden, reference: Logits) -> Figures:
    """Figures of logits f32[rows, V]; reference: transformers' of all rows, or what is near it."""
    best = np.take_along_axis(given, expected.top_ids, 1)
    far = max(
        np.abs(best - expected.top_logits).max(),
        np.abs(given[expected.whole] - expected.logits).max(),
    )
    clear = expected.top_logits[:, 0] - expected.top_logits[:, 1] > MARGIN
    same = given.argmax(axis=1) == expected.top_ids[:, 0]
    ours, theirs = log_softmax(given), log_softmax(reference)
    divergence = (np.exp(theirs) * (theirs - ours)).sum(axis=1)
    scores = ours[np.arange(len(expected.ids) - 1), expected.ids[1:]]
    return Figures(
        float(far),
        int((same & clear).sum()),
        int(clear.sum()),
        float(divergence.mean()),
        float(divergence.max()),
        float(np.exp(-scores.mean())),
        float(np.exp(-expected.logprobs.mean())),
    )


def log_softmax(logits: Logits) -> NDArray[np.float64]:
    """f64[rows, V]."""
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=1, keepdims=True)
    return wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))


def logits(path: Path, ids: Sequence[int], numerics: str, target: str) -> Logits:
    """f32[rows, V] by a binary."""
    options = {"max_rows": 128, "max_seqs": 128}  # logits of 128 rows a step
    made = api.compile(pipeline.load(path), numerics=numerics, target=target, **options)
    return api.run(made, prompts=[ids], n=0, logits=True).logits[0]


def show(numerics: str, of: Figures) -> None:
    print(
        f"{numerics:6}  logits at most {of.difference:.1e} off; first choice {of.agreeing} of "
        f"{of.clear}; KL {of.mean_divergence:.1e} on average, {of.max_divergence:.1e} at most; "
        f"perplexity {of.perplexity:.5f}, transformers' {of.expected_perplexity:.5f}",
        flush=True,
    )


def main(args: argparse.Namespace) -> int:
    path, kept = fetch.fetch("smollm2"), golden()
    reference: Any = None if args.reference is None else np.load(args.reference)
    code = 0
    for numerics in args.numerics:
        given = logits(path, kept.ids, numerics, args.target)
        if reference is None:
            assert numerics == "f32", "without --reference f32 comes first"
            reference = given
        figures = measure(given, kept, reference)
        show(numerics, figures)
        for words in figures.missed(numerics):
            print(f"        MISSED: {words}")
            code = 1
    print(f"load average {os.getloadavg()[0]:.1f}")
    return code


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--reference", type=Path, metavar="LOGITS.npy")
    parser.add_argument("--numerics", nargs="+", choices=DIVERGENCE, default=list(DIVERGENCE))
    parser.add_argument("--target", choices=("host", "cuda", "auto"), default="host")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main(arguments()))
