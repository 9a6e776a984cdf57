"""What becomes of each head between its projection and attention, as text for a warp that has it.

A branch is one projection's heads: norms and other ops within a head, rope, and at the end a value
or an entry of a cache. All branches of a kernel turn by one set of angles. Every op that works
within rows may be a member; a warp has a head as `each_value<HD, 32>` holds a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from codegen.elements import fixed, integer, real, volume
from codegen.expr import ctype, identifier
from codegen.kernel import Refusal
from codegen.kernels.arguments import Arguments
from codegen.kernels.row_steps import Each, Once, cast_text, steps_of
from compiler.graph import Node, Value
from compiler.ops.rope import inverse_frequencies

PAIRS = 512  # of a head: their sines and cosines are in shared memory, their rates in the text
WIDEST = 1024  # of a head: 32 registers a thread


@dataclass(frozen=True)
class Angles:
    """What a kernel's ropes turn by: the table's text, the parameter of divisors or nullptr."""

    rates: tuple[str, ...]
    divisors: str
    pairs: int


@dataclass
class Branch:
    """The heads of one projection: how many, how the kernel calls them, and what it does to one."""

    name: str
    heads: int
    members: list[Node]
    lines: list[str] = field(default_factory=list[str])


def branches(to: Arguments, members: list[Node]) -> list[Branch]:
    """Members behind the projections, by the heads that they work on, in program order."""
    of: dict[Value, Branch] = {}
    out: list[Branch] = []
    for m in members:
        x = subject(m)
        if x not in of:
            of[x] = Branch("", volume(x.type.shape[1:-1], m.op), [])
            out.append(of[x])
        of[x].members.append(m)
        of[m.result()] = of[x]
    for branch in out:
        branch.name = _called(to, branch.members)
    return out


def subject(m: Node) -> Value:
    """The operand whose heads a member works on."""
    return m.operands[1] if m.op == "append" else m.operands[0]


def _called(to: Arguments, members: list[Node]) -> str:
    """After the value that is made, or the cache that is written."""
    last = members[-1]
    if last.op == "append":
        return identifier(to.called(last.operands[0]), to.taken)
    return to.name(last.result())


def head_width(members: list[Node]) -> int:
    """The one width of all heads; Refusal where there are several, or one is too wide."""
    widths = {fixed(subject(m).type.shape[-1], m.op) for m in members}
    if len(widths) != 1 or max(widths) > WIDEST:
        raise Refusal(f"heads of one kernel need one width of at most {WIDEST}, got {widths}")
    return widths.pop()


def angles_of(to: Arguments, members: list[Node]) -> Angles | None:
    """The one table of all ropes; Refusal where they need several."""
    tables: dict[Angles, None] = {}
    for m in members:
        if m.op != "rope":
            continue
        dims = integer(m, "dims") or fixed(m.types[0].shape[-1], "rope")
        rates = inverse_frequencies(real(m, "theta"), dims, real(m, "factor"))
        divisors = to.read(m.operands[1], "freqs") if len(m.operands) == 3 else "nullptr"
        tables[Angles(tuple(r.hex() for r in rates), divisors, dims // 2)] = None
    if len(tables) > 1 or any(t.pairs > PAIRS for t in tables):
        raise Refusal(f"heads of one kernel turn by one table of at most {PAIRS} angles")
    return next(iter(tables), None)


@dataclass(frozen=True)
class Ends:
    """Where a kernel puts the head that it calls `name`: lines that store `element` of each column
    of a result or of a cache's entry."""

    result: Callable[[str, Value, str], list[str]]
    entry: Callable[[str, Value, str], list[str]]


def in_memory(to: Arguments, count: str) -> Ends:
    """Ends in the launch's results; `row`, `head`, `page` and `pos` say where, of `count` heads."""

    def result(_: str, value: Value, element: str) -> list[str]:
        return [each(f"{to.write(value, to.name(value))}[at + d] = {element};")]

    def entry(name: str, value: Value, element: str) -> list[str]:
        cache = to.write(value, name, "cache")
        place = f"cache_page<{count}, HD>({cache}, page, head) + pos % PAGE * HD"
        return [f"{ctype(value.type)}* entry = {place};", each(f"entry[d] = {element};")]

    return Ends(result, entry)


def write_lines(to: Arguments, branch: Branch, exchange: str, ends: Ends) -> None:
    """The text behind the load of a head into the array that is called as the branch.

    exchange: what rope needs of its own. `at` is the head's first element.
    """
    name, element = branch.name, f"{branch.name}[i]"
    for m in branch.members:
        value = m.result()
        if m.op == "rope":
            way = "true" if m.attr("interleaved") else "false"
            call = f"turn_head<HD, PAIRS, {way}>({name}, {exchange}, s.turns);"
            branch.lines.append(call)
        elif m.op == "cast":
            source, target = m.operands[0].type.dtype, m.types[0].dtype
            element = cast_text(source, target).format(element)
        elif m.op == "append":
            branch.lines += ends.entry(name, value, element)
            continue
        else:
            branch.lines += _within(to, m, name)
        if value in to.results:
            branch.lines += ends.result(name, value, element)


def each(statement: str) -> str:
    """A statement for each column `d` that a thread holds in register `i`."""
    register = "int i" if "[i]" in statement else "int"
    column = "int d" if "d]" in statement else "int"
    return f"each_value<HD, 32>([&]({register}, {column}) {{ {statement} }});"


def _within(to: Arguments, m: Node, name: str) -> list[str]:
    """A member that works within a head, on the array `name` in place."""
    own, x = to.name(m.result()), subject(m)
    columns = {name, own}

    def spell(v: Value) -> str:
        return name if v == x else own if v == m.result() else to.spell(v)

    for v in m.operands[1:]:
        if v.node.op != "const":
            to.read(v)
    lines: list[str] = []
    for step in steps_of(m, spell, fixed(x.type.shape[-1], m.op)):
        if isinstance(step, Once):
            text = step.text.replace("<D, THREADS>", "<HD, 32>").replace("float(D)", "float(HD)")
            operands = (name if o in columns else o for o in step.operands)
            lines.append(f"const {step.ctype} {step.out} = {text.format(*operands)};")
        elif isinstance(step, Each) and step.ctype == "float":
            columns.add(step.out)
            place = _places(m, spell)
            operands = (f"{name}[i]" if o in columns else place.get(o, o) for o in step.operands)
            lines.append(each(f"{name}[i] = {step.text.format(*operands)};"))
        else:
            raise Refusal(f"no kernel has {m.op} within a head")
    return lines


def _places(m: Node, spell: Callable[[Value], str]) -> dict[str, str]:
    """Where a column's element of each other operand is."""
    whole = m.types[0].shape
    table: dict[str, str] = {}
    for v in m.operands[1:]:
        if v.node.op == "const":
            continue
        if v.type.shape not in ((), whole, whole[-1:]):
            raise Refusal(f"no kernel has {m.op} with {v.type} within heads of {m.types[0]}")
        at = "at + d" if v.type.shape == whole else "d" if v.type.shape else "0"
        table[spell(v)] = f"{spell(v)}[{at}]"
    return table
