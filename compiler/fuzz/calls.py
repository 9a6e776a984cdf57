"""A random call of any op: a pattern of its samples, other sizes, operands of the program so far.

The op's `infer` is the judge: what it refuses is drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from compiler.fuzz import draw
from compiler.fuzz.builder import Builder
from compiler.fuzz.patterns import Pattern, Slot, patterns
from compiler.graph import Attr, Value
from compiler.ops import OPS, OpError, Param
from compiler.types import ACTIVATIONS, BLOCKS, CACHES, FLOATS, INTEGERS, Dim, Type, whole

Sizes = dict[str, Dim]
DRAWS, ATTRS = 6, 6  # of operands, and of attributes for each of these


def random_call(b: Builder, name: str) -> bool:
    """Adds a call of the op to the program; False where no draw fitted."""
    forms = patterns()[name]
    for _ in range(DRAWS if forms else 0):
        pattern = b.rng.choice(forms)
        before = b.state()
        operands = _try_operands(b, pattern)
        for _ in range(ATTRS if operands is not None else 0):
            assert operands is not None
            try:
                b.put(*b.call(name, operands, _attrs(b, pattern, operands)))
            except (OpError, TypeError):
                continue
            return True
        b.restore(before)
    return False


def _try_operands(b: Builder, pattern: Pattern) -> list[Value] | None:
    try:
        return _operands(b, pattern)
    except OpError:
        return None


def _operands(b: Builder, pattern: Pattern) -> list[Value] | None:
    """Values for the slots: rows and what the pool has come first, since they fix the sizes."""
    sizes: Sizes = {}
    found: dict[int, Value] = {}
    turns = [(_turn(slot), b.rng.random(), at) for at, slot in enumerate(pattern.slots)]
    _group(b, pattern, sizes)
    for _, _, at in sorted(turns):
        slot = pattern.slots[at]
        value = _from_pool(b, pattern, slot, sizes) or _fresh(b, pattern, slot, sizes)
        matched = slot.match(value.type, sizes) if value else None
        if value is None or matched is None:
            return None
        sizes.update(matched)
        found[at] = value
    return [found[at] for at in range(len(pattern.slots))]


def _turn(slot: Slot) -> int:
    """Rows first; caches last, so that their entries fit what meets them."""
    return 0 if slot.dtype == "rows" else 2 if slot.dtype in CACHES else 1


def _group(b: Builder, pattern: Pattern, sizes: Sizes) -> None:
    """Letters of axes in blocks are whole ones; now and then chosen before anything else."""
    for slot in pattern.slots:
        letter = slot.dims[-1] if slot.dtype in (*BLOCKS, *ACTIVATIONS) else 1
        if isinstance(letter, str) and b.chance(0.3):
            sizes.setdefault(letter, b.width(_grouped(pattern)[letter]))


def _grouped(pattern: Pattern) -> dict[Dim, int]:
    """The letters of axes in blocks, and what they are a multiple of."""
    found: dict[Dim, int] = {}
    for slot in pattern.slots:
        if slot.dtype in (*BLOCKS, *ACTIVATIONS):
            found[slot.dims[-1]] = max(found.get(slot.dims[-1], 1), whole(slot.dtype))
    return found


def _from_pool(b: Builder, pattern: Pattern, slot: Slot, sizes: Sizes) -> Value | None:
    if slot.dtype == "rows":
        return b.step_rows
    values = list(b.versions.values()) if slot.dtype in CACHES else b.pool
    grouped = _grouped(pattern)
    pairs = [(v, slot.match(v.type, sizes)) for v in values]
    fits = [v for v, found in pairs if found is not None and _whole(found, grouped)]
    limit = _index_limit(b, pattern, slot, sizes)
    if limit is not None:
        fits = [v for v in fits if 0 < b.bounds.get(v, 0) <= limit]
    return b.pick(fits) if fits and b.chance(0.85) else None


def _whole(sizes: Sizes, grouped: dict[Dim, int]) -> bool:
    there = [(sizes.get(str(g), each), each) for g, each in grouped.items()]
    return all(isinstance(d, int) and d % each == 0 for d, each in there)


def _index_limit(b: Builder, pattern: Pattern, slot: Slot, sizes: Sizes) -> int | None:
    """What an integer operand of an op that reads a weight must stay below: its outermost axis."""
    if slot.dtype not in INTEGERS or "weight" not in OPS[pattern.op].traits:
        return None
    table = [s for s in pattern.slots if s.dtype not in INTEGERS][-1]
    first = table.dims[0]
    limit = first if isinstance(first, int) else sizes.setdefault(first, b.rng.choice(draw.COUNTS))
    return limit if isinstance(limit, int) else 1


def _fresh(b: Builder, pattern: Pattern, slot: Slot, sizes: Sizes) -> Value | None:
    """A leaf of the slot's form; None for what no leaf can be."""
    if slot.dtype == "f32" and not slot.dims and b.chance(0.8):
        return b.scalar()
    grouped = _grouped(pattern)
    shape = [_dim(b, pattern, slot, at, sizes, grouped) for at in range(len(slot.dims))]
    if slot.dtype in CACHES:
        entry = [d for d in shape if isinstance(d, int)]
        return b.cache(*entry) if len(entry) == 2 else None
    if slot.dtype in ACTIVATIONS:
        x = b.input("f32", *shape)
        return b.op("quantize", x, words=1 if slot.dtype == "q8" else 2)
    limit = _index_limit(b, pattern, slot, sizes)
    return b.input(slot.dtype, *shape, bound=limit or 0)


def _dim(
    b: Builder, pattern: Pattern, slot: Slot, at: int, sizes: Sizes, grouped: dict[Dim, int]
) -> Dim:
    letter = slot.dims[at]
    if isinstance(letter, int) or letter in sizes:
        return letter if isinstance(letter, int) else sizes[letter]
    last = at == len(slot.dims) - 1
    if letter in grouped:
        drawn: Dim = b.width(grouped[letter])
    elif at == 0 and not last and slot.dtype not in (*BLOCKS, *CACHES) and b.chance(0.8):
        drawn = b.rows
    elif slot.dtype in CACHES or len(slot.dims) == 3:
        drawn = b.rng.choice(draw.HEAD_DIMS if last else draw.HEADS)
    else:
        drawn = b.width(1) if last or b.chance(0.3) else b.rng.choice(draw.COUNTS)
    sizes[letter] = drawn
    return drawn


def _attrs(b: Builder, pattern: Pattern, operands: Sequence[Value]) -> dict[str, Attr]:
    params = {p.name: p for p in OPS[pattern.op].params if not p.is_operand}
    return {name: _attr(b, params[name], start, operands) for name, start in pattern.attrs}


def _attr(b: Builder, param: Param, start: Attr, operands: Sequence[Value]) -> Attr:
    if param.variadic:
        return _regrouped(b, operands[0].type)
    if param.kind == "dtype":
        return b.rng.choice((*FLOATS, *INTEGERS, "f32"))
    if b.chance(0.4):
        return start
    if param.kind == "real":
        return b.rng.choice((1e-6, 1e-5, 0.5, 1.0, 2.0, 10000.0, 1e6))
    dims = [d for v in operands for d in v.type.shape if isinstance(d, int)] or [1]
    dim = b.rng.choice(dims)
    divisors = [d for d in range(1, min(dim, 65) + 1) if dim % d == 0]
    near = (-2, -1, 0, 1, 2, dim, dim - 1, dim // 2, b.rng.randrange(dim), b.rng.choice(divisors))
    return b.rng.choice(near)


def _regrouped(b: Builder, type_: Type) -> Attr:
    """Another shape of as many elements; T or R stays the first axis."""
    lead = [d for d in type_.shape[:1] if isinstance(d, str)]
    rest = prod(d for d in type_.shape if isinstance(d, int))
    out: list[Dim] = [*lead]
    while rest > 1 and len(out) < 3:
        divisors = [d for d in range(1, min(rest, 256) + 1) if rest % d == 0]
        out.append(b.rng.choice(divisors))
        rest //= int(out[-1])
    return tuple([*out, rest] if rest > 1 or len(out) == len(lead) else out)  # type: ignore[return-value]
