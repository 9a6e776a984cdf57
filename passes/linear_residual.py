"""linear-residual: a projection, the sum that it ends in, and where the next norm is taken by
groups, that too.

The sum stays available; behind it the product with the next norm's weight is quantized and the
squares are summed, both for 32 outputs at a time, so that no block needs another's.

That is the form of the next norm that pays. The norm's factor needs all outputs of a row, which
many blocks make: the last block to arrive, or a barrier of all (1.0 us on an H200), would stand on
decode's critical path, as the norm's own launch would (1.3 us each). A norm's factor commutes with
the projections that read it, so lower-numerics puts it behind their dots, and each reader's block
folds the n / 32 sums (128 floats for 4,096) while its weights are on their way. Where a norm is
read in another way (f32 numerics, a norm that is a residual's addend) it is a launch of its own.
"""

from __future__ import annotations

from compiler.graph import Graph, Node, Value
from compiler.types import GROUP
from passes.context import Context
from passes.outline import Units, outline
from passes.rows import is_sum
from passes.sibling_linear import epilogue, take_factors


def run(graph: Graph, context: Context) -> Graph:
    units = Units(graph)
    for n in units.order:
        if n.op != "linear" or len(n.operands) != 2 or len(units.of(n)) > 1:
            continue
        steps = epilogue(units, n, context.options.dump)
        last = (steps or [n])[-1].result()
        total = units.only_reader(last)
        if total is None or not is_sum(total) or len(units.of(total)) > 1:
            continue
        if units.join((n, *steps, total)):
            units.join((total, *norm_by_groups(units, total.result())))
            take_factors(units, units.of(total))
    return outline(units, "linear-residual", context)


def norm_by_groups(units: Units, x: Value) -> list[Node]:
    """What a norm behind `x` leaves for its readers, where all of it is made for 32 values at once.

    quantize(x [* w]) and square_sums(x); x * w itself is a result where a router reads it.
    """
    width = x.type.shape[-1]
    if not isinstance(width, int) or width % GROUP:
        return []
    readers = units.readers(x)
    squares = [n for n in readers if n.op == "square_sums"]
    words = [n for n in readers if n.op == "quantize"]
    for n in readers:
        if n.op == "mul" and n.operands[0] == x and n.operands[1].type.shape == x.type.shape[-1:]:
            quantizes = [q for q in units.readers(n.result()) if q.op == "quantize"]
            words += [n, *quantizes] if quantizes else []
    found = [*squares, *words]
    return found if squares and words and all(len(units.of(n)) == 1 for n in found) else []
