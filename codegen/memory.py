"""Places buffers in one allocation: a slot a canonical value, slots share memory where their
lifetimes are apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codegen.roll import Item, Loop, carried

ALIGN = 256  # bytes; also keeps 16-byte loads aligned

Slot = tuple[int, int]  # (launch of iteration 0, result); inputs have launch -1 - index


@dataclass(frozen=True)
class Lifetime:
    """A slot's use, in positions of the rolled list: prologue, one body, what follows."""

    slot: Slot
    first: int
    last: int
    nbytes: int


def canonical(launch: int, rolled: Sequence[Loop]) -> int:
    """The launch of iteration 0 that stands for `launch`."""
    return next((loop.first(launch) for loop in rolled if launch in loop), launch)


def joined(items: Sequence[Item], rolled: Sequence[Loop]) -> dict[Slot, Slot]:
    """Entry values share the slot of the value that iterations hand on: entry slot -> that slot."""
    out: dict[Slot, Slot] = {}
    for loop in rolled:
        for (launch, result), maker in carried(items, loop).items():
            out[canonical(launch, rolled), result] = maker
    return out


def slot_of(launch: int, result: int, rolled: Sequence[Loop], join: Mapping[Slot, Slot]) -> Slot:
    slot = (canonical(launch, rolled), result)
    while slot in join:
        slot = join[slot]
    return slot


def lifetimes(
    items: Sequence[Item],
    rolled: Sequence[Loop],
    sizes: Mapping[Slot, int],
    kept: Sequence[Slot],
) -> tuple[Lifetime, ...]:
    """First and last position of each slot; `kept` slots (inputs, results) live from start to
    end."""
    join = joined(items, rolled)
    spans: dict[Slot, list[int]] = {}

    def touch(slot: Slot, *positions: int) -> None:
        spans.setdefault(slot, []).extend(positions)

    for launch, item in enumerate(items):
        here = next((loop for loop in rolled if launch in loop), None)
        for ref in item.refs:
            if ref.kind != "value":
                continue
            slot = slot_of(ref.a, ref.b, rolled, join)
            touch(slot, canonical(launch, rolled), canonical(ref.a, rolled))
            apart = here is not None and (
                ref.a not in here or here.iteration(ref.a) != here.iteration(launch)
            )
            if apart and not ref.writes and here is not None:
                touch(slot, here.start, here.start + here.period - 1)
            source = next((loop for loop in rolled if ref.a in loop), None)
            if source is not None and launch not in source:
                touch(slot, source.start + source.period - 1)
    for slot in kept:
        touch(slot_of(*slot, rolled, join), 0, len(items))
    need: dict[Slot, int] = {}
    for slot, nbytes in sizes.items():
        owner = slot_of(*slot, rolled, join)
        need[owner] = max(need.get(owner, 0), nbytes)
    return tuple(Lifetime(s, min(p), max(p), need[s]) for s, p in spans.items())


def _room(life: Lifetime, gap: int) -> int:
    return -(-max(1, life.nbytes) // ALIGN) * ALIGN + gap


def place(lives: Sequence[Lifetime], reuse: bool, gap: int = 0) -> tuple[dict[Slot, int], int]:
    """Byte offsets of the slots and the allocation's size: the largest first, each at the lowest
    free place; `gap` bytes are free behind each."""
    offsets: dict[Slot, int] = {}
    placed: list[tuple[Lifetime, int]] = []
    total = 0
    for life in sorted(lives, key=lambda x: (-x.nbytes, x.first, x.slot)):
        nbytes = _room(life, gap)
        taken = sorted(
            (at, at + _room(other, gap))
            for other, at in placed
            if not reuse or (other.first <= life.last and life.first <= other.last)
        )
        at = 0
        for low, high in taken:
            if at + nbytes <= low:
                break
            at = max(at, high)
        offsets[life.slot] = at
        placed.append((life, at))
        total = max(total, at + nbytes)
    return offsets, total
