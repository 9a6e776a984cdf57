"""Patterns, such as `linear(rmsnorm(x, g, eps=e), w)`: how they match values and build them.

A letter binds a value (or, as `eps=e`, an attribute), and bound again it must be the same one; a
number matches a constant; a call matches a node of that op with as many operands. An attribute that
the pattern leaves out may be anything when matching, and has its default when building.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from compiler.graph import Attr, Node, Value, const
from compiler.ops import apply

COMMUTATIVE = frozenset({"add", "mul"})  # both orders of their operands give the same bits


@dataclass(frozen=True)
class Letter:
    name: str


@dataclass(frozen=True)
class Number:
    value: int | float


@dataclass(frozen=True)
class Call:
    op: str
    operands: tuple[Pattern, ...]
    attrs: tuple[tuple[str, Letter | Number], ...] = ()


Pattern = Letter | Number | Call
Bound = Mapping[str, Value | Attr]


@dataclass(frozen=True)
class Match:
    """Where a pattern fits: what its letters stand for, and its calls' nodes, the root first."""

    bound: Bound = field(default_factory=dict[str, Value | Attr])
    nodes: tuple[Node, ...] = ()

    @property
    def root(self) -> Node:
        return self.nodes[0]

    def value(self, letter: str) -> Value:
        value = self.bound[letter]
        assert isinstance(value, Value), letter
        return value

    def bind(self, letter: str, to: Value | Attr) -> Match | None:
        """This match with `letter` bound; None where it stands for something else already."""
        if letter not in self.bound:
            return Match({**self.bound, letter: to}, self.nodes)
        have = self.bound[letter]
        same = have == to if isinstance(to, Value) else _same_number(have, to)
        return self if same else None


def _same_number(a: object, b: object) -> bool:
    """NOTE: by repr, so that -0.0 is not 0.0, which compare equal."""
    return repr(a) == repr(b)


def matches(pattern: Pattern, value: Value, so_far: Match | None = None) -> Iterator[Match]:
    """All ways in which `pattern` fits `value`, most literal first."""
    so_far = so_far or Match()
    if isinstance(pattern, Letter):
        bound = so_far.bind(pattern.name, value)
        if bound is not None:
            yield bound
    elif isinstance(pattern, Number):
        if _is_const(value, pattern.value):
            yield so_far
    else:
        yield from _call_matches(pattern, value, so_far)


def _is_const(value: Value, number: int | float) -> bool:
    """Whether `value` is the constant `number`; 2 stands for the real 2.0 too."""
    if value.node.op != "const":
        return False
    given = value.node.attr("value")
    return _same_number(given, float(number) if isinstance(given, float) else number)


def _call_matches(pattern: Call, value: Value, so_far: Match) -> Iterator[Match]:
    n = value.node
    if n.op != pattern.op or value.index or len(n.operands) != len(pattern.operands):
        return
    start = _attr_match(pattern, n, Match(so_far.bound, (*so_far.nodes, n)))
    if start is None:
        return
    yield from _operand_matches(pattern.operands, n.operands, start)
    if pattern.op in COMMUTATIVE:
        yield from _operand_matches(pattern.operands, n.operands[::-1], start)


def _attr_match(pattern: Call, n: Node, so_far: Match) -> Match | None:
    for name, want in pattern.attrs:
        given = n.attr(name)
        if isinstance(want, Letter):
            bound = so_far.bind(want.name, given)
            if bound is None:
                return None
            so_far = bound
        elif not _same_number(given, want.value):
            return None
    return so_far


def _operand_matches(
    patterns: tuple[Pattern, ...], operands: tuple[Value, ...], so_far: Match
) -> Iterator[Match]:
    if not patterns:
        yield so_far
        return
    for match in matches(patterns[0], operands[0], so_far):
        yield from _operand_matches(patterns[1:], operands[1:], match)


def instance(pattern: Pattern, bound: Bound) -> Value:
    """The value that `pattern` describes, letters standing for what is bound.

    A number takes the dtype of the operand beside it.
    """
    if isinstance(pattern, Letter):
        value = bound[pattern.name]
        assert isinstance(value, Value), pattern.name
        return value
    assert isinstance(pattern, Call), "a number stands beside a value"
    return apply(pattern.op, *_operands(pattern, bound), **_attrs(pattern, bound))


def _operands(pattern: Call, bound: Bound) -> list[Value]:
    values = {
        i: instance(p, bound) for i, p in enumerate(pattern.operands) if not isinstance(p, Number)
    }
    dtype = next(iter(values.values())).type.dtype
    numbers = {
        i: const(p.value, dtype) for i, p in enumerate(pattern.operands) if isinstance(p, Number)
    }
    return [(values | numbers)[i] for i in range(len(pattern.operands))]


def _attrs(pattern: Call, bound: Bound) -> dict[str, Attr]:
    out: dict[str, Attr] = {}
    for name, want in pattern.attrs:
        value = bound[want.name] if isinstance(want, Letter) else want.value
        assert not isinstance(value, Value), name
        out[name] = value
    return out
