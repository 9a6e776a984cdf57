"""The op table: one record an op, found by its file; binding of arguments.

Nothing else names an op, save fusion rules.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any

from compiler.graph import Attr, Node, Value, node
from compiler.types import Type, nbytes, size


class OpError(Exception):
    """A call that breaks an op's rule; the message says what is needed and what was given."""


@dataclass(frozen=True)
class Param:
    """One parameter of an op, from its signature.

    Spelled `x` (an operand), `w?` (an optional one), `xs...` (one or more operands), `rows` (the
    rows operand, which the source may leave out), `eps:real`, `axis:int=-1`, `dtype:dtype`,
    `shape:ints...` (attributes). Optional operands are filled in order, so that their count says
    which are there.
    """

    name: str
    kind: str  # "operand", "rows", "int", "real", "dtype"
    optional: bool = False
    variadic: bool = False
    default: Attr | None = None

    @property
    def is_operand(self) -> bool:
        return self.kind in ("operand", "rows")


@cache
def parse_signature(text: str) -> tuple[Param, ...]:
    params: list[Param] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        spec, _, default = part.partition("=")
        name, _, kind = spec.partition(":")
        variadic, optional = spec.endswith("..."), spec.endswith("?") or bool(default)
        name, kind = name.rstrip(".?"), kind.rstrip(".").removesuffix("s" if variadic else "")
        kind = kind or ("rows" if name == "rows" else "operand")
        value: Attr | None = None
        if default:
            value = (
                default if kind == "dtype" else float(default) if kind == "real" else int(default)
            )
        params.append(Param(name, kind, optional, variadic, value))
    return tuple(params)


@dataclass(frozen=True)
class Error:
    """How far `exact` is from `meaning` at most: in words, and for operands as `exact` takes them,
    an array that broadcasts to the result. See compiler/ops/errors.py."""

    text: str
    bound: Callable[..., Any]


@dataclass(frozen=True)
class Op:
    """One op.

    infer(**types, **attrs) -> Type or tuple of Types; raises OpError.
    meaning(**values, **attrs): float64 or integers, independent of `exact`.
    exact(**values, **attrs): the one exact arithmetic, in NumPy. Values are those of
    compiler/values.py; a variadic operand is a tuple; an absent optional one is None.
    expression: elementwise ops alone: CUDA for one element by dtype group ("f32", "int"), `{0}` and
    `{1}` being operands: names, or literals, negative ones in parentheses.
    traits: "elementwise"; "view" (no kernel: same memory); "row" (works within the last axis: one
    value or row a row); "weight" (takes a weight in the checkpoint's format); "effect" (its
    operand is consumed); "internal" (passes make it; the source may not call it).
    samples: small op programs, as text that the command line runs.
    truths: what special values give, as `call = result`: operands as lists, `cache(x)` for a cache
    that holds x. compiler/fuzz/truths.py reads them, and tests hold each.
    error: of ops that sum or choose; of elementwise ones the functions' own say it.
    """

    name: str
    signature: str
    infer: Callable[..., Type | tuple[Type, ...]]
    meaning: Callable[..., Any]
    exact: Callable[..., Any]
    doc: str
    samples: tuple[str, ...]
    flops: Callable[[Sequence[Type], Sequence[Type]], int] = lambda _, outs: sum(
        size(t.shape) for t in outs
    )
    bytes: Callable[[Sequence[Type], Sequence[Type]], int] = lambda ins, outs: sum(
        nbytes(t) for t in (*ins, *outs)
    )
    expression: Mapping[str, str] | None = None
    traits: frozenset[str] = frozenset()
    truths: tuple[str, ...] = ()
    error: Error | None = None

    @property
    def params(self) -> tuple[Param, ...]:
        return parse_signature(self.signature)


OPS: dict[str, Op] = {}


def define(op: Op) -> Op:
    assert op.name not in OPS, op.name
    OPS[op.name] = op
    return op


def sample(inputs: str, *lines: str) -> str:
    """A sample program: `inputs` separated by `; `, then statements; the last is returned."""
    body = [f"input {text.strip()}" for text in inputs.split(";") if text.strip()]
    return "\n".join([*body, *lines[:-1], f"return {lines[-1]}", ""])


@cache
def load() -> dict[str, Op]:
    """Import every file of this folder once; each defines its ops."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return OPS


def get(name: str) -> Op:
    """The record of an op; OpError with the nearest names where there is none."""
    load()
    if name not in OPS:
        near = get_close_matches(name, OPS, 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise OpError(f"there is no op {name}{hint}")
    return OPS[name]


def bound(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of `infer`, `meaning` and `exact`: a node's operands and attributes."""
    params = [p for p in op.params if p.is_operand]
    spare = len(operands) - sum(not p.optional for p in params)
    rest, out = list(operands), dict(attrs)
    for index, p in enumerate(params):
        if p.variadic:
            keep = len(params) - index - 1
            out[p.name] = tuple(rest[: len(rest) - keep])
            rest = rest[len(rest) - keep :]
        elif p.optional and spare <= 0:
            out[p.name] = None
        else:
            spare -= p.optional
            out[p.name] = rest.pop(0)
    assert not rest, (op.name, len(operands))
    return out


def build(name: str, operands: Sequence[Value], attrs: Mapping[str, Attr] | None = None) -> Node:
    """The node of an op, defaults filled in, types inferred; OpError where its rule is broken."""
    op = get(name)
    full = {p.name: p.default for p in op.params if not p.is_operand and p.default is not None}
    full |= dict(attrs or {})
    needed = [p for p in op.params if not p.is_operand and p.name not in full]
    if needed:
        raise OpError(f"{name} needs {needed[0].name}={needed[0].kind}")
    types = op.infer(**bound(op, [v.type for v in operands], full))
    return node(name, operands, full, types if isinstance(types, tuple) else (types,))


def apply(name: str, *operands: Value, **attrs: Attr) -> Value:
    """The first result of `build`; what passes write new nodes with."""
    return build(name, operands, attrs).result()
