"""Parameters of an emitted kernel and arguments of its launch, gathered as its text needs them.

Of a fused call the text names a function's values; they are called after the values that the
first call passes and gives, so that equal layers share one kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from codegen.expr import identifier, literal, pointer
from codegen.kernel import Arg, Context, Param
from compiler import ops
from compiler.graph import LEAVES, Node, Value


@dataclass
class Arguments:
    """params and args in the order of `read` and `write`; each value once.

    taken: names that the kernel's text uses itself.
    """

    node: Node
    context: Context
    taken: set[str]
    params: list[Param] = field(default_factory=list[Param])
    args: list[Arg] = field(default_factory=list[Arg])
    names: dict[Value, str] = field(default_factory=dict[Value, str])
    matrices: dict[Value, str] = field(default_factory=dict[Value, str])  # read in tiles

    def __post_init__(self) -> None:
        self._actual = _outside(self.node)
        self._named = _outside(self.context.namesake(self.node))

    @property
    def members(self) -> tuple[Node, ...]:
        """What the kernel computes, in program order."""
        return self.node.function.body if self.node.op == "call" else (self.node,)

    @property
    def results(self) -> tuple[Value, ...]:
        """Its results, as values of the members."""
        if self.node.op == "call":
            return self.node.function.results
        return tuple(self.node.result(i) for i in range(len(self.node.types)))

    def actual(self, value: Value) -> Value:
        """The caller's value of a parameter or result; other values are themselves."""
        return self._actual.get(value, value)

    def name(self, value: Value, base: str = "") -> str:
        """The identifier of a value: `base`, or after what the caller calls it, or after its op."""
        if value not in self.names:
            self.names[value] = self._fresh(value, base)
        return self.names[value]

    def _fresh(self, value: Value, base: str) -> str:
        return identifier(base or self.called(value), self.taken)

    def called(self, value: Value) -> str:
        """What the first caller calls a value, or what it is a view of; else its op."""
        outer = self._named.get(value, value)
        while _is_view(outer.node):
            outer = outer.node.operands[0]
        return self.context.names.get(outer, value.node.op)

    def spell(self, value: Value) -> str:
        """The same, or a constant's literal."""
        if value.node.op != "const":
            return self.name(value)
        number = value.node.attr("value")
        assert isinstance(number, int | float)
        return literal(number, value.type.dtype)

    def read(self, value: Value, base: str = "", kind: str = "value") -> str:
        """The parameter of a value that the kernel reads; kind as of Arg.

        A value that is also the matrix of a projection is there twice: row by row and in tiles.
        """
        table = self.matrices if kind == "weight" else self.names
        if value not in table:
            table[value] = self._fresh(value, base)
            self.given(value, table[value], kind)
        return table[value]

    def given(self, value: Value, name: str, kind: str = "value") -> None:
        """A parameter that the kernel's text calls `name`, one of `taken`."""
        ctype = "const uint8_t*" if kind == "weight" else pointer(value.type)
        self.params.append(Param(ctype, name))
        self.args.append(Arg(kind, self.actual(value)))

    def step(self, rows: Value) -> None:
        """The Step parameter; `rows` is a value of the rows that it tells of."""
        self.params.append(Param("const Step*", "step"))
        self.args.append(Arg("rows", self.actual(rows)))

    def write(self, value: Value, base: str, kind: str = "value") -> str:
        """The parameter, `base`_out, of a result that the kernel writes."""
        name = identifier(f"{base}_out", self.taken)
        self.params.append(Param(pointer(value.type, True), name))
        self.args.append(Arg(kind, self.actual(value), writes=True))
        return name


def _outside(node: Node) -> dict[Value, Value]:
    """A call's inner values -> the caller's: parameters and results."""
    if node.op != "call":
        return {}
    params = zip((p.result() for p in node.function.params), node.operands, strict=True)
    return {**dict(params), **{v: node.result(i) for i, v in enumerate(node.function.results)}}


def _is_view(node: Node) -> bool:
    return node.op not in ("call", *LEAVES) and "view" in ops.get(node.op).traits
