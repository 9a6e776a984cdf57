"""Expressions to things: what programs and dumps have in common. Faults are reported, not raised.

A subclass says what a path (a name, a call, a place) stands for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from compiler.diagnostics import CHECKPOINT, USAGE, Diagnostic, ProgramError, Span
from compiler.graph import Node, Value
from compiler.ops import OPS, OpError, build
from compiler.types import DTYPES, ELEMENT_BYTES, Dim, Type
from frontend import tree
from frontend.bind import Given, bind, literal
from frontend.static import arithmetic, checked
from frontend.things import (
    POISON,
    Axis,
    Fault,
    Poison,
    Results,
    Stop,
    Thing,
    describe,
    nearest,
)
from frontend.trace import Trace

OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
MAX_DEPTH = 100  # of expressions inside expressions, calls of defs included
MAX_NODES = 200_000


class Expressions(ABC):
    """Evaluates the expressions of one file; what is wrong gives POISON and a diagnostic."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.trace = Trace()
        self.found: dict[Span, tuple[Diagnostic, int]] = {}  # one error a place
        self.depth = 0

    @abstractmethod
    def path(self, path: tree.Path) -> Thing:
        """What a name, a call or a place stands for. Raises Fault."""

    @abstractmethod
    def rows(self) -> Value | None:
        """The rows operand where a call leaves it out."""

    # faults

    def report(self, fault: Fault, span: Span) -> None:
        """Keep a fault; the first one of a place counts."""
        at = fault.span or span
        if at.file != self.file:
            at = self.trace.user_span(self.file)
        notes = (*fault.notes, *self.trace.stack_notes(self.file))
        self.found.setdefault(at, (Diagnostic(at, fault.message, notes), fault.code))

    def stop_on_faults(self, source: str) -> None:
        """Raises ProgramError with all faults, if there are any."""
        if not self.found:
            return
        blame_checkpoint = all(code == CHECKPOINT for _, code in self.found.values())
        code = CHECKPOINT if blame_checkpoint else USAGE
        raise ProgramError([d for d, _ in self.found.values()], source, code)

    # values

    def thing(self, expr: tree.Expr) -> Thing:
        """What an expression stands for; POISON, and a report, where it is wrong."""
        self.depth += 1
        try:
            if self.depth > MAX_DEPTH:
                raise Fault(f"expressions and calls are nested at most {MAX_DEPTH} deep")
            return self._thing(expr)
        except Fault as fault:
            self.report(fault, expr.span)
            return POISON
        finally:
            self.depth -= 1

    def _thing(self, expr: tree.Expr) -> Thing:
        match expr:
            case tree.Literal(value=value) | tree.Text(value=value):
                return value
            case tree.Negate(value=inner):
                return self._negate(self.thing(inner), expr.span)
            case tree.Path():
                return self.path(expr)
            case tree.Chain(first=first, rest=rest):
                out = self.thing(first)
                for symbol, right in rest:
                    out = self._operator(symbol, out, self.thing(right), expr.span)
                return out

    def _negate(self, thing: Thing, span: Span) -> Thing:
        if isinstance(thing, int | float):
            return checked(-thing) if isinstance(thing, int) else -thing
        return self.apply("neg", [Given(None, thing, span)], span)

    def _operator(self, symbol: str, a: Thing, b: Thing, span: Span) -> Thing:
        if isinstance(a, Poison) or isinstance(b, Poison):
            return POISON
        if isinstance(a, int | float) and isinstance(b, int | float):
            return arithmetic(symbol, a, b)
        if symbol == "%" or not (isinstance(a, Value) or isinstance(b, Value)):
            got = f"got {describe(a)} and {describe(b)}"
            needs = "compile-time integers" if symbol == "%" else "values or numbers"
            raise Fault(f"{symbol} needs {needs}, {got}")
        return self.apply(OPERATORS[symbol], [Given(None, a, span), Given(None, b, span)], span)

    def apply(self, op: str, given: Sequence[Given], span: Span) -> Thing:
        """The results of a call of an op, with a note for each operand where it breaks the rule."""
        bound = bind(op, given, self.rows())
        if bound is None:
            return POISON
        try:
            made = build(op, [value for _, value in bound.operands], bound.attrs)
        except OpError as error:
            notes = self.trace.operand_notes(bound.operands, self.file)
            raise Fault(str(error), span, notes) from None
        self.note(made)
        if len(made.types) == 1:
            return made.result()
        return Results(op, tuple(made.result(i) for i in range(len(made.types))))

    def note(self, made: Node) -> None:
        self.trace.add(made)
        if len(self.trace.origins) > MAX_NODES:
            self.report(Fault(f"a program of at most {MAX_NODES} operations is needed"), self.here)
            raise Stop

    @property
    def here(self) -> Span:
        return self.trace.level.statement

    def call_op(self, path: tree.Path, known: Sequence[str]) -> Thing:
        """A call of an op; `known` are the other names that can be called."""
        assert path.args is not None
        if path.name not in OPS:
            names = [*known, *(name for name, op in OPS.items() if "internal" not in op.traits)]
            raise Fault(f"there is no op or def {path.name}{nearest(path.name, names)}")
        return self.apply(path.name, self.given(path.args), path.span)

    def given(self, args: Sequence[tree.Arg]) -> list[Given]:
        return [Given(arg.name, self.thing(arg.value), arg.span) for arg in args]

    # types

    def integer(self, expr: tree.Expr, what: str) -> int | None:
        """A compile-time integer; None, and a report, where it is none."""
        thing = self.thing(expr)
        if isinstance(thing, int):
            return thing
        if not isinstance(thing, Poison):
            fault = Fault(f"{what} is a compile-time integer, got {describe(thing)}")
            self.report(fault, expr.span)
        return None

    def dim(self, expr: tree.Expr, dynamic: bool) -> Dim | None:
        """An axis of a declared shape: an integer of 1 or more, or T or R where those may stand."""
        thing = self.thing(expr)
        if isinstance(thing, Poison):
            return None
        if isinstance(thing, int) and thing > 0:
            return thing
        if isinstance(thing, Axis) and dynamic:
            return thing.name
        fault = Fault(f"an axis is an integer of 1 or more, got {describe(thing)}")
        self.report(fault, expr.span)
        return None

    def shape(self, exprs: Sequence[tree.Expr], dynamic: bool = False) -> tuple[Dim, ...] | None:
        dims = [self.dim(expr, dynamic) for expr in exprs]
        known = tuple(d for d in dims if d is not None)
        return known if len(known) == len(dims) else None

    def type(self, expr: tree.TypeExpr, dynamic: bool) -> Type | None:
        """A written type; None, and a report, where it is none."""
        shape = self.shape(expr.dims, dynamic)
        if expr.dtype not in DTYPES:
            hint = nearest(expr.dtype, DTYPES)
            known = ", ".join(ELEMENT_BYTES)
            fault = Fault(f"a dtype such as {known} is needed, got {expr.dtype}{hint}")
            self.report(fault, expr.span)
            return None
        return None if shape is None else Type(expr.dtype, shape)

    def number(self, number: int | float, type_: Type, span: Span) -> Value:
        """`c: f32 = 2.0`: a constant that stands alone."""
        if type_.shape or type_.dtype not in ELEMENT_BYTES:
            raise Fault(f"a number is a scalar such as f32, not {type_}", span)
        return literal(number, type_.dtype, span)
