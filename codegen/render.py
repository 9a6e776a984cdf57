"""The renderer: a frozen plan and the templates, nothing else, give the one `.cu`; the same plan
gives the same text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from codegen import cache_values, guards, library, tables
from codegen.driver import driver_text
from codegen.expr import STRUCTS, literal
from codegen.forms import FEW_PAGES, MANY_PAGES, have_many, row_forms
from codegen.kernel import Arg, Kernel, Launch
from codegen.memory_of import root
from codegen.plan import Plan, Planned
from codegen.source_lines import program_lines
from codegen.variants import Variant, layer_row, variants
from compiler.formats import FORMATS
from compiler.graph import Node
from compiler.text import ir_lines


@cache
def environment() -> Environment:
    env = Environment(
        loader=PackageLoader("codegen"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    env.filters["comment"] = comment  # pyright: ignore[reportUnknownMemberType]
    return env


def comment(text: str) -> str:
    """Text that stays inside a `//` comment whatever it holds."""
    safe = "".join(c if " " <= c <= "~" else f"\\x{ord(c):02x}" for c in text)
    return re.sub(r"\?(?=\?)", "? ", safe).rstrip(" \\")


@dataclass(frozen=True)
class KernelText:
    """One emitted kernel: the program lines and the IR that it computes, then its text."""

    name: str
    lines: tuple[str, ...]
    ir: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class LaunchText:
    """One launch of the step function, as C++ text."""

    kernel: str
    arguments: str
    grid: str
    threads: str
    shared: str
    args: tuple[str, ...]
    note: str
    variants: tuple[Variant, ...] = ()  # where layers choose the template arguments
    number: int = 0  # of the plan's launches, in the first iteration
    forms: str = ""  # "one": of a step of one row; "more": of others, until "last"


@dataclass(frozen=True)
class Run:
    """Launches one after another; `count` > 0: a loop of so many iterations with `l` counting from
    0."""

    count: int
    launches: tuple[LaunchText, ...]


def render(plan: Plan) -> str:
    """The `.cu` of a plan."""
    kernels = tuple(_kernel(plan, name, kernel) for name, kernel in plan.kernels.items())
    runs = _runs(plan)
    forms = _forms(plan)
    fields = {
        "plan": plan,
        "tables": tables.of(plan),
        "held": tuple(cache_values.rows(plan)) if plan.options.dump else (),
        "kernels": kernels,
        "runs": runs,
        "forms": forms,
        "few": any("FEW" in text for p in plan.launches for text in _parts(p.launch)),
        "paged": any(p.launch.one and "pages" in p.launch.one.grid.z for p in plan.launches),
        "few_pages": FEW_PAGES,
        "many_pages": MANY_PAGES,
        "row_forms": _row_forms(plan),
        "part_gap": guards.part_gap(plan.options),
        "guards": guards.spans(plan) if plan.options.guard else (),
        "cache_gap": guards.cache_gap(plan.options),
        "formats": [FORMATS[name] for name in STRUCTS],
        "struct": STRUCTS,
        "driver": driver_text(plan.program.is_model, plan.options),
        "comment": comment,
    }
    body = environment().get_template("program.cu.j2").render(**fields)
    driver = environment().get_template("driver.cu.j2").render(**fields)
    used = library.needed(body + driver, plan.options.timed)
    formats = environment().get_template("formats.cu.j2")
    seen = library.words(body + driver + "\n".join(used))
    shown = [f for f in fields["formats"] if STRUCTS[f.name] in seen]  # type: ignore[index]
    head = environment().get_template("header.cu.j2").render(**fields)
    top = formats.render(**{**fields, "formats": shown})
    helpers = "\n\n".join(used)
    whole = f"{head}\n{top}\n{helpers}\n\n{body}\n{driver}"
    return re.sub(r"\n{3,}", "\n\n", whole)  # parts may be empty


def _kernel(plan: Plan, name: str, kernel: Kernel) -> KernelText:
    template = environment().get_template(f"kernels/{kernel.template}")
    params = ", ".join(f"{p.ctype} {p.name}" for p in kernel.params)
    line = f"template <{', '.join(kernel.templates)}>" if kernel.templates else ""
    text = template.render(
        name=name, kernel=kernel, params=params, template_line=line, **dict(kernel.fields)
    )
    nodes = plan.nodes_of(name)
    ir = tuple(line for n in _same_kind(nodes) for line in ir_lines(n, dict(plan.names)))
    return KernelText(name, program_lines(plan.graph, nodes), ir, text.strip("\n"))


def _same_kind(nodes: Sequence[Node]) -> list[Node]:
    """The first node of each kind: equal layers share a kernel, one of two nodes has two."""
    first: dict[str, Node] = {}
    for n in nodes:
        first.setdefault(n.function.kind if n.op == "call" else n.op, n)
    return list(first.values())


def _runs(plan: Plan) -> tuple[Run, ...]:
    runs: list[Run] = []
    at = 0
    for loop in (*plan.loops, None):
        end = loop.start if loop else len(plan.launches)
        if at < end:
            runs.append(Run(0, _launch_texts(plan, [range(n, n + 1) for n in range(at, end)])))
        if loop:
            body = range(loop.start, loop.start + loop.period)
            turns = [range(n, loop.end, loop.period) for n in body]
            runs.append(Run(loop.count, _launch_texts(plan, turns)))
            at = loop.end
    return tuple(runs)


def _launch_texts(plan: Plan, numbers: Sequence[range]) -> tuple[LaunchText, ...]:
    """Launches in order, each with all its turns of a loop; in the place of a pair that a step of
    one row makes in one, three."""
    out: list[LaunchText] = []
    for turn in numbers:
        turns = [plan.launches[n] for n in turn]
        text = replace(_launch(plan, turns), number=turn.start)
        ones = [Planned(p.launch.one, p.one_kernel, p.node) for p in turns if p.launch.one]
        if ones:
            single = replace(_launch(plan, ones), number=turn.start, forms="one")
            out[-1:] = [single, replace(out[-1], forms="more")]
            text = replace(text, forms="last")
        out.append(text)
    return tuple(out)


def _launch(plan: Plan, turns: Sequence[Planned]) -> LaunchText:
    """The text of a launch, alone or with its turns of a loop."""
    p, after = turns[0], turns[1] if len(turns) > 1 else None
    launch = p.launch
    args = tuple(
        _arg(plan, arg, after.launch.args[i] if after else None, p)
        for i, arg in enumerate(launch.args)
    )
    arguments = ", ".join(launch.arguments)
    grid = ", ".join(g for g in (launch.grid.x, launch.grid.y, launch.grid.z))
    grid = grid.removesuffix(", 1").removesuffix(", 1")
    note = ", ".join(dict.fromkeys(_shown(plan, a) for a in launch.args if a.writes))
    shown = (p.kernel, arguments, grid, launch.threads, launch.shared, args, note)
    return LaunchText(*shown, variants(plan, [turn.launch for turn in turns]))


def _shown(plan: Plan, arg: Arg) -> str:
    return f"{plan.names.get(arg.value, '')}: {arg.value.type}"


def _arg(plan: Plan, arg: Arg, later: Arg | None, p: Planned) -> str:
    """An argument as the step function spells it; `later` is the same one an iteration on, in a
    loop."""
    value = arg.value
    if value.node.op == "weight":
        return _weight(plan, arg, later)
    if arg.kind == "cache":
        leaf = plan.cache_leaf(value)
        where = plan.caches[leaf]
        step = plan.caches[plan.cache_leaf(later.value)].index - where.index if later else 0
        kind = "float" if value.type.dtype == "cache_f32" else "uint16_t"
        return (
            f"cache<{kind}>(d, {tables.cache_name(plan, where.family)}{_index(where.index, step)})"
        )
    if arg.kind == "rows":
        return "d.step"
    if value.node.op == "const":
        number = value.node.attr("value")
        assert isinstance(number, int | float)
        return literal(number, value.type.dtype)
    if arg.kind == "weight" or (p.node is None and arg.writes):
        return f"b.{tables.tile_buffer(plan, value)}"
    base = root(value)
    if base not in plan.buffer_of:
        return "d.step->token"
    name = f"b.{plan.buffers[plan.buffer_of[base]].name}"
    return tables.cast_pointer(plan, base, name, raw=p.node is None)


def _weight(plan: Plan, arg: Arg, later: Arg | None) -> str:
    layout = 1 if arg.kind == "weight" else 0
    if later and (row := layer_row(plan, arg, later)):
        return f"{'tiles' if layout else 'vector'}(d, {row})"
    where = plan.weights[arg.value, layout]
    step = plan.weights[later.value, layout].index - where.index if later else 0
    name = tables.family_name(plan, where.family)
    how = "tiles" if layout else "vector"
    return f"{how}(d, {name}{_index(where.index, step)})"


def _index(index: int, step: int) -> str:
    if not step:
        return f", {index}" if index else ""
    return f", l + {index}" if index else ", l"


def _forms(plan: Plan) -> tuple[str, ...]:
    """Which row groups the launches depend on: "ROWS", "WANTED"."""
    texts = [t for p in plan.launches for t in _parts(p.launch)]
    texts += ["ROWS" for p in plan.launches if p.launch.one]
    names = {"ROWS": ("ROWS", "FEW"), "WANTED": ("WANTED",)}
    return tuple(f for f, all_ in names.items() if any(n in text for n in all_ for text in texts))


def _row_forms(plan: Plan) -> tuple[tuple[int, int], ...]:
    many = have_many(p.launch for p in plan.launches)
    return row_forms(many, int(tables.of(plan).scalars["rows"]))


def _parts(launch: Launch) -> Sequence[str]:
    g = launch.grid
    return (*launch.arguments, g.x, g.y, g.z, launch.shared, launch.threads)
