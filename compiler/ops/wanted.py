"""wanted: the rows whose results the step wants."""

from __future__ import annotations

from compiler.ops import Op, define, sample
from compiler.ops.rules import Array, moved, need, same_rows, static
from compiler.types import ROWS, WANTED, Type
from compiler.values import Rows


def _infer(x: Type, rows: Type) -> Type:
    same_rows("wanted", x, rows)
    need(x.is_number, "wanted needs plain elements", x)
    first = WANTED if rows.shape[0] == ROWS else rows.shape[0]
    return static("wanted", x).with_shape(first, *x.shape[1:])


def _pick(x: Array, rows: Rows) -> Array:
    return x[rows.wanted]


ROWS_4 = "r: rows[4] = [[0, 0], [0, 1], [1, 0], [0, 2]]"

define(
    Op(
        "wanted",
        "x, rows",
        infer=_infer,
        meaning=_pick,
        exact=_pick,
        doc="x[T, ...]'s rows whose results the step wants, x[R, ...]; all in an op program",
        samples=(
            sample("x: f32[1, 1]; r: rows[1] = [[0, 3]]", "wanted(x)"),
            sample(f"x: f32[4, 37]; {ROWS_4}", "wanted(x)"),
            sample(f"x: f32[4, 2, 64]; {ROWS_4}", "wanted(x)"),
        ),
        flops=lambda _, __: 0,
        bytes=moved,
    )
)
