"""Faults for `diff --bisect` to find, planted in passes and rules; and how it is asked who it was.

A pass is made wrong behind its back: the functions that it makes get another operator, an input of
the other sign, two operands swapped or another constant. A rule's rewrite is made wrong as it
builds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import passes
from compiler.api.bisect_passes import Tried
from compiler.api.bisecting import Bisected
from compiler.graph import Function, Graph, Node, Value, call, const, function, node, rebuild
from compiler.ops import apply
from passes import lower_numerics
from passes.context import Context
from passes.pattern import Bound
from passes.rewrite import Rule

Wrong = Callable[[Function], Function | None]


def who(found: Tried | Bisected) -> list[str]:
    return [guilty.who for guilty in found.guilty]


def copied(fn: Function, change: Callable[[Node, list[Value]], Value | None]) -> Function | None:
    """The function with the first member that `change` changes; None where it changes none."""
    new: dict[Value, Value] = {}
    body: dict[Node, None] = {}
    changed = False
    for n in fn.body:
        operands = [new.get(v, v) for v in n.operands]
        made = None if changed else change(n, operands)
        changed = changed or made is not None
        copy = made.node if made else node(n.op, operands, dict(n.attrs), n.types)
        known = (*fn.params, *body)
        body |= dict.fromkeys(v.node for v in copy.operands if v.node not in known)
        body[copy] = None
        new |= {n.result(i): copy.result(i) for i in range(len(n.types))}
    members = [n for n in body if n.op != "const"]
    results = [new.get(v, v) for v in fn.results]
    return function(fn.kind, fn.params, members, results) if changed else None


OTHER = {"add": "sub", "sub": "add", "mul": "add", "silu": "sigmoid", "exp": "silu"}


def operator(fn: Function) -> Function | None:
    """Another op of the same operands."""

    def change(n: Node, operands: list[Value]) -> Value | None:
        return apply(OTHER[n.op], *operands) if n.op in OTHER else None

    return copied(fn, change)


def constant(fn: Function) -> Function | None:
    """Another real number among the attributes of a member on whose value it tells."""

    def change(n: Node, operands: list[Value]) -> Value | None:
        attrs = dict(n.attrs)
        for name in ("eps", "theta", "scale") if n.op != "l2norm" else ():
            if isinstance(value := attrs.get(name), float):
                other = {**attrs, name: value * 1.5 + 0.25}
                return node(n.op, operands, other, n.types).result()
        return None

    return copied(fn, change)


def swapped(fn: Function) -> Function | None:
    """The operands of a difference or a quotient in each other's place."""

    def change(n: Node, operands: list[Value]) -> Value | None:
        fits = n.op in ("sub", "div") and operands[0].type == operands[1].type
        return apply(n.op, *operands[::-1]) if fits else None

    return copied(fn, change)


def negated(fn: Function) -> Function | None:
    """A projection's or a quantize's input with the other sign."""

    def change(n: Node, operands: list[Value]) -> Value | None:
        if n.op not in ("linear", "expert_linear", "quantize", "softmax", "cast"):
            return None
        if operands[0].type.dtype != "f32":
            return None
        turned = [apply("neg", operands[0]), *operands[1:]]
        return node(n.op, turned, dict(n.attrs), n.types).result()

    return copied(fn, change)


FAULTS = (operator, constant, swapped, negated)


def planted(p: passes.Pass, fault: Wrong) -> passes.Pass:
    """The pass whose functions are wrong where the fault applies."""

    def change(old: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        fn = old.function if old.op == "call" else None
        other = fault(fn) if fn and fn.kind == p.name else None
        made = call(other, operands) if other else node(
            old.op, operands, dict(old.attrs), old.types
        )  # fmt: skip
        return tuple(made.result(i) for i in range(len(old.types)))

    def run(graph: Graph, context: Context) -> Graph:
        return rebuild(p.run(graph, context), change)

    return replace(p, run=run)


def plant(monkeypatch: pytest.MonkeyPatch, name: str, run: Callable[[passes.Pass], Any]) -> None:
    """The list of passes with one that is wrong."""
    changed = tuple(run(p) if p.name == name else p for p in passes.PASSES)
    monkeypatch.setattr(passes, "PASSES", changed)


def scaled(value: Value) -> Value:
    return apply("mul", value, const(1.0 + 2**-12, "f32"))


def wrong_rule(rule: Rule, fault: Callable[[Value], Value]) -> Rule:
    def build(bound: Bound) -> Value:
        return fault(rule.build(bound))

    return replace(rule, rewrite=build)


def plant_rule(monkeypatch: pytest.MonkeyPatch, name: str, fault: Callable[[Value], Value]) -> None:
    tables = lower_numerics.tables

    def planted_tables(words: int) -> tuple[tuple[Rule, ...], ...]:
        return tuple(
            tuple(wrong_rule(r, fault) if r.name == name else r for r in table)
            for table in tables(words)
        )

    monkeypatch.setattr(lower_numerics, "tables", planted_tables)
