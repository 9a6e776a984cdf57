"""Calls of a program: ops, defs expanded in place, and what the checkpoint says."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from compiler.graph import Value
from compiler.program import Metadata, MetaValue
from frontend import checkpoint, tree
from frontend.places import Places
from frontend.things import POISON, Fault, Thing, describe, nearest
from frontend.trace import Level

MAX_DEFS = 40  # of defs that call defs
META = ("meta", "shape")


class Calls(Places):
    """What stands before the ( of a call."""

    def __init__(self, file: str, metadata: Metadata | None) -> None:
        super().__init__(file)
        self.metadata = metadata
        self.read_meta: dict[str, MetaValue | None] = {}
        self.defs: dict[str, tuple[tree.Def, str]] = {}  # with the file of each
        self.prelude: dict[str, tuple[tree.Def, str]] = {}

    @abstractmethod
    def block(self, block: tree.Block) -> None:
        """Run a def's body."""

    def callable(self) -> dict[str, tuple[tree.Def, str]]:
        mine = self.defs if self.trace.level.file == self.file else {}
        return {**self.prelude, **mine}

    def call(self, path: tree.Path) -> Thing:
        assert path.args is not None
        defs = self.callable()
        if path.name in META:
            return self._meta(path.name, path.args)
        if path.name in defs:
            return self._expand(*defs[path.name], path)
        return self.call_op(path, [*defs, *META])

    def need_metadata(self, what: str) -> Metadata:
        if self.metadata is None:
            raise Fault(f"a checkpoint is needed for {what}, got none")
        return self.metadata

    def _meta(self, name: str, args: Sequence[tree.Arg]) -> Thing:
        """`meta(key[, default])`, the default evaluated only if needed; `shape(name, axis)`."""
        metadata = self.need_metadata(f"{name}(...)")
        if not 1 <= len(args) <= 2 or any(a.name for a in args):
            needs = 'meta("key") or meta("key", default)' if name == "meta" else 'shape("name", 0)'
            raise Fault(f"{needs} is needed")
        key = self.thing(args[0].value)
        if not isinstance(key, str):
            raise Fault(f"{name} needs a name in quotes, got {describe(key)}", args[0].span)
        if name == "shape":
            index = self.integer(args[1].value, "an axis") if len(args) == 2 else 0
            return POISON if index is None else checkpoint.axis(metadata, key, index)
        self.read_meta[key] = metadata.meta.get(key)
        value = checkpoint.meta(metadata, key)
        if value is not None:
            return value
        if len(args) == 1:
            raise checkpoint.lacking_key(metadata, key)
        return self.thing(args[1].value)

    def _expand(self, made: tree.Def, file: str, path: tree.Path) -> Thing:
        """A def's body with its arguments, in place."""
        chain = [level.name for level in self.trace.levels if level.name]
        if made.name in chain:
            loop = " calls ".join([*chain[chain.index(made.name) :], made.name])
            raise Fault(f"defs are expanded in place, so recursion is refused: {loop}")
        if len(chain) == MAX_DEFS:
            raise Fault(f"defs call defs at most {MAX_DEFS} deep")
        scope = self._arguments(made, path)
        level = Level(made.name, scope, made.span, file)
        for param in made.params:
            if param.name not in scope and param.default is not None:
                scope[param.name] = self._default(level, param.default)
        self.trace.levels.append(level)
        try:
            self.block(made.body)
        finally:
            self.trace.levels.pop()
        return self._returned(made, level, path)

    def _default(self, level: Level, default: tree.Expr) -> Thing:
        """A default sees the def's file, not the caller."""
        self.trace.levels.append(Level(level.name, {}, default.span, level.file))
        try:
            return self.thing(default)
        finally:
            self.trace.levels.pop()

    def _returned(self, made: tree.Def, level: Level, path: tree.Path) -> Thing:
        if level.result is None:
            notes = [(made.span if made.span.file == self.file else None, f"{made.name} is here")]
            raise Fault(f"{made.name} needs a return, its value is asked for", path.span, notes)
        if isinstance(level.result, Value):
            self.trace.suggest(level.result, self.trace.prefix() + made.name)
        return level.result

    def _arguments(self, made: tree.Def, path: tree.Path) -> dict[str, Thing]:
        """A def's scope from the call's arguments; Fault on too many, unknown or lacking ones."""
        assert path.args is not None
        names = [p.name for p in made.params]
        takes = f"{made.name} takes {', '.join(names) or 'nothing'}"
        scope: dict[str, Thing] = {}
        free = list(names)
        for given in self.given(path.args):
            name = given.name or next((n for n in free if n not in scope), None)
            if name is None:
                raise Fault(f"{takes}; got one argument more", given.span)
            if name not in names:
                raise Fault(f"{takes}; got {name}={nearest(name, names)}", given.span)
            if name in scope:
                raise Fault(f"{takes}; got {name} twice", given.span)
            scope[name] = given.thing
        for param in made.params:
            if param.name not in scope and param.default is None:
                raise Fault(f"{takes}; {param.name} is not given")
        return scope
