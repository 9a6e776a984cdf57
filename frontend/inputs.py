"""An input's literal values, checked against its type."""

from __future__ import annotations

from compiler.program import Literal
from compiler.types import INTEGERS, Type
from frontend import tree
from frontend.bind import literal
from frontend.things import Fault


def values_of(array: tree.Array, type_: Type) -> Literal:
    """An array as nested tuples of the type's shape; rows are pairs [sequence, position]."""
    shape = tuple(int(d) for d in type_.shape)
    if type_.dtype != "rows":
        return _nested(array, shape, type_)
    rows = _nested(array, (*shape, 2), type_)
    assert isinstance(rows, tuple)
    if len(set(rows)) < len(rows):
        raise Fault("each row needs a place of its own, one position of a sequence is given twice")
    return rows


def _nested(item: tree.Array | tree.Literal, shape: tuple[int, ...], type_: Type) -> Literal:
    if not shape:
        if isinstance(item, tree.Array):
            raise Fault(f"{type_} needs a number here, got an array", item.span)
        return scalar(item.value, type_, item)
    if not isinstance(item, tree.Array):
        raise Fault(f"{type_} needs an array of {shape[0]} here, got a number", item.span)
    if len(item.items) != shape[0]:
        given = f"got {len(item.items)}"
        raise Fault(f"{type_} needs {shape[0]} entries here, {given}", item.span)
    return tuple(_nested(entry, shape[1:], type_) for entry in item.items)


def scalar(value: int | float, type_: Type, at: tree.Literal | tree.Expr) -> int | float:
    """A number that the dtype holds; integers of rows are 0 or more and below 2^31."""
    if type_.dtype == "rows":
        if not isinstance(value, int) or not 0 <= value < 2**31:
            raise Fault(f"a sequence and a position of 0 or more are needed, got {value}", at.span)
        return value
    made = literal(value, type_.dtype if type_.dtype in INTEGERS else "f32", at.span)
    kept = made.node.attr("value")
    assert isinstance(kept, int | float)
    return kept
