"""What a kernel provider hands to the plan: a kernel as data, and how one node launches it.

A provider is a file `codegen/kernels/<op>.py` (or `<function kind>.py` with `_` for `-`) with one
function `plan(node, context) -> Launch`. It checks every limit and refuses by `Refusal`, naming op
and limit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.graph import Function, Node, Value
from compiler.target import Options, Target


class Refusal(Exception):
    """A node that this target cannot compute, with the reason; the plan lists them all at once."""


@dataclass(frozen=True)
class Param:
    """One parameter of the emitted kernel: its C++ type and its name."""

    ctype: str
    name: str


@dataclass(frozen=True)
class Kernel:
    """One emitted `__global__` function, rendered once from its template however often it is
    launched.

    template: a file under codegen/templates/kernels; base: what it computes, the name that the plan
    makes unique;
    templates: C++ template parameters ("int N", "class W"); params: in order; fields: what the
    template needs beside, hashable; sizes are template arguments, so that one text serves several
    shapes.
    """

    template: str
    base: str
    templates: tuple[str, ...]
    params: tuple[Param, ...]
    fields: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True)
class Arg:
    """One argument of a launch.

    kind: "value" (an activation: a read or a written buffer), "weight", "cache", "rows" (the Step
    table).
    """

    kind: str
    value: Value
    writes: bool = False


@dataclass(frozen=True)
class Grid:
    """Blocks of a launch as expressions that are both C++ and Python: `rows`, `wanted` (the
    bucket's counts), `pages` (as many as a row attends to, or more), ceil_div."""

    x: str
    y: str = "1"
    z: str = "1"


@dataclass(frozen=True)
class Launch:
    """One launch of a node's kernel.

    arguments: C++ template arguments, as text; `ROWS` or `WANTED` stand for the form's row group
    (1, 4 or 8; ROWS also 64 and 128 where a launch has `many`), `FEW` for ROWS, at most 8. grid,
    threads, shared (bytes; an expression, may use ROWS/WANTED): the launch shape.
    in_place: operand values whose buffer a result of the same size may take over (each element is
    read by the thread that writes it, before it writes).
    one: what a step of one row launches in the place of this launch and the one before it.
    """

    kernel: Kernel
    arguments: tuple[str, ...]
    args: tuple[Arg, ...]
    grid: Grid
    threads: str
    shared: str = "0"
    in_place: tuple[Value, ...] = ()
    many: bool = False
    one: Launch | None = None

    @property
    def every_arg(self) -> tuple[Arg, ...]:
        """Its arguments, and those that only a step of one row has."""
        return tuple(dict.fromkeys((*self.args, *(self.one.args if self.one else ()))))


@dataclass(frozen=True)
class Context:
    """What a provider may look at; `first_call` of each fused function gives its kernel the
    names. on_request: a model's logits, stored where the step says so alone, if no launch reads
    them."""

    target: Target
    options: Options
    names: dict[Value, str] = field(default_factory=dict[Value, str])
    first_call: dict[Function, Node] = field(default_factory=dict[Function, Node])
    on_request: frozenset[Value] = frozenset()

    def namesake(self, node: Node) -> Node:
        """The node after whose values the kernel of `node` names its parameters: one for all equal
        layers."""
        return self.first_call.setdefault(node.function, node) if node.op == "call" else node
