"""Patterns from text: an expression of the language becomes a pattern tree."""

from __future__ import annotations

from functools import cache

from compiler.ops import get
from frontend import tree
from frontend.parser import parse
from passes.pattern import Call, Letter, Number, Pattern

OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "div"}


@cache
def parse_pattern(text: str) -> Pattern:
    """The pattern that `text` spells; ValueError where it is none."""
    (statement,) = parse(f"return {text}", "a pattern").items
    if not isinstance(statement, tree.Return) or len(statement.values) != 1:
        raise ValueError(f"a pattern is one expression, got {text}")
    return _pattern(statement.values[0].value, text)


def _pattern(expr: tree.Expr, text: str) -> Pattern:
    match expr:
        case tree.Literal(value=value):
            return Number(value)
        case tree.Negate(value=value):
            return Call("neg", (_pattern(value, text),))
        case tree.Chain(first=first, rest=rest):
            out = _pattern(first, text)
            for operator, right in rest:
                out = Call(OPERATORS[operator], (out, _pattern(right, text)))
            return out
        case tree.Path(name=name, args=None, subs=()):
            return Letter(name)
        case tree.Path(name=name, args=(*args,), subs=()):
            return _call(name, args, text)
        case _:
            raise ValueError(f"a pattern has letters, numbers and calls, got {text}")


def _call(name: str, args: list[tree.Arg], text: str) -> Call:
    operands = tuple(_pattern(a.value, text) for a in args if a.name is None)
    attrs = tuple((a.name, _attr(a.value, text)) for a in args if a.name is not None)
    known = {p.name for p in get(name).params if not p.is_operand}
    if unknown := {n for n, _ in attrs} - known:
        raise ValueError(f"{name} has no attribute {', '.join(sorted(unknown))}, got {text}")
    return Call(name, operands, attrs)


def _attr(expr: tree.Expr, text: str) -> Letter | Number:
    pattern = _pattern(expr, text)
    if isinstance(pattern, Call):
        raise ValueError(f"an attribute is a letter or a number, got {text}")
    return pattern
