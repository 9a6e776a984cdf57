"""A program as elaboration hands it on: the graph, what feeds it, and what the checkpoint told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from compiler.graph import Graph
from compiler.types import Type

MetaValue = int | float | str | bool | list["MetaValue"]
Literal = int | float | tuple["Literal", ...]


@dataclass(frozen=True)
class Metadata:
    """What elaboration may know of a checkpoint: keys, and each tensor's type.

    A type that monocu does not compute with is its name.
    """

    path: str
    meta: Mapping[str, MetaValue]
    tensors: Mapping[str, Type | str]


@dataclass(frozen=True)
class Input:
    """One input of an op program; `value`: a scalar or nested tuples; None is the default pattern.

    The pattern is ((p % 7) - 3) * 0.5 over the flat index p, (p % 7) - 3 for integers; rows count
    one sequence 0, 1, 2...
    """

    name: str
    type: Type
    value: Literal | None = None


@dataclass(frozen=True)
class Program:
    """An elaborated program.

    name: the file's stem. is_model: it has a `forward`, driven by tokens; else an op program.
    inputs: declared inputs ("token" and "rows" of a model are not among them).
    context_length: the trained length in tokens where the checkpoint says it.
    meta: what it has read of the checkpoint's metadata; None of a key that is absent.
    """

    name: str
    graph: Graph
    inputs: tuple[Input, ...] = ()
    is_model: bool = False
    context_length: int | None = None
    meta: Mapping[str, MetaValue | None] = field(default_factory=dict[str, "MetaValue | None"])

    def with_graph(self, graph: Graph) -> Program:
        return replace(self, graph=graph)
