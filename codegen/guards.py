"""Guards of a sanitizer build: bytes between buffers, weights and caches that nobody may touch, and
which of the buffers' bytes each launch may. AddressSanitizer is told of them by the host runtime.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codegen.families import tile_bytes
from compiler.target import Options
from compiler.types import DYNAMIC, Type, nbytes, size

if TYPE_CHECKING:
    from codegen.plan import Buffer, Plan

GAP = 256  # bytes behind each array, which keep the next one's alignment
CACHE_GAP = 16  # the same behind each cache, a position of a sequence


@dataclass(frozen=True)
class Span:
    """Bytes of the buffers that launches `first` to `last` may touch.

    nbytes: of all rows together, or of each row of what `lead` counts: -1 is T, -2 is R, 0 none.
    """

    name: str
    offset: int
    nbytes: int
    lead: int
    first: int
    last: int


def gap(options: Options) -> int:
    return GAP if options.guard else 0


def part_gap(options: Options) -> int:
    """Between the parts of a quantized value; a dump reads them where they are without."""
    return 0 if options.dump else gap(options)


def cache_gap(options: Options) -> int:
    return CACHE_GAP if options.guard else 0


def parts(options: Options, type_: Type) -> list[tuple[int, int]]:
    """(offset, bytes) of each array of a value of such a type, at its largest."""
    rows, wanted = options.max_rows, _wanted(options)
    words = {"q8": 1, "q8x2": 2}.get(type_.dtype)
    if not words:
        return [(0, nbytes(type_, rows, wanted))]
    count = size(type_.shape, rows, wanted)
    out: list[tuple[int, int]] = []
    at = 0
    for part in (*(count,) * words, count // 8, count // 8):
        out.append((at, part))
        at += -(-part // GAP) * GAP + part_gap(options)
    return out


def spans(plan: Plan) -> tuple[Span, ...]:
    """What launches may touch of the buffers."""
    return tuple(span for at in range(len(plan.buffers)) for span in _spans(plan, at))


def _spans(plan: Plan, index: int) -> list[Span]:
    b = plan.buffers[index]
    if index not in plan.buffer_of.values():  # an input's tiles
        return [_span(b, b.offset, tile_bytes(b.values[-1].type), 0)]
    out: dict[Span, None] = {}
    for type_ in dict.fromkeys(v.type for v in b.values):
        lead = type_.shape[0] if type_.shape else 0
        number = -1 - DYNAMIC.index(lead) if isinstance(lead, str) else 0
        most = size((lead,), plan.options.max_rows, _wanted(plan.options)) if number else 1
        for at, part in parts(plan.options, type_):
            out[_span(b, b.offset + at, part // most, number)] = None
    return list(out)


def _span(b: Buffer, offset: int, nbytes_: int, lead: int) -> Span:
    return Span(b.name, offset, nbytes_, lead, b.first, b.last)


def _wanted(options: Options) -> int:
    return min(options.max_seqs, options.max_rows)
