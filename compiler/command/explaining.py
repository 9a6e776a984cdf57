"""The parts of `monocu explain` as text: graphs, kernels, memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff

import passes
from codegen import plan as planning
from codegen.plan import Plan
from compiler import pipeline
from compiler.api.costs import bytes_of, operations_of
from compiler.command.show import size, table
from compiler.graph import Function, Graph, Value
from compiler.pipeline import Compiled, Stage
from passes.saving import saving
from runtime.toolchain import Resources

LAYER = re.compile(r"^\s*l([1-9][0-9]*)[._]")


def graphs(made: Compiled, whole: bool, all_layers: bool) -> Iterator[str]:
    """The program as it came, then each pass: what it is, what it changed and saved."""
    first = made.model.program.graph
    yield f"== {made.program.name}: {_counts(first)}\n{graph_text(first, all_layers)}"
    docs = {p.name: p.doc for p in passes.PASSES}
    for stage in made.stages:
        head = f"== {stage.name}: {docs[stage.name]}; "
        if stage.before.roots == stage.after.roots and not whole:
            yield f"{head}no change"
            continue
        head += _counts(stage.after)
        body = graph_text(stage.after, all_layers) if whole else _diff(stage, all_layers)
        yield "\n".join((head, *_saved(stage), body))
    for name in made.options.hold:
        yield f"== {name}: held back"


def _counts(graph: Graph) -> str:
    nodes = [n for n in graph.nodes() if n.operands]
    calls = sum(n.op == "call" for n in nodes)
    return f"{len(nodes)} ops" + (f", {calls} of them fused kernels" if calls else "")


def graph_text(graph: Graph, all_layers: bool) -> str:
    """The printed graph; of layers the first."""
    text = str(pipeline.named(graph)).rstrip("\n")
    if all_layers:
        return text
    kept: list[str] = []
    left = 0
    for line in text.splitlines():
        if LAYER.match(line):
            left += 1
            continue
        if left:
            kept.append(f"  # ... {left} lines of the layers behind the first")
            left = 0
        kept.append(line)
    return "\n".join(kept)


def _diff(stage: Stage, all_layers: bool) -> str:
    before, after = (graph_text(g, all_layers) for g in (stage.before, stage.after))
    lines = unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm="")
    return "\n".join(line for line in lines if not line.startswith(("---", "+++")))


def _saved(stage: Stage) -> Iterator[str]:
    """A line for each function that the pass made: how often it is called, what it saves."""
    for fn, count in _calls(stage.after).items():
        if fn not in _calls(stage.before):
            members = ", ".join(n.op for n in fn.body)
            yield f"{count} x {fn.kind} ({members}): {saving(fn)}"


def _calls(graph: Graph) -> Counter[Function]:
    return Counter(n.function for n in graph.nodes() if n.op == "call")


def kernels(made: Compiled, rows: int, usage: Sequence[Resources]) -> str:
    """Every kernel: launches a step, and of all of them together bytes moved and operations; what
    its ops would need beside that if each were a launch of its own."""
    head = ["kernel", "launches", "launches saved", "bytes", "bytes saved", "flops"]
    head += ["registers", "spilled", "shared"] if usage else []
    body = [_kernel(made.plan, name, rows, usage) for name in made.plan.kernels]
    launches = sum(int(row[1]) for row in body)
    title = f"== kernels: {len(body)}, {launches} launches a step; a step of {rows} rows"
    return f"{title}\n{table([head, *body], right=range(1, len(head)))}"


def _kernel(plan: Plan, name: str, rows: int, usage: Sequence[Resources]) -> list[str | int]:
    launched = [p for p in plan.step(rows) if p.kernel == name]
    calls = [n for p in launched for n in p.nodes if n.op == "call"]
    saved = [saving(n.function, rows) for n in calls]
    flops = sum(operations_of(p, rows) for p in launched)
    row: list[str | int] = [name, len(launched), sum(s.launches for s in saved)]
    row += [sum(bytes_of(p, rows) for p in launched), sum(s.bytes for s in saved), flops]
    if usage:
        used = [u for u in usage if _is_of(u.kernel, name)]
        row.append(max((u.registers for u in used), default=0))
        row.append(max((u.spill_stores + u.spill_loads for u in used), default=0))
        row.append(max((u.shared for u in used), default=0))
    return row


def _is_of(mangled: str, name: str) -> bool:
    """Whether a symbol is an instance of a kernel: a mangled name holds its length and itself."""
    return (
        mangled == name
        or re.search(rf"(?<![0-9]){len(name)}{name}(?![0-9a-z_])", mangled) is not None
    )


@dataclass(frozen=True)
class Totals:
    """Launches of a step, of one iteration of its longest loop (a layer's), and bytes moved."""

    launches: int
    layer: int
    bytes: int


def totals(plan: Plan, rows: int) -> Totals:
    longest = max(plan.loops, key=lambda loop: loop.period * loop.count, default=None)
    launches, layer = len(plan.launches), longest.period if longest else 0
    return Totals(launches, layer, sum(bytes_of(p, rows) for p in plan.launches))


def held_back(made: Compiled) -> Plan:
    """The plan of the same program with every fusion held back."""
    options = replace(made.options, hold=passes.names())
    program, _ = pipeline.lower(made.model.program, options, made.target)
    return planning.plan(program, made.target, options, pipeline.names_of(program.graph))


def savings(made: Compiled, rows: int) -> str:
    """What all fusions together save; bytes are computed, not measured."""
    with_, without = totals(made.plan, rows), totals(held_back(made), rows)
    head = ("", "launches", "a layer", "bytes")
    body = [
        (name, t.launches, t.layer or "", t.bytes)
        for name, t in (("fused", with_), ("every fusion held back", without))
    ]
    title = f"== a step of {rows} row{'s' if rows > 1 else ''}, one wanted"
    return f"{title}\n{table([head, *body], right=(1, 2, 3))}"


def memory(made: Compiled) -> str:
    """The three allocations, and each part of them."""
    plan = made.plan
    rows = [("weights", size(plan.weight_bytes), f"{len(plan.families)} families")]
    rows += [("buffers", size(plan.buffer_bytes), f"at most {made.options.max_rows} rows a step")]
    rows += [("caches", size(plan.cache_bytes), "a position of a sequence")]
    parts = [
        (f"  {b.name}", b.offset, b.nbytes, ", ".join(dict.fromkeys(_names(plan, b.values))))
        for b in sorted(plan.buffers, key=lambda b: b.offset)
    ]
    head = ("  buffer", "offset", "bytes", "holds")
    return f"== memory\n{table(rows)}\n\n{table([head, *parts], right=(1, 2))}"


def _names(plan: Plan, values: Sequence[Value]) -> Iterator[str]:
    """What a slot's values are called, layers alike."""
    for v in values:
        yield re.sub(r"^l[0-9]+\.", "l*.", plan.names[v])
