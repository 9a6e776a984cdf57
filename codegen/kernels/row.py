"""Kernels that work within rows: elementwise ops, norms, softmax, reductions, quantize, and every
fusion of them.

One block a row where something is reduced over it; else blocks share a row's columns. A result may
take over the buffer of an operand of the row's shape that each thread has read before it stores
anything.
"""

from __future__ import annotations

from codegen.expr import (
    grid_count,
    identifier,
    is_dynamic,
    is_dynamic_shape,
    literal,
    pointer,
    row_count,
)
from codegen.kernel import Arg, Context, Grid, Kernel, Launch, Param, Refusal
from codegen.kernels import row_text
from codegen.kernels.row_steps import Once, steps_of
from compiler import ops
from compiler.graph import Function, Node, Value, function, param
from compiler.types import Dim, Type, size

CHUNK_THREADS = 256
LONGEST = 262144  # a row that is reduced: codegen/lib/rows.cuh, tree_reduce
GATHERS = {"embed": ("value", "weight"), "wanted": ("value", "rows")}  # operands, as of Arg
DROPS_AXIS = ("sum", "mean", "max")  # reductions whose result has no last axis


def plan(node: Node, context: Context) -> Launch:
    """The launch of an elementwise, row-wise or fused node."""
    fn = node.function if node.op == "call" else _alone(node)
    shape = _row_shape(fn)
    width = shape[-1] if shape else 1
    if not isinstance(width, int):
        raise Refusal(f"{fn.kind} needs rows of a fixed width, got {Type('f32', shape)}")
    names = _Names(fn, context.namesake(node), context)
    steps = [s for member in fn.body for s in steps_of(member, names, width)]
    whole = any(isinstance(s, Once) and s.over for s in steps)
    if whole and width > LONGEST:
        raise Refusal(f"{fn.kind} takes rows of at most {LONGEST}, got {Type('f32', shape)}")
    threads = _threads(width) if whole else min(_threads(width), CHUNK_THREADS)
    text = row_text.text(steps, names.rows(shape, whole))
    kinds = _gathered(fn)
    dynamic = "rows" in kinds.values() or is_dynamic(*(p.result() for p in fn.params), *fn.results)
    rows, per = _rows(shape)
    kernel = Kernel(
        "row.cu.j2",
        _base(fn, node),
        ("int D", "int THREADS", *(("int PER",) if per else ())),
        (*([Param("const Step*", "step")] if dynamic else ()), *names.parameters()),
        (("rows", rows), ("body", text)),
    )
    passed = zip(fn.params, _passed(node), strict=True)
    read = {names(p.result()): (p.result(), v) for p, v in passed if p.result() in names.read}
    early = row_text.read_first(text, read)
    args = (
        *([Arg("rows", node.operands[0])] if dynamic else ()),
        *(Arg(kinds.get(p, "value"), v) for p, v in read.values()),
        *(Arg("value", node.result(i), writes=True) for i in range(len(node.types))),
    )
    chunks = "1" if whole else str(-(-width // (4 * threads)))
    return Launch(
        kernel,
        (str(width), str(threads), *((str(per),) if per else ())),
        args,
        Grid(grid_count(shape or (1,)), chunks),
        str(threads),
        str(8 * -(-width // (4 * threads)) * (threads // 32)) if whole else "0",
        tuple(
            v
            for name, (p, v) in read.items()
            if v.type.shape == shape and name in early and p not in kinds
        ),
    )


def _rows(shape: tuple[Dim, ...]) -> tuple[str, int]:
    """How many rows, as text in which PER is the fixed part, and that part (0: there is none)."""
    fixed = size(tuple(d for d in shape[:-1] if isinstance(d, int)))
    counts = row_count((*(d for d in shape[:-1] if isinstance(d, str)), 1))
    if not is_dynamic_shape(shape[:-1]):
        return "PER", fixed
    return (f"{counts} * PER", fixed) if fixed != 1 else (counts, 0)


def _passed(node: Node) -> list[Value]:
    """The operands that the kernel's parameters stand for; constants are in its text."""
    return [v for v in node.operands if v.node.op != "const"]


def _alone(node: Node) -> Function:
    """A single op as a function of its operands; constants stay inside."""
    params: list[Node] = []
    inside: list[Value] = []
    for v in node.operands:
        if v.node.op == "const":
            inside.append(v)
        else:
            params.append(param(len(params), v.type))
            inside.append(params[-1].result())
    attrs = {k: v for k, v in node.attrs if not isinstance(v, Function)}
    member = ops.build(node.op, inside, attrs)
    results = [member.result(i) for i in range(len(member.types))]
    return function(node.op, params, [member], results)


def _row_shape(fn: Function) -> tuple[Dim, ...]:
    """The shape whose rows the blocks take: the widest of all members' operands and results."""
    gathered = _gathered(fn)
    values = (v for m in fn.body for v in (*m.operands, m.result()))
    shapes = [v.type.shape for v in values if v not in gathered]
    return max(shapes, key=lambda s: (size(s, 2, 2), len(s)))


def _gathered(fn: Function) -> dict[Value, str]:
    """Operands that a kernel reads in ways of its own, and their kinds as of Arg."""
    return {
        v: kind for m in fn.body for v, kind in zip(m.operands, GATHERS.get(m.op, ()), strict=False)
    }


def _threads(width: int) -> int:
    threads = 32
    while threads < 1024 and threads * 4 < width:
        threads *= 2
    return threads


def _base(fn: Function, node: Node) -> str:
    return fn.kind.replace("-", "_") if node.op == "call" else node.op


class _Names:
    """Identifiers of a function's values: parameters after the caller's values, members after
    results or ops."""

    def __init__(self, fn: Function, node: Node, context: Context) -> None:
        self.fn, self.table, taken = fn, dict[Value, str](), set[str]()
        named = {v: node.result(i) for i, v in enumerate(fn.results)} if node.op == "call" else {}
        outer = _passed(node)
        short = node.op != "call"
        letters = [p.name for p in _operands(node)] if short else []
        for i, p in enumerate(fn.params):
            name = letters[i] if short else context.names.get(outer[i], f"p{i}")
            self.table[p.result()] = identifier(name, taken)
        for member in fn.body:
            for i in range(len(member.types)):
                v = member.result(i)
                name = context.names.get(named[v], member.op) if v in named else member.op
                self.table[v] = identifier("y" if short else name, taken)

    def __call__(self, value: Value) -> str:
        if value.node.op == "const":
            number = value.node.attr("value")
            assert isinstance(number, int | float)
            return literal(number, value.type.dtype)
        return self.table[value]

    @property
    def read(self) -> list[Value]:
        """The parameters that the kernel has, but for the Step."""
        used = {v for m in self.fn.body for v in m.operands}
        steps = {v for v, kind in _gathered(self.fn).items() if kind == "rows"}
        return [p.result() for p in self.fn.params if p.result() in used - steps]

    def rows(self, shape: tuple[Dim, ...], whole: bool) -> row_text.Rows:
        """The surroundings of the kernel's text."""
        dropped = {v for v in self.fn.results if v.node.op in DROPS_AXIS}
        return row_text.Rows(
            {self(v): v.type for v in self.read if v not in _gathered(self.fn)},
            {self(v): v.type for v in self.fn.results},
            shape or (1,),
            whole,
            frozenset(self(v) for v in dropped),
        )

    def parameters(self) -> tuple[Param, ...]:
        tiles = {v for v, kind in _gathered(self.fn).items() if kind == "weight"}
        kinds = {v: "const uint8_t*" if v in tiles else pointer(v.type) for v in self.read}
        reads = [Param(kind, self(v)) for v, kind in kinds.items()]
        return (*reads, *(Param(pointer(v.type, True), f"{self(v)}_out") for v in self.fn.results))


def _operands(node: Node) -> list[ops.Param]:
    params = [p for p in ops.get(node.op).params if p.is_operand]
    return [p for p, v in zip(params, node.operands, strict=False) if v.node.op != "const"]
