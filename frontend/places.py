"""Names and places of a program: what they stand for, and giving them other values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from compiler.diagnostics import Span
from compiler.graph import Value
from frontend import tree
from frontend.expressions import Expressions
from frontend.things import (
    BUILTINS,
    POISON,
    Absent,
    Fault,
    Group,
    Poison,
    Record,
    Thing,
    describe,
    nearest,
)


class Places(Expressions):
    """Scopes: a def's own names, then what the file declares, then the language's."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.globals: dict[str, Thing] = {}  # declared names, which defs see
        self.fixed: dict[str, Span] = {}  # those of them that are never bound again

    @abstractmethod
    def call(self, path: tree.Path) -> Thing:
        """What a call gives. Raises Fault."""

    @abstractmethod
    def callable(self) -> Iterable[str]:
        """The defs that the level at hand may call."""

    def lookup(self, name: str) -> Thing:
        level = self.trace.level
        declared = self.globals if level.file == self.file else {}
        for names in (level.scope, declared, BUILTINS):
            if name in names:
                return names[name]
        known = [*level.scope, *declared, *self.callable()]
        if name in self.callable():
            raise Fault(f"{name} is a def, a call of it is needed: {name}(...)")
        raise Fault(f"there is no {name} here{nearest(name, known)}")

    def path(self, path: tree.Path) -> Thing:
        thing = self.lookup(path.name) if path.args is None else self.call(path)
        for sub in path.subs:
            thing = self.sub(thing, sub)
        return thing

    def sub(self, thing: Thing, sub: tree.Member | tree.Index) -> Thing:
        """One member or element of a thing."""
        if isinstance(thing, Poison):
            return POISON
        if isinstance(sub, tree.Index):
            return self._element(thing, sub)
        if isinstance(thing, Group):
            raise Fault(f"{thing.name} is a group, {thing.name}[l].{sub.name} is needed", sub.span)
        if not isinstance(thing, Record):
            raise Fault(f"a record has members, got {describe(thing)}", sub.span)
        if sub.name not in thing.members:
            hint = nearest(sub.name, list(thing.members))
            raise Fault(f"{thing.name} has no member {sub.name}{hint}", sub.span)
        return thing.members[sub.name]

    def _element(self, thing: Thing, sub: tree.Index) -> Thing:
        if not isinstance(thing, Group | tuple):
            hint = (
                "; slice(x, axis=, start=, stop=) takes a part" if isinstance(thing, Value) else ""
            )
            given = describe(thing)
            raise Fault(f"[ ] needs a group or an array, got {given}{hint}", sub.span)
        if len(sub.values) != 1:
            raise Fault(f"one index is needed, got {len(sub.values)}", sub.span)
        index = self.integer(sub.values[0], "an index")
        if index is None:
            return POISON
        entries = thing.records if isinstance(thing, Group) else thing
        if not 0 <= index < len(entries):
            name = thing.name if isinstance(thing, Group) else "the array"
            raise Fault(f"{name} has entries 0 to {len(entries) - 1}, got {index}", sub.span)
        return entries[index]

    def bind(self, target: tree.Target, thing: Thing) -> None:
        """Give a name or a cache's member another value."""
        thing = self._typed(target, thing)
        if isinstance(thing, Absent):
            raise Fault(f"a value is needed, got {describe(thing)}")
        if target.subs:
            return self._bind_member(target, thing)
        self.check_free(target.name, target.span)
        self.trace.level.scope[target.name] = thing
        if isinstance(thing, Value):
            self.trace.name(thing, target.name)

    def check_free(self, name: str, span: Span) -> None:
        if name in BUILTINS:
            raise Fault(f"another name is needed: {name} is {describe(BUILTINS[name])}", span)
        if name in self.fixed and self.trace.level.file == self.file:
            note = (self.fixed[name], f"{name} is declared here")
            raise Fault(f"another name is needed: {name} is declared", span, [note])

    def _typed(self, target: tree.Target, thing: Thing) -> Thing:
        """The thing, if it has the type that is written beside its name."""
        if target.type is None or isinstance(thing, Poison):
            return thing
        wanted = self.type(target.type, dynamic=True)
        if wanted is None:
            return POISON
        if isinstance(thing, int | float):
            return self.number(thing, wanted, target.span)
        if not isinstance(thing, Value) or thing.type != wanted:
            raise Fault(f"{target.name} is declared {wanted}, got {describe(thing)}")
        return thing

    def _bind_member(self, target: tree.Target, thing: Thing) -> None:
        holder = self.lookup(target.name)
        *inner, last = target.subs
        for sub in inner:
            holder = self.sub(holder, sub)
        if isinstance(holder, Poison):
            return
        if not (
            isinstance(holder, Record) and holder.kind == "cache" and isinstance(last, tree.Member)
        ):
            raise Fault(f"a name or a cache's member is needed, as in c.k; got {describe(holder)}")
        old = self.sub(holder, last)
        if isinstance(thing, Value) and isinstance(old, Value):
            if thing.type != old.type:
                raise Fault(f"{holder.name}.{last.name} is {old.type}, got {thing.type}")
            self.trace.name(thing, f"{holder.path}.{last.name}", whole=True)
        elif not isinstance(thing, Poison) and not isinstance(old, Poison):
            raise Fault(f"{holder.name}.{last.name} needs a cache, got {describe(thing)}")
        holder.members[last.name] = thing if isinstance(thing, Value) else POISON
