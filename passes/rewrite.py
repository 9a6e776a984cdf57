"""The rewriting engine: tables of local rules, applied to a fixpoint.

Each sweep finds matches on the unchanged graph, the first rule of the table that fits a node, and
replaces them all at once. A rule keeps its value's type. Rules that undo each other or never end
are an error that names them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from compiler.graph import Graph, Node, Note, Origin, Value, move_note, node
from passes.context import Context, Sweep
from passes.parse import parse_pattern
from passes.pattern import Bound, Call, Match, instance, matches

SWEEPS = 100  # no table of ours needs more than 4; a table that grows its program stops here


class RuleError(AssertionError):
    """A rule that breaks the engine's contract: a bug of monocu."""


@dataclass(frozen=True)
class Site:
    """A match in its graph, as guards see it."""

    match: Match
    graph: Graph
    uses: Mapping[Node, list[Node]]
    context: Context

    def readers(self, n: Node) -> list[Node] | None:
        """The readers of a node, one an operand; None where it is also a result or an effect."""
        return None if any(v.node is n for v in self.graph.roots) else self.uses[n]


Build = Callable[[Bound], Value]


@dataclass(frozen=True)
class Rule:
    """`pattern` becomes `rewrite` (a pattern too, or a function of what the letters stand for).

    when: a guard on the match.
    suffixes: by op, what a new inner node of it adds to the name of the root's first operand.
    """

    name: str
    pattern: str
    rewrite: str | Build
    when: Callable[[Site], bool] = lambda site: True
    suffixes: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def build(self) -> Build:
        if not isinstance(self.rewrite, str):
            return self.rewrite
        tree = parse_pattern(self.rewrite)
        return lambda bound: instance(tree, bound)

    def find(self, value: Value, site: Callable[[Match], Site]) -> Match | None:
        pattern = parse_pattern(self.pattern)
        if isinstance(pattern, Call) and pattern.op != value.node.op:
            return None  # most nodes by most rules
        return next((m for m in matches(pattern, value) if self.when(site(m))), None)


@dataclass(frozen=True)
class Hit:
    rule: Rule
    match: Match


def rewrite(graph: Graph, rules: Sequence[Rule], context: Context) -> Graph:
    """The graph in which no rule fits any more."""
    seen = {graph.roots: 0}
    fired: list[Counter[str]] = []
    for sweep in range(1, SWEEPS + 1):
        hits = _hits(graph, rules, context)
        if not hits:
            return graph
        fired.append(Counter(hit.rule.name for hit in hits.values()))
        for hit in hits.values():
            context.on_rule(hit.rule.name)
        context.on_sweep(Sweep(graph, _alone(graph, hits)))
        graph = _replace(graph, hits)
        if graph.roots in seen:
            names = _names(fired[seen[graph.roots] :])
            raise RuleError(f"rules rewrite each other without end: {names}")
        seen[graph.roots] = sweep
    raise RuleError(f"rules still fire after {SWEEPS} sweeps: {_names(fired[-2:])}")


def _names(fired: Iterable[Iterable[str]]) -> str:
    return ", ".join(sorted({name for names in fired for name in names}))


def _hits(graph: Graph, rules: Sequence[Rule], context: Context) -> dict[Node, Hit]:
    uses = graph.uses()
    hits: dict[Node, Hit] = {}
    for n in uses:
        for rule in rules:
            match = rule.find(n.result(), lambda m: Site(m, graph, uses, context))
            if match is not None:
                hits[n] = Hit(rule, match)
                break
    return hits


def _alone(graph: Graph, hits: Mapping[Node, Hit]) -> dict[str, Callable[[], Graph]]:
    """By rule: the graph behind its hits of a sweep, the other rules' left out."""
    rules = dict.fromkeys(hit.rule.name for hit in hits.values())
    by = {name: {n: h for n, h in hits.items() if h.rule.name == name} for name in rules}
    return {name: partial(_replace, graph, those) for name, those in by.items()}


def _replace(graph: Graph, hits: Mapping[Node, Hit]) -> Graph:
    new: dict[Value, Value] = {}
    notes: dict[Node, Note] = {}
    for old in graph.nodes():
        if old in hits:
            made = _instance(graph, hits[old], new, notes)
            results = (made,)
        else:
            same = node(old.op, [new[v] for v in old.operands], dict(old.attrs), old.types)
            results = tuple(same.result(i) for i in range(len(old.types)))
        for index, value in enumerate(results):
            new[Value(old, index)] = value
            move_note(notes, graph.note(old), index, value)
    return graph.replaced(new, notes)


def _instance(graph: Graph, hit: Hit, new: Mapping[Value, Value], notes: dict[Node, Note]) -> Value:
    """What a hit's root becomes; its new nodes get their notes here, the root's name apart."""
    bound = {k: new[v] if isinstance(v, Value) else v for k, v in hit.match.bound.items()}
    value, was = hit.rule.build(bound), hit.match.root.types[0]
    if value.type != was:
        raise RuleError(f"rule {hit.rule.name} changed a type: {was} became {value.type}")
    _note_new(graph, hit, value.node, notes)
    return value


def _note_new(graph: Graph, hit: Hit, made: Node, notes: dict[Node, Note]) -> None:
    """Notes for the nodes under `made` that have none yet.

    An op with a suffix stands for the matched nodes under the root, the others for all of them.
    """
    root, *inner = (graph.note(n) for n in hit.match.nodes)
    base = graph.name(hit.match.root.operands[0]) if hit.match.root.operands else None
    stack = [made]
    while stack:
        n = stack.pop()
        if n in notes:
            continue
        suffix = None if n is made else hit.rule.suffixes.get(n.op)
        sources = inner if suffix and inner else [root, *inner]
        name = f"{base}.{suffix}" if base and suffix else None
        names = (name, *(None,) * (len(n.types) - 1))
        notes[n] = Note(names, frozenset[Origin]().union(*(s.origins for s in sources)), root.rank)
        stack.extend(v.node for v in n.operands)
