"""Programs that meet special values: each elementwise op with every pair of 64 or with every edge,
each op of rows with rows that hold the pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from compiler.diagnostics import UserError
from compiler.fuzz import spell
from compiler.fuzz.draw import Array
from compiler.fuzz.generate import Case
from compiler.fuzz.special import EDGES, SPECIAL, Floats, edges_of
from compiler.ops import Op, load, sample


def special_cases() -> list[Case]:
    """Each called after its op; `.special` tells it from the op's samples."""
    found: list[Case] = []
    for name, op in sorted(load().items()):
        made = _elementwise(op) if op.expression else _of_rows(op)
        found += [replace(case, name=f"{name}.special-{at}") for at, case in enumerate(made)]
    return found


def _elementwise(op: Op) -> Iterator[Case]:
    """One value: each edge. Two: a column and a row, so that every pair meets."""
    for dtype in ("f32", "i32", "i64"):
        if (dtype if dtype == "f32" else "int") not in (op.expression or {}):
            continue
        two = len(op.params) == 2
        floats = SPECIAL if two else EDGES
        values = floats if dtype == "f32" else edges_of(dtype)
        n = len(values)
        if two:
            text = sample(f"a: {dtype}[{n}, 1]; b: {dtype}[{n}]", f"{op.name}(a, b)")
            yield _case(text, {"a": values[:, None], "b": values})
        else:
            yield _case(sample(f"x: {dtype}[{n}]", f"{op.name}(x)"), {"x": values})


def _case(text: str, inputs: dict[str, Array]) -> Case:
    case = spell.case_of_text(text, "special")
    return replace(case, inputs={**case.inputs, **inputs})


WIDEST = 64  # longer rows add nothing here
FIRST = re.compile(r"input (\w+): f32\[(\d+)((?:, \d+)*)\].*")


def _of_rows(op: Op) -> Iterator[Case]:
    """An op's samples with as many rows as there are pairs, where it works on each row alone."""
    if "row" not in op.traits:
        return
    for text in op.samples:
        first, rest = text.split("\n", 1)
        given = FIRST.fullmatch(first)
        if given is None:
            continue
        name, inner = given[1], [int(d) for d in given[3].split(", ") if d]
        if prod(inner) > WIDEST:
            continue
        values = rows_of(prod(inner)).reshape(-1, *inner)
        shape = ", ".join(map(str, values.shape))
        try:
            yield _case(f"input {name}: f32[{shape}]\n{rest}", {name: values})
        except UserError:
            continue  # another operand has as many rows


def rows_of(width: int) -> Floats:
    """f32[n, width]: rows of numbers that hold each pair of special values somewhere, and rows of
    one special value; of width 1 every edge."""
    if width == 1:
        return EDGES[:, None]
    rng = np.random.default_rng(width)
    first, second = np.triu_indices(len(SPECIAL))
    at = rng.permuted(np.tile(np.arange(width), (len(first), 1)), axis=1)[:, :2]
    x = rng.standard_normal((len(first), width)).astype(np.float32)
    each = np.arange(len(first))
    x[each, at[:, 0]], x[each, at[:, 1]] = SPECIAL[first], SPECIAL[second]
    return np.concatenate([x, np.repeat(SPECIAL[:, None], width, axis=1)])
