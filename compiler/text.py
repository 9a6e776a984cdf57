"""The printer: a graph as a program of the language in SSA form, which the parser reads back.

One `kernel forward() { ... }`: leaves first, then a statement a node, types on targets; before it
one kernel a fused function. Constants stand inline where a reader knows their dtype. Deterministic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import isfinite

from compiler.graph import LEAVES, Attr, Function, Graph, Node, Note, Value
from compiler.ops import Op, Param, bound, get
from compiler.types import DYNAMIC, ELEMENT_BYTES, FLOATS, INTEGERS

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
RESERVED = (
    *FLOATS,
    *INTEGERS,
    *DYNAMIC,
    "inf",
    "nan",
    "for",
    "if",
    "return",
)  # no value is called so
MAX_PIECE = 56  # letters of a name's last piece, so that a suffix keeps it a legal name


class Names:
    """Names that are given once: x, x_2, x_3."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self.count = dict.fromkeys(reserved, 1)

    def unique(self, name: str) -> str:
        head, dot, last = name.rpartition(".")
        base = made = head + dot + last[:MAX_PIECE]
        while made in self.count:
            self.count[base] += 1
            made = f"{base}_{self.count[base]}"
        self.count[made] = 1
        return made


def function_names(functions: Iterable[Function]) -> dict[Function, str]:
    """What each fused function is called: after its kind."""
    unique = Names().unique
    return {fn: unique(fn.kind.replace("-", "_")) for fn in functions}


def functions_of(graph: Graph) -> list[Function]:
    """The functions that a graph calls, each once, in order of first call."""
    return list(dict.fromkeys(n.function for n in graph.nodes() if n.op == "call"))


def print_graph(graph: Graph) -> str:
    """The text of a whole graph; `frontend.parser.parse_graph` gives the same nodes again."""
    nodes = graph.nodes()
    functions = function_names(functions_of(graph))
    names = value_names(graph)
    printer = _Printer(functions, names)
    kernels = [_function(fn, name, nodes, printer) for fn, name in functions.items()]
    leaves = [n for n in nodes if n.op in LEAVES and n.op != "const"]
    rest = [n for n in nodes if n.op not in LEAVES]
    body = printer.statements([*leaves, *rest], graph.roots)
    body.append("return " + ", ".join(_result(n, printer.value(v)) for n, v in graph.results))
    return "\n".join([*kernels, _block("kernel forward()", body)])


def value_names(graph: Graph) -> dict[Value, str]:
    """A name for every value: its own, legal and unique, else one after its op."""
    unique = Names(RESERVED).unique
    values = [n.result(i) for n in graph.nodes() for i in range(len(n.types))]
    named = {v: unique(legal(name)) for v in values if (name := graph.name(v)) is not None}
    return {v: named.get(v) or unique(_layer(graph.note(v.node)) + _telling(v)) for v in values}


def ir_lines(node: Node, names: dict[Value, str]) -> list[str]:
    """The IR of one node: its statement, or the whole fused function that it calls."""
    if node.op != "call":
        return [_Printer({}, names).statement(node)]
    functions = function_names([node.function])
    text = _function(node.function, functions[node.function], [node], _Printer(functions, names))
    return text.rstrip("\n").split("\n")


def _telling(v: Value) -> str:
    """A name for a value without one: after the weight that makes it, else after its op."""
    made, table = v, dict[Value, Value]()
    if v.node.op == "call":
        made = v.node.function.results[v.index]
        table = {
            p.result(): o for p, o in zip(v.node.function.params, v.node.operands, strict=True)
        }
    while made.node.op in ("add", "mul") and len(made.node.operands) == 2:
        inside = [o for o in made.node.operands if o.node.op in ("add", "mul", "linear")]
        if not inside:
            break
        made = inside[0]
    for o in made.node.operands if made.node.op in ("linear", "expert_linear") else ():
        leaf = table.get(o, o).node
        if leaf.op == "weight":
            pieces = [p for p in str(leaf.attr("name")).split(".") if p not in ("weight", "bias")]
            return f"{legal(pieces[-1])}_out"
    return _after_op(v.node)


def _layer(note: Note) -> str:
    """`l3.` for what one layer alone computes, from the loop indices of its origins."""
    loops = {tuple(f.loop for f in origin if f.loop is not None) for origin in note.origins}
    (indices,) = loops if len(loops) == 1 else ((),)
    return f"l{'_'.join(map(str, indices))}." if indices else ""


def legal(name: str) -> str:
    """A name of letters, digits, _ and dots between pieces."""
    pieces = (re.sub(r"\W|^(?=\d)", "_", piece, flags=re.ASCII) for piece in name.split("."))
    return ".".join(piece or "_" for piece in pieces)


def _after_op(n: Node) -> str:
    return n.function.kind.replace("-", "_") if n.op == "call" else n.op


def _result(name: str, value: str) -> str:
    return value if name == value else f"{name} = {value}"


def _block(head: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{head} {{", *(f"  {line}" for line in lines), "}", ""])


def _function(fn: Function, name: str, nodes: Sequence[Node], printer: _Printer) -> str:
    """A fused function, its values called as at its first call, without layers and defs."""
    first = next(n for n in nodes if n.op == "call" and n.function is fn)
    unique = Names(RESERVED).unique
    outside = dict(zip(fn.results, map(first.result, range(len(fn.results))), strict=True))
    outside |= {p.result(): v for p, v in zip(fn.params, first.operands, strict=True)}
    inside = [n.result(i) for n in (*fn.params, *fn.body) for i in range(len(n.types))]
    names = {v: unique(_inner(v, outside, printer.names)) for v in inside}
    inner = _Printer(printer.functions, names)
    params = ", ".join(f"{names[p.result()]}: {p.types[0]}" for p in fn.params)
    body = inner.statements(fn.body, fn.results)
    body.append("return " + ", ".join(map(inner.value, fn.results)))
    return _block(f"kernel {name}({params})", body)


def _inner(v: Value, outside: dict[Value, Value], names: dict[Value, str]) -> str:
    if v not in outside:
        return _after_op(v.node)
    piece = names.get(outside[v], "constant").rpartition(".")[2]
    return re.sub(r"_\d+$", "", piece) or piece


class _Printer:
    """Statements of one kernel."""

    def __init__(self, functions: dict[Function, str], names: dict[Value, str]) -> None:
        self.functions, self.names = functions, dict(names)
        self.unique = Names((*RESERVED, *names.values())).unique
        self.inline: set[Value] = set()

    def statements(self, nodes: Sequence[Node], roots: Sequence[Value]) -> list[str]:
        apart = dict.fromkeys(v for v in roots if v.node.op == "const")
        for n in nodes:
            apart |= dict.fromkeys(v for v in n.operands if not _is_inline(n, v))
        self.names |= {v: self.unique("constant") for v in apart}
        consts = [f"{self.names[v]}: {v.type} = {_number(v)}" for v in apart]
        leaves = [self.statement(n) for n in nodes if n.op in LEAVES]
        return [*leaves, *consts, *(self.statement(n) for n in nodes if n.op not in LEAVES)]

    def statement(self, n: Node) -> str:
        results = [n.result(i) for i in range(len(n.types))]
        targets = ", ".join(f"{self.names[v]}: {v.type}" for v in results)
        return f"{targets} = {self.expression(n)}"

    def expression(self, n: Node) -> str:
        if n.op in LEAVES:
            return f"{n.op}({quoted(str(n.attr('name')))})"
        operands = [self.operand(n, v) for v in n.operands]
        if n.op == "call":
            return f"{self.functions[n.function]}({', '.join(operands)})"
        if n.op in INFIX:
            return f"{operands[0]} {INFIX[n.op]} {operands[1]}"
        return f"{n.op}({', '.join(arguments(get(n.op), operands, dict(n.attrs)))})"

    def operand(self, n: Node, v: Value) -> str:
        return _number(v) if v.node.op == "const" and _is_inline(n, v) else self.value(v)

    def value(self, v: Value) -> str:
        return self.names[v]


def _is_inline(n: Node, v: Value) -> bool:
    """Whether a reader gives a bare number in v's place its dtype; true of what is no constant."""
    if v.node.op != "const":
        return True
    beside = [o.type.dtype for o in n.operands if o.node.op != "const"]
    number = next((d for d in beside if d in ELEMENT_BYTES), None)
    return n.op == "call" or number == v.type.dtype


def _number(v: Value) -> str:
    value = v.node.attr("value")
    assert isinstance(value, int | float)
    return number(value)


def number(value: int | float) -> str:
    """The shortest text that reads back the same; `inf` and `nan` are names of the language."""
    if isinstance(value, float) and not isfinite(value):
        return {"inf": "inf", "-inf": "-inf"}.get(repr(value), "nan")
    return repr(value)


def quoted(text: str) -> str:
    """A text of the language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def arguments(op: Op, operands: Sequence[str], attrs: dict[str, Attr | Function]) -> list[str]:
    """A call's arguments: operands by position as far as the signature has no gap, then by name."""
    slots = bound(op, operands, {})
    places: list[str] = []
    words: list[str] = []
    gap = False
    for p in op.params:
        if p.kind == "rows":
            places.append(slots[p.name])
        elif p.variadic:
            places += slots[p.name] if p.is_operand else _dims(attrs[p.name])
        elif not p.is_operand:
            gap = True
            words += _attribute(p, attrs[p.name])
        elif slots[p.name] is None:
            gap = True
        else:
            (words if gap else places).append(f"{p.name}={slots[p.name]}" if gap else slots[p.name])
    return [*places, *words]


def _dims(attr: Attr | Function) -> list[str]:
    assert isinstance(attr, tuple)
    return [str(dim) for dim in attr]


def _attribute(p: Param, attr: Attr | Function) -> list[str]:
    """`name=value`, left out where it is the default."""
    assert isinstance(attr, int | float | str)
    if repr(attr) == repr(p.default):
        return []
    return [f"{p.name}={attr if isinstance(attr, str) else number(attr)}"]
