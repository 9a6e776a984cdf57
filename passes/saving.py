"""What a fused function saves against its ops run apart: launches, and bytes moved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compiler.graph import Function, Node, Value
from compiler.ops import OPS, load
from compiler.types import nbytes


@dataclass(frozen=True)
class Saving:
    """Kernels less, and bytes of memory moved less, where T and R are 1."""

    launches: int
    bytes: int

    def __str__(self) -> str:
        launches = f"{self.launches} launch{'es' if self.launches != 1 else ''}"
        return f"saves {launches} and {self.bytes} bytes a row"


def saving(fn: Function) -> Saving:
    load()
    ops = [n for n in fn.body if n.op in OPS and "view" not in OPS[n.op].traits]
    apart = sum(_bytes((*dict.fromkeys(n.operands), *_results(n))) for n in ops)
    fused = _bytes(p.result() for p in fn.params) + _bytes(fn.results)
    return Saving(len(ops) - 1, apart - fused)


def _results(n: Node) -> list[Value]:
    return [n.result(i) for i in range(len(n.types))]


def _bytes(values: Iterable[Value]) -> int:
    return sum(nbytes(v.type) for v in values if v.node.op != "const")
