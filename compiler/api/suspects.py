"""Which kernels are to blame: those whose inputs are all right and whose results are not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from codegen.memory_of import root
from codegen.plan import Planned
from compiler.api.values import Array
from compiler.graph import Node, Value
from compiler.pipeline import Compiled, names_of
from compiler.types import CACHES
from passes import names as fusions
from runtime.compare import different
from runtime.traced import owner


@dataclass(frozen=True)
class Suspect:
    """A kernel, and the pass that made it ("" of an op by itself).

    wrote: what it wrote that no dump holds, if it is suspected for that.
    """

    kernel: str
    made_by: str
    wrote: str = ""

    def __str__(self) -> str:
        parts = [f"which the pass {self.made_by} made"] if self.made_by else []
        parts += [f"which wrote {self.wrote}, and that is in no dump"] if self.wrote else []
        return f"the kernel {self.kernel}" + (", " if parts else "") + " and ".join(parts)


def suspects(
    compiled: Compiled, expected: Mapping[str, Array], given: Mapping[str, Array]
) -> list[list[Suspect]]:
    """Each kernel that made wrong values of right ones, once, in program order.

    Behind each stand those that wrote what it reads and no dump holds: one of them is to blame.
    """
    wrong = wrong_values(compiled, expected, given)
    found: dict[str, list[Suspect]] = {}
    for p in compiled.plan.launches:
        if p.node is None or not any(root(v) in wrong for v in _results(p.node)):
            continue
        if not any(root(v) in wrong for v in p.node.operands):
            unseen = _feeding(compiled, p.node, wrong, given)
            others = [s for s in unseen if s.kernel != p.kernel]
            found.setdefault(p.kernel, [_suspect(p), *others])
    return list(found.values())


def wrong_values(
    compiled: Compiled, expected: Mapping[str, Array], given: Mapping[str, Array]
) -> set[Value]:
    """The values any of whose arrays differ, views as what they show."""
    known = {name: v for v, name in names_of(compiled.program.graph).items()}
    both = [name for name in expected if name in given]
    names = [owner(name, known) for name in both if different(expected[name], given[name]).any()]
    return {root(known[name]) for name in names if name in known}


def _results(n: Node) -> list[Value]:
    return [n.result(i) for i in range(len(n.types))]


def _suspect(p: Planned, wrote: str = "") -> Suspect:
    kind = p.node.function.kind if p.node is not None and p.node.op == "call" else ""
    return Suspect(p.kernel, kind if kind in fusions() else "", wrote)


def _feeding(
    compiled: Compiled, n: Node, wrong: set[Value], given: Mapping[str, Array]
) -> list[Suspect]:
    """Who made what `n` reads and no dump holds: tiles of an input, a cache's earlier versions."""
    by = {p.node: p for p in compiled.plan.launches if p.node is not None}
    tiles = {p.launch.args[0].value: p for p in compiled.plan.launches if p.node is None}
    names = names_of(compiled.program.graph)
    found: dict[str, Suspect] = {}
    for v in n.operands:
        is_cache = v.type.dtype in CACHES
        if is_cache and names[v] in given:
            continue
        writer = by.get(v.node) if is_cache else tiles.get(v)
        if writer is not None and not any(root(r) in wrong for r in _results(v.node)):
            wrote = names[v] if is_cache else f"tiles of {names[v]}"
            found.setdefault(writer.kernel, _suspect(writer, wrote))
    return list(found.values())


def kernel_text(text: str, name: str) -> tuple[str, ...]:
    """The lines over a kernel of a `.cu`: the statements and the IR that it computes."""
    lines = text.splitlines()
    head = re.compile(rf"__global__ .*\b{re.escape(name)}\(")
    at = next((i for i, line in enumerate(lines) if head.match(line)), None)
    if at is None:
        return ()
    start = at
    while start > 0 and lines[start - 1].startswith(("//", "template <")):
        start -= 1
    return tuple(line for line in lines[start:at] if line.startswith("//"))
