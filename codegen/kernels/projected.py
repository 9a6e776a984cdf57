"""Projections of one activation whose outputs are worked on where they are made.

A block has one or more dots for each of its outputs; elementwise members follow value by value,
quantize and square_sums take groups of 32 outputs, which are the lanes of a warp. All members are
data: this file names no fusion.
"""

from __future__ import annotations

import re

from codegen.expr import STRUCTS, identifier, literal
from codegen.kernel import Context, Grid, Kernel, Launch, Refusal
from codegen.kernels.projection import LinearShape, Signature, check_weight, group_of
from codegen.kernels.row_steps import Each, Group, steps_of
from compiler.graph import Node, Value

AHEAD = {"at": "block, first, rows", "n": "block"}  # a row of outputs, or one value an output
WARP_HELPERS = {"quantize": "quantize_warp", "square_sums": "square_sum_warp"}


def plan(node: Node, context: Context) -> Launch:
    """The launch of a fused projection."""
    body = node.function.body
    linears = [m for m in body if m.op == "linear"]
    _check(linears)
    x, weight = linears[0].operands
    n, k = weight.type.shape
    assert isinstance(n, int) and isinstance(k, int)
    signature = Signature(node, context, x)
    weights = tuple(signature.read(m.operands[1], kind="weight") for m in linears)
    grouped = any(m.op in WARP_HELPERS for m in body)
    if grouped and n % 32:
        raise Refusal(f"groups of 32 outputs are needed, got {n} outputs")
    work = _Lines(node, context, signature, n)
    lines = work.text()
    shape, group = LinearShape.of(k, 32 if grouped else 8), group_of(x.type.shape)
    kernel = Kernel(
        "projected.cu.j2",
        f"{node.function.kind.replace('-', '_')}_{'_'.join(weights)}",
        (
            *("int N", "int K", "int ROW_TILES", "int WARPS", "int ROWS"),
            *(f"class W{i}" for i in range(len(weights))),
        ),
        tuple(signature.params),
        (
            ("rows", signature.rows),
            ("weights", weights),
            ("early", (*signature.early, *work.ahead)),
            ("folds", tuple(signature.folds)),
            ("lines", lines),
        ),
    )
    count = signature.rows.replace("step->", "")
    return Launch(
        kernel,
        (
            *(str(n), str(k), str(shape.row_tiles), str(shape.warps), group),
            *(STRUCTS[m.operands[1].type.dtype] for m in linears),
        ),
        tuple(signature.args),
        Grid(f"ceil_div({n}, {shape.outputs})", f"ceil_div({count}, {group})"),
        str(32 * shape.warps),
        shape.shared(group, len(weights), len(signature.factors)),
        _taken_over(lines, signature),
    )


def _taken_over(lines: tuple[str, ...], signature: Signature) -> tuple[Value, ...]:
    """Operands whose element at `at` a thread has read before it stores anything.

    Not the activation: other blocks read it too.
    """
    first = next(i for i, line in enumerate(lines) if re.match(r"\w+\[at\] =|\w+_warp<", line))
    early = {found for line in lines[:first] for found in re.findall(r": (\w+)\[at\];$", line)}
    pairs = zip(signature.params, signature.args, strict=True)
    return tuple(a.value for p, a in pairs if p.name in early and p.name != "x")


def _check(linears: list[Node]) -> None:
    first = linears[0]
    for m in linears:
        check_weight("linear", m.operands[1])
        if m.operands[0] != first.operands[0] or m.types != first.types:
            raise Refusal("projections of one launch need one activation and equally many outputs")


class _Lines:
    """What happens to one output of one row, as text."""

    def __init__(self, node: Node, context: Context, signature: Signature, n: int) -> None:
        self.node, self.fn, self.signature, self.n = node, node.function, signature, n
        self.results = {v: i for i, v in enumerate(self.fn.results)}
        self.outer = {v: context.namesake(node).result(i) for v, i in self.results.items()}
        self.context = context
        self.values: dict[Value, str] = {}
        self.out: list[str] = []
        self.dots = 0
        self.ahead: list[str] = []  # operands that are read before the dots

    def text(self) -> tuple[str, ...]:
        self.calls = {m: self._member(m) for m in self.fn.body if m.op != "root_factor"}
        at = "const size_t at = size_t(first + r) * N + n;"
        return ((at,) if any("[at]" in line for line in self.out) else ()) + tuple(self.out)

    def _name(self, v: Value) -> str:
        base = self.context.names.get(self.outer[v], v.node.op) if v in self.outer else v.node.op
        self.values[v] = identifier(base, self.signature.taken)
        return self.values[v]

    def _member(self, m: Node) -> None:
        v = m.result()
        if m.op == "linear":
            name = self._name(v)
            self.out.append(f"const float {name} = folded_dot(s.partials[{self.dots}], r, output);")
            self.dots += 1
            self._store(v, name)
            return
        for operand in m.operands:
            self._load(operand)
        for step in steps_of(m, self._spell, self.n):
            if isinstance(step, Each):
                text = step.text.format(*step.operands)
                self.out.append(f"const {step.ctype} {step.out} = {text};")
                self._store(v, step.out)
            elif isinstance(step, Group):
                name = self.signature.write(v, step.out)
                helper = WARP_HELPERS[step.helper]
                self.out.append(f"{helper}<N>({step.operand}, first + r, n, {name});")
            else:
                raise Refusal(f"{m.op} does not work output by output")

    def _store(self, v: Value, name: str) -> None:
        if v in self.results:
            self.out.append(f"{self.signature.write(v, name)}[at] = {name};")

    def _load(self, v: Value) -> None:
        """Operands from outside: a row of outputs, one value an output, or one a row."""
        if v in self.values or v.node.op == "const":
            return
        shape = v.type.shape
        if shape and shape[-1] == 1 and self.n != 1:
            self.values[v] = self.signature.factor(v)
            return
        name = self.signature.read(v)
        self.values[v] = identifier(f"{name}_n", self.signature.taken)
        if all(dim == 1 for dim in shape):  # one value for all
            self.out.append(f"const float {self.values[v]} = {name}[0];")
            return
        place = "at" if len(shape) > 1 else "n"
        ahead = f"{name}_ahead"
        self.ahead.append(f"const auto {ahead} = read_ahead<N, L, ROWS>({name}, {AHEAD[place]});")
        value = f"{ahead}.there ? {ahead}.value : {name}[{place}]"
        self.out.append(f"const float {self.values[v]} = {value};")

    def _spell(self, v: Value) -> str:
        if v.node.op == "const":
            number = v.node.attr("value")
            assert isinstance(number, int | float)
            return literal(number, v.type.dtype)
        return self.values.get(v) or self._name(v)
