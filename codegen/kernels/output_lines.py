"""What a fused kernel does with each output where it is made, as text.

Elementwise members follow value by value; quantize and square_sums take groups of 32 outputs, which
are the lanes of a warp. All members are data: this file names no fusion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from codegen.expr import identifier
from codegen.kernel import Refusal
from codegen.kernels.arguments import Arguments
from codegen.kernels.row_steps import Each, Group, steps_of
from compiler.graph import Node, Value

WARP_HELPERS = {
    "quantize": "quantize_warp",
    "square_sums": "square_sum_warp",
    "choice_keys": "choice_key_warp",
}


def is_grouped(body: Sequence[Node], outputs: int) -> bool:
    """Whether members take groups of 32 outputs; Refusal where rows are not made of such."""
    grouped = any(m.op in WARP_HELPERS for m in body)
    if grouped and outputs % 32:
        raise Refusal(f"groups of 32 outputs are needed, got {outputs} outputs")
    return grouped


@dataclass(frozen=True)
class Place:
    """Where the kernel is: `row` spells the output's row, `n` (of `outputs`) is its column.

    made: the members that it makes itself, and one output of each as text. factor: how it spells a
    value that a row has one of. ahead: how operands `at` an output or of a column `n` are read
    before the dots, as text of a `{}`; absent where they are read in place.
    """

    row: str
    outputs: int
    made: Mapping[Node, str]
    factor: Callable[[Value], str]
    ahead: Mapping[str, str] = field(default_factory=dict[str, str])


class OutputLines:
    """What happens to one output of one row, as text; parameters are added to `arguments`.

    ahead: text that reads operands before the dots. first: operands of which a thread has read its
    output's element before it stores anything.
    """

    def __init__(self, arguments: Arguments, place: Place) -> None:
        node, context = arguments.node, arguments.context
        self.arguments, self.place, self.names = arguments, place, context.names
        namesake = context.namesake(node)
        self.outer = {v: namesake.result(i) for i, v in enumerate(node.function.results)}
        self.shapes = {m.result().type.shape for m in place.made}
        self.values: dict[Value, str] = {}
        self.out: list[str] = []
        self.ahead: list[str] = []
        self.first: list[Value] = []
        self.stores = False

    def text(self) -> tuple[str, ...]:
        for m in self.arguments.members:
            if m.op != "root_factor":  # the kernel has the factors of its rows
                self._member(m)
        at = f"const size_t at = size_t({self.place.row}) * N + n;"
        return ((at,) if any("[at]" in line for line in self.out) else ()) + tuple(self.out)

    def _name(self, v: Value) -> str:
        base = self.names.get(self.outer[v], v.node.op) if v in self.outer else v.node.op
        self.values[v] = identifier(base, self.arguments.taken)
        return self.values[v]

    def _member(self, m: Node) -> None:
        v = m.result()
        if m in self.place.made:
            name = self._name(v)
            self.out.append(f"const float {name} = {self.place.made[m]};")
            self._store(v, name)
            return
        for operand in m.operands:
            self._load(operand)
        for step in steps_of(m, self._spell, self.place.outputs):
            if isinstance(step, Each):
                text = step.text.format(*step.operands)
                self.out.append(f"const {step.ctype} {step.out} = {text};")
                self._store(v, step.out)
            elif isinstance(step, Group):
                name = self._write(v, step.out)
                helper = WARP_HELPERS[step.helper]
                self.out.append(f"{helper}<N>({step.operand}, {self.place.row}, n, {name});")
            else:
                raise Refusal(f"{m.op} does not work output by output")

    def _store(self, v: Value, name: str) -> None:
        if v in self.outer:
            asked = "if (step->keep_logits) " if self._is_on_request(v) else ""
            self.out.append(f"{asked}{self._write(v, name)}[at] = {name};")

    def _is_on_request(self, v: Value) -> bool:
        return self.arguments.actual(v) in self.arguments.context.on_request

    def _write(self, v: Value, name: str) -> str:
        self.stores = True
        return self.arguments.write(v, name)

    def _load(self, v: Value) -> None:
        """Operands from outside: rows of outputs, or one value an output, a row or in all."""
        if v in self.values or v.node.op == "const":
            return
        shape = v.type.shape
        if len(shape) > 1 and shape[-1] == 1 and shape not in self.shapes:
            self.values[v] = self.place.factor(v)
            return
        name = self.arguments.read(v)
        self.values[v] = identifier(f"{name}_n", self.arguments.taken)
        place = "0" if all(dim == 1 for dim in shape) else "at" if len(shape) > 1 else "n"
        if place == "at" and not self.stores:
            self.first.append(v)
        value = f"{name}[{place}]"
        if place in self.place.ahead:
            ahead, read = f"{name}_ahead", self.place.ahead[place].format(name)
            self.ahead.append(f"const auto {ahead} = {read};")
            value = f"{ahead}.there ? {ahead}.value : {value}"
        self.out.append(f"const float {self.values[v]} = {value};")

    def _spell(self, v: Value) -> str:
        if v.node.op == "const":
            return self.arguments.spell(v)
        return self.values.get(v) or self._name(v)
