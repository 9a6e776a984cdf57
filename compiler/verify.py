"""What must hold of every graph, as a table; `verify` runs it. A fault is a bug of monocu.

Each row of ROWS looks at a whole graph and says what is wrong, a line a fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from compiler import graph as g
from compiler.graph import LEAVES, Function, Graph, Node, Value, consumers
from compiler.ops import OpError, build
from compiler.types import ACTIVATIONS, BLOCKS, CACHES, DTYPES, DYNAMIC, Type, whole


class VerifyError(AssertionError):
    """A graph that breaks rows of the table; the message names each row and the node."""


@dataclass(frozen=True)
class Row:
    """One rule: what must hold, and the faults of a graph that breaks it."""

    name: str
    holds: str
    faults: Callable[[Graph], Iterator[str]]


def verify(graph: Graph) -> Graph:
    """The graph itself; VerifyError where a row does not hold."""
    faults = [f"{row.name}: {fault} ({row.holds})" for row in ROWS for fault in row.faults(graph)]
    if faults:
        raise VerifyError("\n".join(faults))
    return graph


def functions(graph: Graph) -> list[Function]:
    """The functions that a graph calls, each once, in order of first call."""
    return list(dict.fromkeys(n.function for n in graph.nodes() if n.op == "call"))


def _everywhere(graph: Graph) -> list[Node]:
    """The graph's own nodes and those of its functions."""
    return [*graph.nodes(), *(n for fn in functions(graph) for n in (*fn.params, *fn.body))]


def _text(n: Node) -> str:
    return f"{n.op}({', '.join(str(v.type) for v in n.operands)})"


def _dtypes(graph: Graph) -> Iterator[str]:
    for n in _everywhere(graph):
        yield from (f"{_text(n)} has {t}" for t in n.types if t.dtype not in DTYPES)


def _dims(graph: Graph) -> Iterator[str]:
    for n in _everywhere(graph):
        yield from (f"{_text(n)} has {t}" for t in n.types if not _dims_hold(t))


def _dims_hold(t: Type) -> bool:
    return all(
        (d in DYNAMIC and axis == 0) if isinstance(d, str) else d > 0
        for axis, d in enumerate(t.shape)
    )


def _groups(graph: Graph) -> Iterator[str]:
    for n in _everywhere(graph):
        for t in n.types:
            if t.dtype in (*BLOCKS, *ACTIVATIONS) and not _whole_groups(t):
                yield f"{_text(n)} has {t}"


def _whole_groups(t: Type) -> bool:
    last = t.shape[-1] if t.shape else 0
    return isinstance(last, int) and last > 0 and last % whole(t.dtype) == 0


def _types(graph: Graph) -> Iterator[str]:
    for n in _everywhere(graph):
        if n.op in (*LEAVES, "call"):
            continue
        try:
            made = build(n.op, n.operands, {k: n.attr(k) for k, _ in n.attrs})
        except (OpError, TypeError, KeyError) as error:
            yield f"{_text(n)}: {error}"
            continue
        if made.types != n.types:
            yield f"{_text(n)} has {_types_text(n)}, its rule says {_types_text(made)}"
        elif made.attrs != n.attrs:
            yield f"{_text(n)} has {n.attrs}, with defaults they are {made.attrs}"


def _types_text(n: Node) -> str:
    return ", ".join(map(str, n.types))


def _interned(graph: Graph) -> Iterator[str]:
    for n in _everywhere(graph):
        if g.node(n.op, n.operands, dict(n.attrs), n.types) is not n:
            yield f"{_text(n)} is a second node of its parts"
    for fn in functions(graph):
        if g.function(fn.kind, fn.params, fn.body, fn.results) is not fn:
            yield f"{fn.kind} is a second function of its parts"


def _leaves(graph: Graph) -> Iterator[str]:
    known: dict[tuple[str, object], Node] = {}
    for n in graph.nodes():
        if n.op == "param":
            yield "a param stands outside of a function"
        elif n.op in LEAVES and n.op != "const":
            other = known.setdefault((n.op, n.attr("name")), n)
            if other is not n:
                name = n.attr("name")
                yield f'{n.op} "{name}" is {_types_text(n)} and {_types_text(other)}'


def _results(graph: Graph) -> Iterator[str]:
    for name, count in Counter(name for name, _ in graph.results).items():
        if count > 1 or not name:
            yield f"{count} results are called {name!r}"


def _consumed(graph: Graph) -> Iterator[str]:
    for version, writers in consumers(graph.nodes()).items():
        if len(writers) > 1:
            yield f"{len(writers)} nodes write over {_version(graph, version)}"


def _readers(graph: Graph) -> Iterator[str]:
    order = {n: i for i, n in enumerate(graph.nodes())}
    for version, writers in consumers(order).items():
        for n in order:
            if version in n.operands and n not in writers and order[n] > order[writers[0]]:
                yield f"{_text(n)} reads {_version(graph, version)} when it is written over"


def _effects(graph: Graph) -> Iterator[str]:
    written = consumers(graph.nodes())
    for v, count in Counter(graph.effects).items():
        if count > 1 or v.type.dtype not in CACHES or v in written:
            yield f"{_version(graph, v)} is no final version, or twice an effect"
    final = {
        n.result(i)
        for n in graph.nodes()
        for i, t in enumerate(n.types)
        if t.dtype in CACHES and n.op not in LEAVES
    }
    for v in final - set(graph.effects) - set(written):
        yield f"{_version(graph, v)} is a final version, but no effect"


def _version(graph: Graph, v: Value) -> str:
    return graph.name(v) or f"{_text(v.node)}: {v.type}"


def _calls(graph: Graph) -> Iterator[str]:
    for n in graph.nodes():
        if n.op != "call":
            continue
        needs, given = [p.types[0] for p in n.function.params], [v.type for v in n.operands]
        if needs != given:
            yield f"{n.function.kind} takes {_list(needs)}, got {_list(given)}"
        gives = [v.type for v in n.function.results]
        if gives != list(n.types):
            yield f"{n.function.kind} gives {_list(gives)}, its call has {_types_text(n)}"


def _list(types: list[Type]) -> str:
    return ", ".join(map(str, types)) or "nothing"


def _params(graph: Graph) -> Iterator[str]:
    for fn in functions(graph):
        if [(p.op, p.attr("index")) for p in fn.params] != [
            ("param", i) for i in range(len(fn.params))
        ]:
            yield f"{fn.kind} has params out of order"
        used = {v.node for n in fn.body for v in n.operands}
        for p in fn.params:
            if p not in used:
                yield f"{fn.kind} does not read param {p.attr('index')}"


def _bodies(graph: Graph) -> Iterator[str]:
    for fn in functions(graph):
        known = set(fn.params)
        for n in fn.body:
            if n.op in (*LEAVES, "call"):
                yield f"{fn.kind} has {_text(n)} in its body"
            for v in n.operands:
                if v.node not in known and v.node.op != "const":
                    yield f"{fn.kind}: {_text(n)} reads {_text(v.node)} before it is there"
            known.add(n)
        for v in fn.results:
            if v.node not in fn.body:
                yield f"{fn.kind} gives {_text(v.node)}, which is not in its body"


def _live(graph: Graph) -> Iterator[str]:
    for fn in functions(graph):
        read = {v.node for n in fn.body for v in n.operands} | {v.node for v in fn.results}
        yield from (f"{fn.kind}: nothing reads {_text(n)}" for n in fn.body if n not in read)
        if not fn.results or len(set(fn.results)) != len(fn.results):
            yield f"{fn.kind} gives nothing, or one value twice"


def _notes(graph: Graph) -> Iterator[str]:
    for n in graph.nodes():
        if len(graph.note(n).names) != len(n.types):
            yield f"{_text(n)} has {len(graph.note(n).names)} names for {len(n.types)} results"


ROWS = (
    Row("dtypes", "every dtype is one of the language's", _dtypes),
    Row("dims", "dims are 1 or more, or T or R as the first axis", _dims),
    Row("groups", "what is in blocks has a last axis of whole blocks", _groups),
    Row("types", "types and attributes are what the op's rule says", _types),
    Row("interned", "equal parts are one node or function", _interned),
    Row("leaves", "a leaf of one name has one type; params are in functions", _leaves),
    Row("results", "results have names of their own", _results),
    Row("consumed", "a cache version is written over once", _consumed),
    Row("readers", "readers of a cache version come before what writes over it", _readers),
    Row("effects", "effects are the final versions, all of them", _effects),
    Row("calls", "a call has its function's types", _calls),
    Row("params", "params are numbered in order, and read", _params),
    Row("bodies", "a body holds ops, reading params, constants and what stands before", _bodies),
    Row("live", "every member of a body is read or given, results once", _live),
    Row("notes", "a note names each result", _notes),
)  # fmt: skip
