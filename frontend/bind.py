"""A call's arguments bound to an op's signature: operands in the record's order, and attributes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import isfinite

from compiler.diagnostics import Span
from compiler.graph import Attr, Value, const
from compiler.ops import OPS, Param
from compiler.types import ELEMENT_BYTES, INTEGERS
from frontend.things import Absent, Axis, Dtype, Fault, Poison, Thing, describe, nearest

# What rounds to infinity begins half a step above the largest number.
TOO_LARGE = {"f32": 2.0**128 - 2.0**103, "f16": 65520.0, "bf16": 2.0**128 - 2.0**119}


@dataclass(frozen=True, slots=True)
class Given:
    """One argument as evaluated; `name` where it was given by keyword."""

    name: str | None
    thing: Thing
    span: Span


@dataclass(frozen=True, slots=True)
class Bound:
    """`operands`: (parameter, value); a rows operand that was left out is missing in them."""

    operands: tuple[tuple[str, Value], ...]
    attrs: dict[str, Attr]


@cache
def params_of(name: str) -> tuple[Param, ...]:
    return OPS[name].params


def bind(op: str, given: Sequence[Given], rows: Value | None) -> Bound | None:
    """None where an argument is poison; `rows` is taken where the op's rows are left out."""
    params = params_of(op)
    slots = _slots(op, params, given)
    if any(isinstance(g.thing, Poison) for g in given):
        return None
    if rows is not None and any(p.kind == "rows" for p in params) and not slots["rows"]:
        slots["rows"] = [Given(None, rows, Span("", 0, 0, 0))]
    _complete(op, params, slots)
    beside = _dtype(g.thing for p in params if p.kind == "operand" for g in slots[p.name])
    operands = [
        (p.name, _operand(op, p, g, beside)) for p in params if p.is_operand for g in slots[p.name]
    ]
    attrs = {
        p.name: _attr(op, p, slots[p.name]) for p in params if not p.is_operand and slots[p.name]
    }
    return Bound(tuple((name, v) for name, v in operands if v is not None), attrs)


def _slots(op: str, params: Sequence[Param], given: Sequence[Given]) -> dict[str, list[Given]]:
    """The arguments by parameter. Positions follow the signature, save rows, which come last."""
    slots: dict[str, list[Given]] = {p.name: [] for p in params}
    free = [p for p in params if p.kind != "rows"]
    for g in given:
        if g.name is not None:
            _keyword(op, params, slots, g)
        elif "rows" in slots and not slots["rows"] and _is_rows(g.thing):
            slots["rows"] = [g]
        elif not free:
            raise Fault(f"{op} takes {_signature(params)}, got one argument more", g.span)
        else:
            _put(op, slots, free[0], g)
            free = free if free[0].variadic else free[1:]
    return slots


def _keyword(op: str, params: Sequence[Param], slots: dict[str, list[Given]], g: Given) -> None:
    assert g.name is not None
    if g.name not in slots:
        hint = nearest(g.name, list(slots))
        takes = f"{op} takes {_signature(params)}"
        raise Fault(f"{takes}, got {g.name}={hint}", g.span)
    _put(op, slots, next(p for p in params if p.name == g.name), g)


def _put(op: str, slots: dict[str, list[Given]], param: Param, g: Given) -> None:
    if slots[param.name] and not param.variadic:
        raise Fault(f"{op} takes {param.name} once, got a second one", g.span)
    slots[param.name].append(g)


def _is_rows(thing: Thing) -> bool:
    return isinstance(thing, Value) and thing.type.dtype == "rows"


def _signature(params: Sequence[Param]) -> str:
    return ", ".join(p.name + ("..." if p.variadic else "") for p in params)


def _complete(op: str, params: Sequence[Param], slots: dict[str, list[Given]]) -> None:
    """Faults for a parameter without an argument, and for an operand behind an absent one."""
    lacking: str | None = None
    for p in params:
        there = [g for g in slots[p.name] if not isinstance(g.thing, Absent)]
        if p.kind == "operand" and p.optional and there and not isinstance(there[0].thing, Value):
            needs = f"{op} needs a value as {p.name}, or what follows it by name"
            raise Fault(f"{needs}; got {describe(there[0].thing)}", there[0].span)
        if p.kind == "rows" and not there:
            raise Fault(f"{op} needs rows: an input of type rows[n] that is the only one, or rows=")
        if not there and not p.optional and not slots[p.name]:
            raise Fault(f"{op} needs {p.name}: it takes {_signature(params)}")
        if p.kind == "operand" and p.optional:
            if there and lacking:
                raise Fault(f"{op} needs {lacking} where {p.name} is given", there[0].span)
            lacking = lacking if there else p.name


def _dtype(things: Iterable[Thing]) -> str | None:
    """The dtype that a number beside these values takes."""
    values = [t for t in things if isinstance(t, Value) and t.type.dtype in ELEMENT_BYTES]
    values.sort(key=lambda v: v.node.op == "const")
    return values[0].type.dtype if values else None


def _operand(op: str, p: Param, g: Given, beside: str | None) -> Value | None:
    match g.thing:
        case Value():
            return g.thing
        case Absent() if p.optional:
            return None
        case int() | float() if beside is not None and not p.optional:
            return literal(g.thing, beside, g.span)
        case _:
            raise Fault(f"{op} needs a value as {p.name}, got {describe(g.thing)}", g.span)


def literal(number: int | float, dtype: str, span: Span | None = None) -> Value:
    """A number as a constant of a dtype that holds it."""
    if dtype in INTEGERS:
        limit = 2 ** (8 * ELEMENT_BYTES[dtype] - 1)
        if isinstance(number, float) or not -limit <= number < limit:
            raise Fault(f"a number of {dtype} is needed, got {number}", span)
        return const(number, dtype)
    if isfinite(number) and abs(number) >= TOO_LARGE[dtype]:
        raise Fault(f"a number of {dtype} is needed, {number} is beyond it", span)
    return const(float(number), dtype)


def _attr(op: str, p: Param, given: Sequence[Given]) -> Attr:
    if p.variadic:
        return tuple(_axis(op, p, g) for g in given)
    (g,) = given
    thing = g.thing
    if p.kind == "real" and isinstance(thing, int | float):
        return float(thing)
    if p.kind == "int" and isinstance(thing, int):
        return thing
    if p.kind == "dtype" and isinstance(thing, Dtype):
        return thing.name
    needs = {"real": "a compile-time number", "int": "a compile-time integer", "dtype": "a dtype"}
    raise Fault(f"{op} needs {needs[p.kind]} as {p.name}, got {describe(thing)}", g.span)


def _axis(op: str, p: Param, g: Given) -> int | str:
    if isinstance(g.thing, Axis):
        return g.thing.name
    if isinstance(g.thing, int):
        return g.thing
    raise Fault(f"{op} needs integers as {p.name}, got {describe(g.thing)}", g.span)
