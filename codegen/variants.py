"""How the step spells launches of a loop whose kernel the layer chooses; see layers.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codegen import layers
from codegen.expr import STRUCTS
from codegen.families import PLAIN, TILES
from codegen.kernel import Arg, Launch
from codegen.plan import Plan


@dataclass(frozen=True)
class Variant:
    """Template arguments of the layers for which a condition holds; the last one's is empty."""

    condition: str
    arguments: str


def variants(plan: Plan, turns: Sequence[Launch]) -> tuple[Variant, ...]:
    """The launches of a loop by their template arguments, where these differ."""
    distinct = {launch.arguments: launch for launch in reversed(turns)}
    if len(distinct) == 1:
        return ()
    last, *others = distinct.values()
    out = [(_condition(plan, turns, one), one) for one in reversed(others)]
    return tuple(Variant(c, ", ".join(one.arguments)) for c, one in (*out, ("", last)))


def _condition(plan: Plan, turns: Sequence[Launch], one: Launch) -> str:
    """When a loop's launch is this one: the formats of the tensors that differ by layer."""
    found: list[str] = []
    for arg, start, later in zip(one.args, turns[0].args, turns[1].args, strict=True):
        row = layer_row(plan, start, later) if arg.kind == "weight" else None
        if row:
            found.append(f"{row}.family.type == {STRUCTS[arg.value.type.dtype]}::GGML")
    return " && ".join(dict.fromkeys(found))


def layer_row(plan: Plan, arg: Arg, later: Arg) -> str | None:
    """A weight of a loop as its table's row, where formats differ by layer; `later` is the same
    argument an iteration on."""
    layout = TILES if arg.kind == "weight" else PLAIN
    known = layers.of(plan.families)
    here, then = (known.row(plan.weights[a.value, layout]) for a in (arg, later))
    if here is None or then is None or then == here:
        return None
    index = f"l + {here[1]}" if here[1] else "l"
    return f"{table_name(plan, here[0])}[{index}]"


def table_name(plan: Plan, index: int) -> str:
    """What the emitted file calls a table, after its first family."""
    first = layers.of(plan.families).tables[index].members[0].family
    return f"{plan.family_names[first]}_OF"
