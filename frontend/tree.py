"""The syntax tree: what the grammar reads, one frozen dataclass a construct, each with its span."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Literal:
    """An integer of 64 bits or a finite real; a minus in front of it is part of it."""

    span: Span
    value: int | float


@dataclass(frozen=True, slots=True)
class Text:
    span: Span
    value: str


@dataclass(frozen=True, slots=True)
class Member:
    """`.attn_q`"""

    span: Span
    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """`[l]`, `[T, 576]`"""

    span: Span
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Arg:
    """An argument, a returned value: `x`, `eps=1e-6`."""

    span: Span
    name: str | None
    value: Expr


@dataclass(frozen=True, slots=True)
class Path:
    """A name, a call or a place: `x`, `silu(x)`, `blk[l].attn_q`, `meta("...")[l]`."""

    span: Span
    name: str
    args: tuple[Arg, ...] | None  # None: no call
    subs: tuple[Member | Index, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """Operators of one strength, left to right: `a + b - c` is first a, rest ((+, b), (-, c))."""

    span: Span
    first: Expr
    rest: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Negate:
    span: Span
    value: Expr


@dataclass(frozen=True, slots=True)
class Array:
    """`[[0, 0], [0, 1]]`, an input's values."""

    span: Span
    items: tuple[Array | Literal, ...]


Expr = Literal | Text | Path | Chain | Negate


@dataclass(frozen=True, slots=True)
class Compare:
    span: Span
    left: Expr
    operator: str
    right: Expr


@dataclass(frozen=True, slots=True)
class Logic:
    """`a and b and c`, `a or b`, `not a`; operator is that word."""

    span: Span
    operator: str
    terms: tuple[Condition, ...]


Condition = Compare | Logic | Expr


@dataclass(frozen=True, slots=True)
class TypeExpr:
    """`f32[T, D]`"""

    span: Span
    dtype: str
    dims: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """What is assigned to: `x`, `c.k`, in a dump with its type, `l0.q: f32[T, 64]`."""

    span: Span
    name: str
    subs: tuple[Member | Index, ...]
    type: TypeExpr | None


@dataclass(frozen=True, slots=True)
class Assign:
    span: Span
    targets: tuple[Target, ...]
    value: Expr


@dataclass(frozen=True, slots=True)
class Return:
    span: Span
    values: tuple[Arg, ...]


@dataclass(frozen=True, slots=True)
class For:
    """`for variable in start..stop`, stop exclusive."""

    span: Span
    variable: str
    start: Expr
    stop: Expr
    body: Block


@dataclass(frozen=True, slots=True)
class If:
    """Branches (condition, block) in order; `otherwise` where none holds."""

    span: Span
    branches: tuple[tuple[Condition, Block], ...]
    otherwise: Block


Statement = Assign | Return | For | If


@dataclass(frozen=True, slots=True)
class Block:
    span: Span
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """`dim D = ...`, `real eps = ...`; kind is that word."""

    span: Span
    kind: str
    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Tensor:
    """One weight: `output [V, D] as "name" or token_embd`, `rope_freqs [HD / 2] optional`."""

    span: Span
    name: str
    shape: Index
    source: str | None  # the checkpoint's name where it does not follow the declared one
    fallback: str | None
    optional: bool


@dataclass(frozen=True, slots=True)
class Weights:
    """`weight name [..]` (name None, one tensor) or `weight blk[L] { ... }`."""

    span: Span
    name: str | None
    count: Index | None
    tensors: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """`k [KV, HD]` of a cache."""

    span: Span
    name: str
    shape: Index


@dataclass(frozen=True, slots=True)
class Cache:
    span: Span
    name: str
    count: Index | None
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Typed:
    """`x: f32[4, 8]`"""

    span: Span
    name: str
    type: TypeExpr


@dataclass(frozen=True, slots=True)
class State:
    span: Span
    name: str
    count: Index | None
    entries: tuple[Typed, ...]


@dataclass(frozen=True, slots=True)
class Input:
    span: Span
    name: str
    type: TypeExpr
    value: Expr | Array | None


@dataclass(frozen=True, slots=True)
class Ignore:
    span: Span
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DefParam:
    span: Span
    name: str
    default: Expr | None


@dataclass(frozen=True, slots=True)
class Def:
    span: Span
    name: str
    params: tuple[DefParam, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Kernel:
    """A fused function of the IR; `forward` is the whole program."""

    span: Span
    name: str
    params: tuple[Typed, ...]
    body: Block


Declaration = Constant | Weights | Cache | State | Input | Ignore | Def | Kernel
Item = Declaration | Statement


@dataclass(frozen=True, slots=True)
class Tree:
    """A file: its name, its text with \\n line ends, its items in order."""

    file: str
    text: str
    items: tuple[Item, ...]
