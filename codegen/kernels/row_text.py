"""Steps of a row kernel as CUDA text: loops over columns, reductions between them, stores where
values are made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from codegen.expr import ctype
from codegen.kernels.row_steps import Each, Group, Once, Step
from compiler.types import DYNAMIC, ROWS, Dim, Type

Item = list[Each] | Once | Group  # a loop over columns, or what happens between loops


@dataclass(frozen=True)
class Rows:
    """The kernel's surroundings: parameters and results by name with their types, and the shape
    that `row` counts.

    dropped: results whose last axis was reduced away. whole: one block has a whole row (else a
    chunk of it).
    """

    params: Mapping[str, Type]
    results: Mapping[str, Type]
    shape: tuple[Dim, ...]
    whole: bool
    dropped: frozenset[str] = frozenset()
    column: frozenset[str] = field(default_factory=frozenset[str])  # names with a value a column


def text(steps: Sequence[Step], rows: Rows) -> tuple[str, ...]:
    """The body of the kernel, after `row` and `at` (its first element) are there."""
    columns = _columns(steps, rows)
    rows = Rows(rows.params, rows.results, rows.shape, rows.whole, rows.dropped, columns)
    items = _items(steps, rows)
    kept = _kept(items, rows)
    out = _declarations(items, kept, rows) + _loads_once(steps, rows)
    loaded: set[str] = set()
    for item in items:
        out += _loop(item, kept, loaded, rows) if isinstance(item, list) else _single(item, rows)
    return tuple(out)


def read_first(body: Sequence[str], names: Iterable[str]) -> frozenset[str]:
    """Of parameters that are read at `at + d`: those of which a thread stores no result before it
    has read them."""
    first = next((at for at, line in enumerate(body) if "_out" in line), len(body))
    after = "\n".join(body[first:])
    return frozenset(n for n in names if not re.search(rf"\b{n}\[at \+ d\]", after))


def _columns(steps: Sequence[Step], rows: Rows) -> frozenset[str]:
    """Names that have one value a column; the others have one a row."""
    width = rows.shape[-1] if rows.shape else 1
    found = {n for n, t in rows.params.items() if (t.shape[-1] if t.shape else 1) == width != 1}
    if width == 1:
        found = {n for n, t in rows.params.items() if t.shape}
    for step in steps:
        if isinstance(step, Each) and (step.gathers or any(n in found for n in step.operands)):
            found.add(step.out)
    return frozenset(found)


def _items(steps: Sequence[Step], rows: Rows) -> list[Item]:
    """Steps in order, column steps gathered into loops; a loop ends where a reduction needs all of
    its values."""
    items: list[Item] = []
    loop: list[Each] = []
    for step in steps:
        if isinstance(step, Each) and step.out in rows.column:
            loop.append(step)
            continue
        if not _is_over(step):
            items.append(step if not isinstance(step, Each) else Once(*_fields(step)))
            continue
        assert not isinstance(step, Each)
        operand = step.operand if isinstance(step, Group) else step.operands[0]
        earlier = (m for item in (*items, loop) if isinstance(item, list) for m in item)
        if operand in rows.params and not any(operand in m.operands for m in earlier):
            loop.append(Each("", "", "{0}", (operand,)))
        if loop:
            items.append(loop)
        loop = []
        items.append(step)
    return [*items, loop] if loop else items


def _fields(step: Each) -> tuple[str, str, str, tuple[str, ...]]:
    return step.out, step.ctype, step.text, step.operands


def _is_over(step: Step) -> bool:
    return isinstance(step, Group) or (isinstance(step, Once) and step.over)


def _kept(items: Sequence[Item], rows: Rows) -> frozenset[str]:
    """Column values that outlive the loop that makes them, so that they sit in an array."""
    loops: dict[str, set[int]] = {}
    for index, item in enumerate(items):
        if isinstance(item, list):
            for step in item:
                for name in (step.out, *step.operands):
                    loops.setdefault(name, set()).add(index)
        elif isinstance(item, Group):
            loops.setdefault(item.operand, set()).add(-1 - index)
        elif item.over:
            loops.setdefault(item.operands[0], set()).add(-1 - index)
    return frozenset(n for n, where in loops.items() if n in rows.column and len(where) > 1)


def _count(rows: Rows) -> str:
    return "ROW_VALUES<D, THREADS>" if rows.whole else "4"


def _local(name: str, kept: frozenset[str], rows: Rows) -> str:
    """How a loop spells a name: a loaded parameter is `x_d`, an array is indexed by the
    register."""
    if name not in rows.column:
        return name if name not in rows.params else f"{name}_row"
    base = f"{name}_d" if name in rows.params else name
    return f"{base}[i]" if name in kept else base


def _declarations(items: Sequence[Item], kept: frozenset[str], rows: Rows) -> list[str]:
    out: list[str] = []
    done: set[str] = set()
    for item in items:
        for step in item if isinstance(item, list) else ():
            for name in (*step.operands, step.out):
                if name in kept and name not in done:
                    done.add(name)
                    kind = ctype(rows.params[name]) if name in rows.params else step.ctype
                    base = f"{name}_d" if name in rows.params else name
                    out.append(f"{kind} {base}[{_count(rows)}];")
    return out


def _loads_once(steps: Sequence[Step], rows: Rows) -> list[str]:
    """Parameters with one value a row are read before the loops."""
    used = [n for s in steps if not isinstance(s, Group) for n in s.operands]
    names = [n for n in dict.fromkeys(used) if n in rows.params and n not in rows.column]
    at = {n: index(rows.params[n].shape, rows.shape, once=True) for n in names}
    return [f"const {ctype(rows.params[n])} {n}_row = {n}[{at[n]}];" for n in names]


def _loop(item: Sequence[Each], kept: frozenset[str], loaded: set[str], rows: Rows) -> list[str]:
    body: list[str] = []
    here: set[str] = set()
    for step in item:
        for name in dict.fromkeys(step.operands):
            fresh = name in rows.params and name in rows.column and name not in here
            if fresh and not (name in kept and name in loaded):
                here.add(name)
                loaded.add(name)
                where = index(rows.params[name].shape, rows.shape)
                body.append(_assign(name, ctype(rows.params[name]), f"{name}[{where}]", kept, rows))
        if not step.out:
            continue
        value = step.text.format(*(_local(n, kept, rows) for n in step.operands))
        body.append(_assign(step.out, step.ctype, value, kept, rows))
        if step.out in rows.results:
            where = index(rows.results[step.out].shape, rows.shape)
            body.append(f"{step.out}_out[{where}] = {_local(step.out, kept, rows)};")
    columns = any(re.search(r"d]| d;|\+ d|, d\)", line) for line in body)
    registers = any("[i]" in line for line in body)
    head = "each_value" if rows.whole else "each_value_of_chunk"
    names = f"int{' i' if registers else ''}, int{' d' if columns else ''}"
    return [f"{head}<D, THREADS>([&]({names}) {{", *(f"  {line}" for line in body), "});"]


def _assign(name: str, kind: str, value: str, kept: frozenset[str], rows: Rows) -> str:
    left = _local(name, kept, rows)
    return f"{left} = {value};" if name in kept else f"const {kind} {left} = {value};"


def _single(item: Once | Group, rows: Rows) -> list[str]:
    if isinstance(item, Group):
        operand = f"{item.operand}_d" if item.operand in rows.params else item.operand
        how = f"{item.helper}_row" if rows.whole else f"{item.helper}_chunk"
        return [f"{how}<D, THREADS>({operand}, row, {item.out}_out);"]
    spelled = (
        f"{n}_d" if item.over and n in rows.params else _local(n, frozenset(), rows)
        for n in item.operands
    )
    out = [f"const {item.ctype} {item.out} = {item.text.format(*spelled)};"]
    if item.out in rows.results:
        shape = rows.results[item.out].shape
        where = "row" if item.out in rows.dropped else index(shape, rows.shape, once=True)
        first = "threadIdx.x == 0" if rows.whole else "threadIdx.x == 0 && blockIdx.y == 0"
        out.append(f"if ({first}) {item.out}_out[{where}] = {item.out};")
    return out


def index(shape: tuple[Dim, ...], rows: tuple[Dim, ...], once: bool = False) -> str:
    """The element of a value of `shape` at `row` and column `d` of `rows`, missing and 1 axes
    standing still.

    once: outside of loops over columns, where there is no `d`; the value has one element a row.
    """
    lead, full = shape[:-1], rows[:-1]
    width = shape[-1] if shape else 1
    column = "d" if not once and (width != 1 or rows[-1:] == (1,)) else ""
    if shape == rows and not once:
        return "at + d"
    padded = (1,) * (len(full) - len(lead)) + lead
    if all(dim == 1 for dim in padded):
        return column or "0"
    row = "row" if padded == full else _row_index(padded, full)
    return f"size_t({row}) * {width} + {column}" if width != 1 else row


def _row_index(lead: Sequence[Dim], full: Sequence[Dim]) -> str:
    """`row` counts the axes `full`; the index of the same place where some of them are 1."""
    terms: list[str] = []
    inner, outer = "1", 1
    for size, whole in zip(reversed(lead), reversed(full), strict=True):
        if size != 1:
            place = "row" if inner == "1" else f"row / ({inner})"
            place = place if whole in DYNAMIC else f"{place} % {whole}"
            terms.append(place if outer == 1 else f"({place}) * {outer}")
            outer = outer * size if isinstance(size, int) else outer
        count = {ROWS: "step->rows"}.get(
            str(whole), str(whole) if isinstance(whole, int) else "step->wanted"
        )
        inner = count if inner == "1" else f"{inner} * {count}"
    return " + ".join(reversed(terms))
