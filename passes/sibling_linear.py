"""sibling-linear: projections of one activation are one kernel, side by side, of any formats.

Each may have an epilogue, `* r` (one factor a row) and then `+ b` (one bias an output); with one a
projection alone is such a kernel too.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from compiler.graph import Graph, Node, Value
from compiler.types import Dim
from passes.context import Context
from passes.outline import Units, outline


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    groups: dict[Value, list[list[Node]]] = {}
    for n in units.order:
        if n.op != "linear" or len(n.operands) != 2:
            continue
        member = [n, *epilogue(units, n, context.options.dump)]
        siblings = groups.setdefault(n.operands[0], [])
        for group in siblings:
            if _independent(group, member) and units.join((*group, *member)):
                group += member
                break
        else:
            units.join(member)
            siblings.append(member)
    for unit in units.fused():
        take_factors(units, unit)
    return outline(units, "sibling-linear", context, store_named=False)


def take_factors(units: Units, unit: Set[Node], shape: tuple[Dim, ...] | None = None) -> None:
    """A norm's factor that this unit alone reads joins it: each block folds the square sums itself.

    shape: only factors of that shape.
    """
    values = [v for n in unit if n.op == "mul" for v in n.operands]
    factors = {
        v.node for v in values if v.node.op == "root_factor" and shape in (None, v.type.shape)
    }
    for factor in sorted(factors, key=units.order.__getitem__):
        if not units.read_outside(factor.result(), unit):
            units.join((*unit, factor))


def epilogue(units: Units, linear: Node, keep_named: bool) -> list[Node]:
    """The `* r` and `+ b` that alone read a projection; what --dump wants to see stays apart."""
    steps: list[Node] = []
    out = linear.types[0].shape
    at = linear.result()
    for op, shape in (("mul", (*out[:-1], 1)), ("add", out[-1:])):
        reader = units.only_reader(at)
        if reader is None or reader.op != op or (keep_named and units.graph.name(at)):
            continue
        others = [v for v in reader.operands if v != at]
        if len(others) == 1 and others[0].type.shape == shape and reader.types[0].shape == out:
            steps.append(reader)
            at = reader.result()
    return steps


def _independent(group: Sequence[Node], member: Sequence[Node]) -> bool:
    """Whether neither reads what the other makes; the units refuse ways through other nodes."""
    return not any(
        v.node in there
        for here, there in ((group, member), (member, group))
        for n in here
        for v in n.operands
    )
