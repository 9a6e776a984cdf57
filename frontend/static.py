"""Arithmetic and comparison of compile-time values: 64-bit integers, reals, texts; never wraps."""

from __future__ import annotations

from math import isfinite

from compiler.graph import Value
from frontend.things import Absent, Fault, Poison, Record, Thing, describe

INT_MIN, INT_MAX = -(2**63), 2**63 - 1


def arithmetic(symbol: str, a: int | float, b: int | float) -> int | float:
    """a symbol b for one of + - * / %; `/` of integers must divide."""
    if symbol in "/%" and b == 0:
        raise Fault(f"a divisor other than 0 is needed, got {a} {symbol} 0")
    whole = isinstance(a, int) and isinstance(b, int)
    if symbol == "%" and not whole:
        raise Fault(f"% needs integers, got {a} % {b}")
    match symbol:
        case "+":
            return checked(a + b)
        case "-":
            return checked(a - b)
        case "*":
            return checked(a * b)
        case "%":
            return a % b
        case _:
            return checked(_quotient(a, b) if whole else a / b)


def _quotient(a: int | float, b: int | float) -> int | float:
    if a % b:
        raise Fault(f"/ of integers needs a divisor of {a}, got {b}")
    return a // b


def checked(value: int | float) -> int | float:
    """The value; a fault where an integer leaves 64 bits or a real overflows."""
    if isinstance(value, float):
        if not isfinite(value):
            raise Fault("a finite real is needed, the result overflows")
    elif not INT_MIN <= value <= INT_MAX:
        raise Fault("an integer of 64 bits is needed, the result overflows")
    return value


def compare(symbol: str, a: Thing, b: Thing) -> bool:
    """a symbol b of two numbers, or of two texts for == and !=."""
    if isinstance(a, str) and isinstance(b, str) and symbol in ("==", "!="):
        return (a == b) == (symbol == "==")
    if not (isinstance(a, int | float) and isinstance(b, int | float)):
        got = f"got {describe(a)} and {describe(b)}"
        raise Fault(f"{symbol} needs two compile-time numbers (or == two texts), {got}")
    holds = {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}
    return holds[symbol]


def truth(thing: Thing) -> bool:
    """A condition: a number other than 0, or a weight, which says whether the checkpoint has it."""
    match thing:
        case int() | float():
            return thing != 0
        case Absent():
            return False
        case Value() if thing.node.op == "weight":
            return True
        case Poison():
            return False
        case Record(name):
            raise Fault(f"a condition asks for a weight of {name}, as in {name}.bias")
        case _:
            raise Fault(f"a condition needs a compile-time value, got {describe(thing)}")
