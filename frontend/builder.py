"""From lark's tree to ours (tree.py), bottom up and without recursion; checks literals' ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeVar

from lark import Token
from lark import Tree as LarkTree
from lark.tree import Meta

from compiler.diagnostics import Diagnostic, Span
from frontend import tree

N = TypeVar("N")
Part = object  # a Token, a node of tree.py or a list of them
INT_MAX = 2**63 - 1
MAX_NAME = 64

EXPR = (tree.Literal, tree.Text, tree.Path, tree.Chain, tree.Negate)
CONDITION = (tree.Compare, tree.Logic, *EXPR)
STATEMENT = (tree.Assign, tree.Return, tree.For, tree.If)
SUB = (tree.Member, tree.Index)
ARG = (tree.Arg, *EXPR)


DECLARATION = (
    tree.Constant, tree.Weights, tree.Cache, tree.State, tree.Input, tree.Ignore, tree.Def,
    tree.Kernel,
)  # fmt: skip
ITEM = (*DECLARATION, *STATEMENT)


@dataclass(frozen=True)
class Word:
    """What follows a tensor's shape: "as", "or" or "optional", and its text."""

    kind: str
    text: str


@dataclass(frozen=True)
class Args:
    values: tuple[tree.Arg, ...]


@dataclass(frozen=True)
class Line:
    items: tuple[tree.Item, ...]


def some(parts: Sequence[Part], kind: type[N] | tuple[type[N], ...]) -> tuple[N, ...]:
    """The parts of a kind, in order."""
    return tuple(p for p in parts if isinstance(p, kind))


def one(parts: Sequence[Part], kind: type[N] | tuple[type[N], ...]) -> N:
    return some(parts, kind)[0]


def perhaps(parts: Sequence[Part], kind: type[N] | tuple[type[N], ...]) -> N | None:
    found = some(parts, kind)
    return found[0] if found else None


def unquote(token: Token) -> str:
    r"""The text between the quotes; \" \\ and \n are the escapes."""
    return token[1:-1].replace(r"\n", "\n").replace(r"\"", '"').replace("\\\\", "\\")


def shorten(text: str) -> str:
    return text if len(text) <= 24 else text[:20] + "..."


class Builder:
    """One method a rule of the grammar; each gets the rule's span and its parts."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.source, self.lines = file, text, text.split("\n")
        self.errors: list[Diagnostic] = []
        self.large: dict[Span, Diagnostic] = {}  # integers that only a minus may bring into range

    def build(self, root: LarkTree[Token]) -> object:
        done: dict[int, object] = {}
        for sub in root.iter_subtrees():  # operands come before what holds them
            parts = [c if isinstance(c, Token) else done[id(c)] for c in sub.children]
            method: Callable[[Span, list[Part]], object] = getattr(self, sub.data)
            done[id(sub)] = method(self.span(sub.meta), parts)
        return done[id(root)]

    def span(self, meta: Meta) -> Span:
        if meta.empty:
            return Span(self.file, 1, 1, 1)
        same = meta.end_line == meta.line
        end = meta.end_column if same else len(self.lines[meta.line - 1].rstrip()) + 1
        return Span(self.file, meta.line, meta.column, end)

    def name(self, parts: Sequence[Part]) -> str:
        """The rule's first name; names are of at most 64 letters."""
        token = next(p for p in parts if isinstance(p, Token) and p.type == "NAME")
        if len(token) > MAX_NAME:
            self.error(token, f"a name has at most {MAX_NAME} letters, this one has {len(token)}")
        return str(token)

    def error(self, token: Token, message: str) -> None:
        assert token.line and token.column and token.end_column
        span = Span(self.file, token.line, token.column, token.end_column)
        self.errors.append(Diagnostic(span, message))

    # files and declarations

    def start(self, span: Span, parts: list[Part]) -> tree.Tree:
        items = tuple(item for line in some(parts, Line) for item in line.items)
        return tree.Tree(self.file, self.source, items)

    def line(self, span: Span, parts: list[Part]) -> Line:
        return Line(some(parts, ITEM))

    def expression(self, span: Span, parts: list[Part]) -> tree.Expr:
        return one(parts, EXPR)

    def dim(self, span: Span, parts: list[Part]) -> tree.Constant:
        return tree.Constant(span, "dim", self.name(parts), one(parts, EXPR))

    def real(self, span: Span, parts: list[Part]) -> tree.Constant:
        return tree.Constant(span, "real", self.name(parts), one(parts, EXPR))

    def weight(self, span: Span, parts: list[Part]) -> tree.Weights:
        return tree.Weights(span, None, None, some(parts, tree.Tensor))

    def weights(self, span: Span, parts: list[Part]) -> tree.Weights:
        count, tensors = one(parts, tree.Index), some(parts, tree.Tensor)
        return tree.Weights(span, self.name(parts), count, tensors)

    def tensor(self, span: Span, parts: list[Part]) -> tree.Tensor:
        words = {w.kind: w.text for w in some(parts, Word)}
        return tree.Tensor(
            span, self.name(parts), one(parts, tree.Index),
            words.get("as"), words.get("or"), "optional" in words,
        )  # fmt: skip

    def from_(self, span: Span, parts: list[Part]) -> Word:
        return Word("as", unquote(one(parts, Token)))

    def absent(self, span: Span, parts: list[Part]) -> Word:
        token = one(parts, Token)
        return Word("optional", "") if token.type == "OPTIONAL" else Word("or", self.name(parts))

    def cache(self, span: Span, parts: list[Part]) -> tree.Cache:
        count, entries = perhaps(parts, tree.Index), some(parts, tree.Entry)
        return tree.Cache(span, self.name(parts), count, entries)

    def entry(self, span: Span, parts: list[Part]) -> tree.Entry:
        return tree.Entry(span, self.name(parts), one(parts, tree.Index))

    def state(self, span: Span, parts: list[Part]) -> tree.State:
        count, entries = perhaps(parts, tree.Index), some(parts, tree.Typed)
        return tree.State(span, self.name(parts), count, entries)

    def input(self, span: Span, parts: list[Part]) -> tree.Input:
        typed = one(parts, tree.Typed)
        value = perhaps(parts, (tree.Array, *EXPR))
        return tree.Input(span, typed.name, typed.type, value)

    def ignore(self, span: Span, parts: list[Part]) -> tree.Ignore:
        return tree.Ignore(span, tuple(unquote(t) for t in some(parts, Token)))

    def def_(self, span: Span, parts: list[Part]) -> tree.Def:
        params, body = some(parts, tree.DefParam), one(parts, tree.Block)
        return tree.Def(span, self.name(parts), params, body)

    def defparam(self, span: Span, parts: list[Part]) -> tree.DefParam:
        return tree.DefParam(span, self.name(parts), perhaps(parts, EXPR))

    def kernel(self, span: Span, parts: list[Part]) -> tree.Kernel:
        params, body = some(parts, tree.Typed), one(parts, tree.Block)
        return tree.Kernel(span, self.name(parts), params, body)

    # statements

    def block(self, span: Span, parts: list[Part]) -> tree.Block:
        return tree.Block(span, some(parts, STATEMENT))

    def assign(self, span: Span, parts: list[Part]) -> tree.Assign:
        return tree.Assign(span, some(parts, tree.Target), one(parts, EXPR))

    def return_(self, span: Span, parts: list[Part]) -> tree.Return:
        return tree.Return(span, self.call(span, parts).values)

    def for_(self, span: Span, parts: list[Part]) -> tree.For:
        start, stop = some(parts, EXPR)
        return tree.For(span, self.name(parts), start, stop, one(parts, tree.Block))

    def if_(self, span: Span, parts: list[Part]) -> tree.If:
        conditions, blocks = some(parts, CONDITION), some(parts, tree.Block)
        branches = tuple(zip(conditions, blocks, strict=False))
        rest = blocks[len(conditions) :]
        return tree.If(span, branches, rest[0] if rest else tree.Block(span, ()))

    def target(self, span: Span, parts: list[Part]) -> tree.Target:
        return tree.Target(span, self.name(parts), some(parts, SUB), perhaps(parts, tree.TypeExpr))

    # parts of them

    def typed(self, span: Span, parts: list[Part]) -> tree.Typed:
        return tree.Typed(span, self.name(parts), one(parts, tree.TypeExpr))

    def type(self, span: Span, parts: list[Part]) -> tree.TypeExpr:
        dims = perhaps(parts, tree.Index)
        return tree.TypeExpr(span, self.name(parts), dims.values if dims else ())

    def index(self, span: Span, parts: list[Part]) -> tree.Index:
        return tree.Index(span, some(parts, EXPR))

    def member(self, span: Span, parts: list[Part]) -> tree.Member:
        return tree.Member(span, self.name(parts))

    def array(self, span: Span, parts: list[Part]) -> tree.Array:
        return tree.Array(span, some(parts, (tree.Array, tree.Literal)))

    def or_(self, span: Span, parts: list[Part]) -> tree.Logic:
        return tree.Logic(span, "or", some(parts, CONDITION))

    def and_(self, span: Span, parts: list[Part]) -> tree.Logic:
        return tree.Logic(span, "and", some(parts, CONDITION))

    def not_(self, span: Span, parts: list[Part]) -> tree.Logic:
        return tree.Logic(span, "not", some(parts, CONDITION))

    def compare(self, span: Span, parts: list[Part]) -> tree.Compare:
        left, right = some(parts, EXPR)
        return tree.Compare(span, left, str(one(parts, Token)), right)

    def chain(self, span: Span, parts: list[Part]) -> tree.Chain:
        first, *rest = some(parts, EXPR)
        words = [str(t) for t in some(parts, Token)]
        return tree.Chain(span, first, tuple(zip(words, rest, strict=True)))

    def literal(self, span: Span, parts: list[Part]) -> tree.Literal:
        token = one(parts, Token)
        if set(token) & set(".eE"):
            return tree.Literal(span, self.real_value(token))
        digits = token.lstrip("0") or "0"
        value = int(digits) if len(digits) < 20 else 2 * INT_MAX
        if value > INT_MAX:
            message = f"an integer is at most {INT_MAX}, got {shorten(token)}"
            self.large[span] = Diagnostic(span, message)
        return tree.Literal(span, value)

    def real_value(self, token: Token) -> float:
        value = float(token)
        if not isfinite(value):
            self.error(token, f"a real is at most 1.8e308, got {shorten(token)}")
            return 0.0
        return value

    def negate(self, span: Span, parts: list[Part]) -> tree.Expr:
        value = one(parts, EXPR)
        if not isinstance(value, tree.Literal):
            return tree.Negate(span, value)
        if value.value == INT_MAX + 1:
            self.large.pop(value.span, None)  # -2^63 is in range though 2^63 is not
        return tree.Literal(span, -value.value)

    def text(self, span: Span, parts: list[Part]) -> tree.Text:
        return tree.Text(span, unquote(one(parts, Token)))

    def path(self, span: Span, parts: list[Part]) -> tree.Path:
        args = perhaps(parts, Args)
        return tree.Path(span, self.name(parts), args and args.values, some(parts, SUB))

    def call(self, span: Span, parts: list[Part]) -> Args:
        every = some(parts, ARG)
        return Args(
            tuple(p if isinstance(p, tree.Arg) else tree.Arg(p.span, None, p) for p in every)
        )

    def keyword(self, span: Span, parts: list[Part]) -> tree.Arg:
        return tree.Arg(span, self.name(parts), one(parts, EXPR))
