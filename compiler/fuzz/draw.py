"""Random sizes and values, biased to what goes wrong: beside powers of two, ties, specials."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.exact import round_bf16
from compiler.fuzz.special import SPECIAL
from compiler.types import BLOCKS, GROUP, Type, whole
from runtime.inputs import plain_dtype

Array = NDArray[Any]

WIDTHS = (1, 2, 3, 5, 7, 8, 16, 17, 31, 32, 33, 35, 64, 65, 96, 127, 128, 129, 160, 513)
GROUPED = (32, 64, 96, 160, 128, 288, 512, 544)  # multiples of a block's 32
LONG = (256, 512, 768)  # multiples of the 256 of K-quants
COUNTS = (1, 2, 3, 4, 5, 7, 8, 9, 17)  # rows, heads, experts
EXPONENTS = {"wide": (-40, 30), "huge": (110, 125), "tiny": (-149, -120)}  # of two, by style
HEADS = (1, 2, 3, 4, 6)
HEAD_DIMS = (1, 2, 8, 16, 17, 32, 33, 64, 96)

# How the numbers of a program's inputs are drawn, and of how many programs in twenty: "awkward" is
# one special number in twenty, "rows" a row of them, "repeats" rows that are equal. In all but the
# first two styles each input is drawn so with a chance of one half; "ties" are in all.
STYLES = {
    "normal": 9, "ties": 2, "repeats": 2, "wide": 2, "awkward": 2, "rows": 1, "huge": 1, "tiny": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Menu:
    """Sizes that a unit's programs take mostly. heads: kv heads, queries a kv head, dims."""

    grouped: tuple[int, ...] = GROUPED
    plain: tuple[int, ...] = WIDTHS
    formats: tuple[str, ...] = (*BLOCKS, "f32", "f16", "bf16")
    heads: tuple[tuple[int, int, int], ...] = ((2, 2, 32),)
    windows: tuple[int, ...] = (0,)
    experts: tuple[tuple[int, int], ...] = ((4, 2),)  # how many, how many are picked


EVERYTHING = Menu()


def menu(rng: Random) -> Menu:
    """A few sizes of each kind; now and then such that K-quants fit."""
    fits = BLOCKS if rng.random() < 0.3 else [f for f in BLOCKS if whole(f) == GROUP]
    grouped = LONG if fits is BLOCKS else GROUPED
    blocks = tuple(rng.sample(fits, 2))
    experts = rng.choice((1, 2, 3, 4, 5, 8, 33))
    return Menu(
        (rng.choice(grouped[:4]), rng.choice(grouped[:4]), rng.choice(grouped)),
        tuple(rng.sample(WIDTHS, 4)),
        (*blocks, *blocks, *blocks, rng.choice(("f32", "f16", "bf16")), "f32"),
        tuple(_heads(rng) for _ in range(2)),
        (0, rng.choice((0, 1, 5, 64, 65))),
        ((experts, rng.randint(1, min(experts, 8))),),
    )


def _heads(rng: Random) -> tuple[int, int, int]:
    dims = (16, 32, 32, 64, 64, 128, 96, 33, 7, 2, 1)
    return rng.choice((1, 2, 3)), rng.choice((1, 1, 2, 3, 4)), rng.choice(dims)


def width(rng: Random, block: int) -> int:
    """A last axis; `block`: a multiple of that, 1, 32 or 256."""
    if block > GROUP:
        return rng.choice(LONG)
    return rng.choice(GROUPED[:4] if rng.random() < 0.8 else GROUPED) if block > 1 else _plain(rng)


def _plain(rng: Random) -> int:
    return rng.choice(WIDTHS) if rng.random() < 0.8 else rng.randint(1, 140)


def style(rng: Random) -> str:
    """How the numbers of a program's inputs are drawn."""
    return rng.choices(list(STYLES), list(STYLES.values()))[0]


def values(type_: Type, shape: tuple[int, ...], how: str, rng: np.random.Generator) -> Array:
    """An input's plain array: f32 for formats and bf16; integers are small but for a few.

    Blocks hold numbers alone: what a quantizer makes of NaN is nobody's contract.
    """
    if type_.dtype in ("i32", "i64"):
        return _integers(shape, np.dtype(plain_dtype(type_)), how, rng)
    x = rng.standard_normal(shape).astype(np.float32)
    if type_.dtype in BLOCKS:
        return _weights(x, how, rng)
    x = _floats(x, how, rng)
    with np.errstate(over="ignore"):
        return (round_bf16(x) if type_.dtype == "bf16" else x).astype(plain_dtype(type_))


def _floats(x: Array, how: str, rng: np.random.Generator) -> Array:
    if how == "ties":
        return rng.choice(np.array([0.0, -0.0, 1.0, -1.0, 0.5], np.float32), x.shape)
    if how in EXPONENTS:
        return np.ldexp(x, rng.integers(*EXPONENTS[how], x.shape)).astype(np.float32)
    if how == "awkward":
        return np.where(rng.random(x.shape) < 0.05, rng.choice(SPECIAL, x.shape), x)
    if how == "rows" and x.ndim and x.size > 1:  # one row of specials, the others numbers
        x.reshape(-1, x.shape[-1])[rng.integers(x.size // x.shape[-1])] = rng.choice(
            SPECIAL, x.shape[-1]
        )
    return _repeated(x, rng) if how == "repeats" else x


def _repeated(x: Array, rng: np.random.Generator) -> Array:
    """Rows some of which are others again, so that scores and logits tie."""
    rows = x.reshape(-1, x.shape[-1]) if x.ndim else x.reshape(1, 1)
    return rows[rng.integers(0, len(rows), len(rows)) // 2].reshape(x.shape)


def _weights(x: Array, how: str, rng: np.random.Generator) -> Array:
    """Now and then blocks of zeros, of one number, of large ones."""
    blocks = x.reshape(-1, GROUP)
    if how in ("ties", "wide"):
        kinds = rng.integers(0, 5, len(blocks))
        blocks[kinds == 0] = 0.0
        blocks[kinds == 1] = blocks[kinds == 1, :1]
        blocks[kinds == 2] *= np.float32(1000.0)
        blocks[kinds == 3] *= np.float32(1e-6)
    return _repeated(x, rng) if how == "repeats" else x


def _integers(shape: tuple[int, ...], dtype: Any, how: str, rng: np.random.Generator) -> Array:
    info = np.iinfo(dtype)
    x = rng.integers(-5, 6, shape, dtype=dtype)
    if how in ("awkward", "wide"):
        extremes = np.array([info.min, info.max, info.max - 1, 1 << 24, 65536], dtype)
        x = np.where(rng.random(shape) < 0.2, rng.choice(extremes, shape), x)
    return x.astype(dtype)


def places(count: int, rng: Random, ordered: bool) -> Array:
    """int32[count, 2]: sequence and position of each row, no place twice.

    ordered: a sequence's rows come in order of position, as in steps of a model.
    """
    sequences = rng.choice((1, 1, 2, 3, 5))
    last = rng.choice((0, 0, 61, 63, 64, 130, 190))
    found: dict[tuple[int, int], None] = {}
    if rng.random() < 0.5:  # runs of positions, as prompts are
        at = [rng.randint(0, last) if s else last for s in range(sequences)]
        while len(found) < count:
            s = rng.randrange(sequences)
            found[s, at[s]] = None
            at[s] += 1
    while len(found) < count:
        found[rng.randrange(sequences), rng.randint(0, max(last, count))] = None
    pairs = list(found)
    if ordered:
        slots = [s for s, _ in pairs]
        queues = {s: iter(sorted(p for q, p in pairs if q == s)) for s in set(slots)}
        pairs = [(s, next(queues[s])) for s in slots]
    return np.array(pairs, np.int32).reshape(-1, 2)
