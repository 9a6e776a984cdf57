"""How each op may be called, learned from its own samples: operand types whose sizes are letters.

Nothing here names an op: a new one is drawn as soon as its record has samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from compiler.graph import Attr, Node
from compiler.ops import load
from compiler.types import Dim, Type
from frontend.elaborate import elaborate


@dataclass(frozen=True)
class Slot:
    """An operand: dtype, and each dim as 1 or as a letter that stands for any size."""

    dtype: str
    dims: tuple[Dim, ...]

    def match(self, type_: Type, sizes: dict[str, Dim]) -> dict[str, Dim] | None:
        """The letters' sizes with which this slot takes a value of the type; None if it cannot."""
        if type_.dtype != self.dtype or type_.rank != len(self.dims):
            return None
        out = dict(sizes)
        for letter, dim in zip(self.dims, type_.shape, strict=True):
            if isinstance(letter, int):
                if letter != dim:
                    return None
            elif out.setdefault(letter, dim) != dim:
                return None
        return out


@dataclass(frozen=True)
class Pattern:
    """One form of an op's call: operands, and the sample's attributes to start from."""

    op: str
    slots: tuple[Slot, ...]
    attrs: tuple[tuple[str, Attr], ...]


@cache
def patterns() -> dict[str, tuple[Pattern, ...]]:
    """Every op's patterns, each once."""
    found: dict[str, dict[Pattern, None]] = {name: {} for name in load()}
    for op in load().values():
        for text in op.samples:
            for n in elaborate(text, "sample.model").graph.nodes():
                if n.op in found:
                    found[n.op].setdefault(pattern_of(n))
    return {name: tuple(table) for name, table in found.items()}


def pattern_of(n: Node) -> Pattern:
    """A call with its sizes as letters: equal sizes are one letter; 1 stays 1, which broadcasts."""
    letters: dict[int, str] = {}

    def letter(dim: Dim) -> Dim:
        assert isinstance(dim, int)
        return 1 if dim == 1 else letters.setdefault(dim, chr(ord("a") + len(letters)))

    slots = tuple(Slot(v.type.dtype, tuple(map(letter, v.type.shape))) for v in n.operands)
    attrs = tuple((name, n.attr(name)) for name, _ in n.attrs)
    return Pattern(n.op, slots, attrs)
