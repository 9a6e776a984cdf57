"""Declarations of a program: dim, real, weight, cache, input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.diagnostics import CHECKPOINT, Span
from compiler.graph import Frame, Value, leaf
from compiler.program import Input, Literal, Metadata
from compiler.types import BLOCKS, ELEMENT_BYTES, Dim, Type, whole
from frontend import checkpoint, tree
from frontend.inputs import scalar, values_of
from frontend.statements import Statements
from frontend.things import POISON, Absent, Fault, Group, Poison, Record, Thing, describe

MAX_COUNT = 4096  # records of a group
Member = Value | Absent | Poison
Members = dict[str, Sequence[Member]]  # by name, one a record
INPUTS = (*ELEMENT_BYTES, *BLOCKS, "rows")


@dataclass(frozen=True, slots=True)
class Layer:
    """Which record of a group is declared; `index` is None for a single tensor or cache."""

    group: str | None
    index: int | None

    @property
    def stem(self) -> str:
        """What a checkpoint's or cache's name starts with: `blk.3.`"""
        parts = [self.group] if self.group else []
        return "".join(f"{p}." for p in (*parts, *([] if self.index is None else [self.index])))

    @property
    def spelled(self) -> str:
        return f"{self.group}[{self.index}]" if self.index is not None else self.group or ""


class Declarations(Statements):
    """Binds what a file declares."""

    def __init__(self, file: str, metadata: Metadata | None, model: bool) -> None:
        super().__init__(file, metadata)
        self.model = model  # it has a forward
        self.inputs: list[Input] = []
        self.ignored: list[str] = []
        self.records: list[Record] = []  # of caches

    def declare(self, item: tree.Declaration) -> None:
        """One declaration; faults are reported."""
        self.trace.level.statement = item.span
        try:
            self._declare(item)
        except Fault as fault:
            self.report(fault, item.span)

    def _declare(self, item: tree.Declaration) -> None:
        match item:
            case tree.Constant():
                self.fix(item.name, item.span, self._constant(item))
            case tree.Weights(name=name):
                self._weights(name, item)
            case tree.Cache():
                self.fix(item.name, item.span, self._cache(item))
            case tree.Input():
                self._input(item)
            case tree.Ignore():
                self.ignored += item.names
            case tree.State():
                raise Fault(f"state is not there yet: {item.name} cannot be computed")
            case tree.Kernel():
                raise Fault("a def is needed: kernels stand in dumps of the compiler alone")
            case tree.Def():
                pass  # collected before

    def fix(self, name: str, span: Span, thing: Thing) -> None:
        """Declare a name that is not bound again."""
        self.check_free(name, span)
        self.globals[name] = thing
        self.fixed[name] = span

    def _constant(self, item: tree.Constant) -> Thing:
        thing = self.thing(item.value)
        if isinstance(thing, Poison):
            return thing
        if item.kind == "dim" and isinstance(thing, int):
            return thing
        if item.kind == "real" and isinstance(thing, int | float):
            return float(thing)
        needs = "an integer" if item.kind == "dim" else "a number"
        self.report(Fault(f"{item.kind} {item.name} needs {needs}, got {describe(thing)}"),
                    item.value.span)  # fmt: skip
        return POISON

    # groups

    def _layers(self, name: str, count: tree.Index | None) -> list[Layer] | None:
        """The records of a group; None, and a report, where their number is wrong."""
        if count is None:
            return [Layer(name, None)]
        if len(count.values) != 1:
            raise Fault(f"{name} needs one count, got {len(count.values)}", count.span)
        number = self.integer(count.values[0], "a count")
        if number is not None and not 0 <= number <= MAX_COUNT:
            raise Fault(f"a count of 0 to {MAX_COUNT} is needed, got {number}", count.span)
        return None if number is None else [Layer(name, i) for i in range(number)]

    def _group(
        self, kind: str, name: str, count: tree.Index | None, layers: Sequence[Layer],
        members: Members,
    ) -> Thing:  # fmt: skip
        records: list[Record] = []
        for at, layer in enumerate(layers):
            mine = {member: things[at] for member, things in members.items()}
            parts = [] if layer.index is None else [f"l{layer.index}"]
            path = ".".join([*parts, name] if kind == "cache" else parts)
            records.append(Record(layer.spelled, path, kind, mine))
        self.records += records if kind == "cache" else []
        return records[0] if count is None else Group(name, kind, tuple(records))

    def _leaf(self, value: Value, span: Span, layer: Layer, name: str) -> None:
        """Note where a leaf is declared and what it is called."""
        self.trace.add(value.node, (Frame(span, layer.index),))
        spelled = name if layer.index is None else f"l{layer.index}.{name}"
        self.trace.name(value, spelled, whole=True)

    def _leaves(
        self, items: Sequence[tree.Tensor | tree.Entry], layers: Sequence[Layer], members: Members,
        prefix: str,
    ) -> None:  # fmt: skip
        """Note a group's leaves, record by record; a fallback is noted where it is declared."""
        for at, layer in enumerate(layers):
            for item in items:
                value = members[item.name][at]
                if isinstance(value, Value) and value.node not in self.trace.origins:
                    self._leaf(value, item.span, layer, prefix + item.name)

    # weights

    def _weights(self, name: str | None, item: tree.Weights) -> None:
        """`weight output [V, D]` binds each tensor's name, `weight blk[L] { ... }` the group's."""
        layers = self._layers(name, item.count) if name else [Layer(None, None)]
        members: Members = {}
        if name and layers is None:
            return self.fix(name, item.span, POISON)
        assert layers is not None
        for tensor in item.tensors:
            if tensor.name in members:
                self.report(Fault(f"{name} has a member {tensor.name} already"), tensor.span)
            members[tensor.name] = self._tensor(tensor, layers, members)
            if name is None:
                self.fix(tensor.name, tensor.span, members[tensor.name][0])
        self._leaves(item.tensors, layers, members, "")
        if name is not None:
            self.fix(name, item.span, self._group("weight", name, item.count, layers, members))

    def _tensor(
        self, tensor: tree.Tensor, layers: Sequence[Layer], beside: Members
    ) -> Sequence[Member]:
        """One declared tensor of every layer. All layers' faults of a kind are one error."""
        self.trace.level.statement = tensor.span
        shape = self.shape(tensor.shape.values)
        out: list[Member] = []
        fallback = beside.get(tensor.fallback or "")
        faults: list[Fault] = []
        for at, layer in enumerate(layers):
            try:
                if shape is None:
                    raise Fault("reported")
                other = fallback[at] if fallback else None
                out.append(self._weight(tensor, layer, shape, other))
            except Fault as fault:
                faults += [fault] if shape is not None else []
                out.append(POISON)
        if faults:
            more = f" (and {len(faults) - 1} more like it)" if len(faults) > 1 else ""
            first = faults[0]
            self.report(
                Fault(first.message + more, first.span, first.notes, first.code), tensor.span
            )
        return out

    def _weight(
        self, tensor: tree.Tensor, layer: Layer, shape: Sequence[Dim], beside: Member | None
    ) -> Member:
        metadata = self.need_metadata(f"weight {tensor.name}")
        name = f"{layer.stem}{tensor.name}.weight"
        if tensor.source is not None:
            name = tensor.source.replace("{}", str(layer.index))
        found = checkpoint.weight(metadata, name, shape)
        if found is not None:
            return found
        if tensor.optional:
            return Absent(name)
        if tensor.fallback is None:
            raise checkpoint.lacking_tensor(metadata, name)
        other = beside if beside is not None else self.lookup(tensor.fallback)
        if isinstance(other, Absent):
            raise Fault(f"the checkpoint lacks {name} and {other.name}", code=CHECKPOINT)
        if not isinstance(other, Value | Poison):
            raise Fault(f"`or` needs a weight, got {describe(other)}")
        if isinstance(other, Value) and other.type.shape != tuple(shape):
            raise Fault(f"{tensor.name} needs {list(shape)}, {tensor.fallback} is {other.type}")
        return other

    # caches and inputs

    def _cache(self, item: tree.Cache) -> Thing:
        layers = self._layers(item.name, item.count)
        if layers is None:
            return POISON
        members: Members = {}
        for entry in item.entries:
            if entry.name in members:
                self.report(Fault(f"{item.name} has a member {entry.name} already"), entry.span)
            shape = self.shape(entry.shape.values)
            members[entry.name] = [self._entry(entry, layer, shape) for layer in layers]
        self._leaves(item.entries, layers, members, f"{item.name}.")
        return self._group("cache", item.name, item.count, layers, members)

    def _entry(self, entry: tree.Entry, layer: Layer, shape: tuple[Dim, ...] | None) -> Member:
        if shape is None:
            return POISON
        return leaf("cache", f"{layer.stem}{entry.name}", Type("cache_f32", shape))

    def _input(self, item: tree.Input) -> None:
        self.check_free(item.name, item.span)
        if self.model:
            raise Fault("a model's inputs are token and rows, which it does not declare")
        if item.name in self.globals:
            raise Fault(f"another name is needed: {item.name} is declared")
        self.globals[item.name] = POISON
        type_ = self.type(item.type, dynamic=False)
        if type_ is None:
            return
        if type_.dtype not in INPUTS:
            needs = f"an input is of one of {', '.join(INPUTS)}"
            raise Fault(f"{needs}; got {type_.dtype}", item.type.span)
        if type_.dtype in BLOCKS and (not type_.shape or int(type_.shape[-1]) % whole(type_.dtype)):
            needs = f"a last axis of a multiple of {whole(type_.dtype)}"
            raise Fault(f"{type_.dtype} needs {needs}", item.type.span)
        if type_.dtype == "rows" and type_.rank != 1:
            raise Fault(f"rows[n] is needed, got {type_}", item.type.span)
        value = leaf("input", item.name, type_)
        self._leaf(value, item.span, Layer(None, None), item.name)
        self.globals[item.name] = value
        self.inputs.append(Input(item.name, type_, self._literal(item, type_)))

    def _literal(self, item: tree.Input, type_: Type) -> Literal | None:
        if item.value is None:
            return None
        if isinstance(item.value, tree.Array):
            return values_of(item.value, type_)
        if type_.dtype == "rows":
            raise Fault(f"{type_} needs an array of [sequence, position]", item.value.span)
        thing = self.thing(item.value)
        if isinstance(thing, Poison):
            return None
        if not isinstance(thing, int | float):
            raise Fault(f"a number or an array is needed, got {describe(thing)}", item.value.span)
        return scalar(thing, type_, item.value)
