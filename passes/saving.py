"""What nodes move through memory and what a fused function saves against its ops run apart.

Bytes are computed from what the ops' records say, not measured: what a kernel reads twice counts
once, what caches would catch counts whole.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from compiler.graph import LEAVES, Function, Node, Value
from compiler.ops import get
from compiler.types import Type, nbytes


@dataclass(frozen=True)
class Saving:
    """Kernels less, and bytes of memory moved less, in a step of so many rows."""

    launches: int
    bytes: int

    def __str__(self) -> str:
        launches = f"{self.launches} launch{'es' if self.launches != 1 else ''}"
        return f"saves {launches} and {self.bytes} bytes a row"


def moved(n: Node, rows: int = 1) -> int:
    """Bytes that an op or a fused call reads and writes in a step of `rows` rows, one wanted."""
    if n.op != "call":
        return _moved_by_op(n, rows)
    apart = sum(_moved_by_op(member, rows) for member in n.function.body)
    return apart - saving(n.function, rows).bytes


def _moved_by_op(n: Node, rows: int) -> int:
    """What its record says; constants and an operand that it has twice do not count."""
    ins = [_sized(v.type, rows) for v in n.operands]
    outs = [_sized(t, rows) for t in n.types]
    again = {v: count - (v.node.op != "const") for v, count in Counter(n.operands).items()}
    not_read = sum(count * nbytes(_sized(v.type, rows)) for v, count in again.items())
    return get(n.op).bytes(ins, outs) - not_read if not _is_view(n) else 0


def saving(fn: Function, rows: int = 1) -> Saving:
    """All launches but one; what members read of each other, and again; what none outside reads."""
    members = [n for n in fn.body if not _is_view(n)]
    results = {_seen(v) for v in fn.results}
    readers = Counter(v for n in members for v in {_seen(v) for v in n.operands})
    spared = {
        v: count - 1 if v.node.op == "param" else count + (v not in results)
        for v, count in readers.items()
        if v.node.op != "const"
    }
    total = sum(count * nbytes(_sized(v.type, rows)) for v, count in spared.items())
    return Saving(len(members) - 1, total)


def _seen(v: Value) -> Value:
    """The value whose memory a view shows."""
    while _is_view(v.node):
        v = v.node.operands[0]
    return v


def _is_view(n: Node) -> bool:
    return n.op not in ("call", *LEAVES) and "view" in get(n.op).traits


def _sized(t: Type, rows: int) -> Type:
    counts = {"T": rows, "R": 1}
    return t.with_shape(*(counts.get(d, d) if isinstance(d, str) else d for d in t.shape))
