"""Statements of a program: assignments, static `for` and `if`, returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compiler.diagnostics import Span
from compiler.graph import Value
from frontend import tree
from frontend.calls import Calls
from frontend.static import compare, truth
from frontend.things import POISON, Fault, Poison, Results, Stop, Thing, describe

MAX_STATEMENTS = 100_000


class Statements(Calls):
    """Runs statements; what they bind is in the trace's innermost level."""

    count = 0

    def block(self, block: tree.Block) -> None:
        for index, statement in enumerate(block.statements):
            if self.trace.level.result is not None:
                return
            self.statement(statement)
            last = index == len(block.statements) - 1
            if isinstance(statement, tree.Return) and not last:
                after = block.statements[index + 1]
                self.report(Fault("nothing is needed after a return"), after.span)

    def statement(self, statement: tree.Statement) -> None:
        self.trace.level.statement = statement.span
        self.tick()
        match statement:
            case tree.Assign():
                self._assign(statement)
            case tree.Return():
                self.return_(statement)
            case tree.For():
                self._for(statement)
            case tree.If():
                self._if(statement)

    def tick(self) -> None:
        self.count += 1
        if self.count > MAX_STATEMENTS:
            limit = f"a program of at most {MAX_STATEMENTS} steps is needed, this one runs on"
            self.report(Fault(limit), self.here)
            raise Stop

    def return_(self, statement: tree.Return) -> None:
        level = self.trace.level
        things = [self.thing(arg.value) for arg in statement.values]
        if len(things) == 1:
            level.result = things[0]
            return
        values = [self._value(t, a.span) for t, a in zip(things, statement.values, strict=True)]
        level.result = Results(level.name or "forward", tuple(values))

    def _value(self, thing: Thing, span: Span) -> Value | Poison:
        if isinstance(thing, Value | Poison):
            return thing
        self.report(Fault(f"a value is needed, got {describe(thing)}"), span)
        return POISON

    def _for(self, statement: tree.For) -> None:
        level = self.trace.level
        start = self.integer(statement.start, "a range's start")
        stop = self.integer(statement.stop, "a range's end")
        if start is None or stop is None:
            return self._poison(statement.body)
        before = level.scope.get(statement.variable)
        for index in range(start, stop):
            self.tick()
            level.scope[statement.variable] = index
            level.loops.append((statement.variable, index))
            self.block(statement.body)
            level.loops.pop()
            if level.result is not None:
                break
        level.scope.pop(statement.variable, None)
        if before is not None:
            level.scope[statement.variable] = before

    def _if(self, statement: tree.If) -> None:
        for condition, body in statement.branches:
            holds = self.condition(condition)
            if holds is None:
                for block in (*(b for _, b in statement.branches), statement.otherwise):
                    self._poison(block)
                return
            if holds:
                return self.block(body)
        self.block(statement.otherwise)

    def _poison(self, block: tree.Block) -> None:
        """What a block that cannot be run would have bound is poison."""
        self.trace.level.scope.update((name, POISON) for name in bound_names(block))

    def condition(self, condition: tree.Condition) -> bool | None:
        """Whether a condition holds; None, and a report, where that cannot be said."""
        try:
            return self._condition(condition)
        except Fault as fault:
            self.report(fault, condition.span)
            return None

    def _condition(self, condition: tree.Condition) -> bool | None:
        match condition:
            case tree.Compare(left=left, operator=symbol, right=right):
                a, b = self.thing(left), self.thing(right)
                poison = isinstance(a, Poison) or isinstance(b, Poison)
                return None if poison else compare(symbol, a, b)
            case tree.Logic(operator="not", terms=(term,)):
                holds = self.condition(term)
                return None if holds is None else not holds
            case tree.Logic(operator=word, terms=terms):
                for term in terms:
                    holds = self.condition(term)
                    if holds is None or holds == (word == "or"):
                        return holds
                return word == "and"
            case _:
                thing = self.thing(condition)
                return None if isinstance(thing, Poison) else truth(thing)

    def _assign(self, statement: tree.Assign) -> None:
        thing = self.thing(statement.value)
        targets = statement.targets
        values: Sequence[Thing] = [thing]
        if isinstance(thing, Results):
            values = thing.values
        elif isinstance(thing, Poison):
            values = [POISON] * len(targets)
        if len(values) != len(targets):
            given = f"got {len(values)} for {len(targets)}"
            self.report(Fault(f"a name for each value is needed, {given}"), statement.span)
            values = [POISON] * len(targets)
        for target, value in zip(targets, values, strict=True):
            try:
                self.bind(target, value)
            except Fault as fault:
                self.report(fault, target.span)
                if not target.subs:
                    self.trace.level.scope[target.name] = POISON


def bound_names(block: tree.Block) -> Iterator[str]:
    """The names that a block's statements bind."""
    for statement in block.statements:
        match statement:
            case tree.Assign(targets=targets):
                yield from (t.name for t in targets if not t.subs)
            case tree.For(body=body):
                yield from bound_names(body)
            case tree.If(branches=branches, otherwise=otherwise):
                for inner in (*(b for _, b in branches), otherwise):
                    yield from bound_names(inner)
            case tree.Return():
                pass
