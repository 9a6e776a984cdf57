"""`moe-route`: the choice of experts, and what is made of scores and picks; a warp a row.

Values of a column each are registers, held as each_value holds a row; a value of one a row is a
plain variable that every thread has.
"""

from __future__ import annotations

import re

from codegen.elements import check_elements, fixed, integer
from codegen.expr import grid_count, identifier, is_dynamic, row_count
from codegen.kernel import Context, Grid, Kernel, Launch, Refusal
from codegen.kernels.arguments import Arguments
from codegen.kernels.row_steps import Each, Group, Once, steps_of
from compiler.graph import Node, Value

WIDEST, MOST = 1024, 128  # scores and picks of a row that a warp holds
THREADS = 32


def plan(node: Node, context: Context) -> Launch:
    """The launch of a fused choice."""
    top_k = next(m for m in node.function.body if m.op == "top_k")
    scores = top_k.operands[0].type
    check_elements("moe-route", context, scores)
    width, picks = fixed(scores.shape[-1], "moe-route"), integer(top_k, "k")
    if width > WIDEST or picks > MOST:
        raise Refusal(f"moe-route holds at most {WIDEST} scores and {MOST} picks, got {scores}")
    arguments = Arguments(node, context, {"row", "score", "pick"})
    if is_dynamic(top_k.result()):
        arguments.step(top_k.result())
    lines = _Lines(arguments, top_k).text()
    kernel = Kernel(
        "moe_route.cu.j2",
        "moe_route",
        ("int E", "int K", "int THREADS"),
        tuple(arguments.params),
        (("rows", row_count(scores.shape)), ("lines", lines)),
    )
    sizes = (str(width), str(picks), str(THREADS))
    parts = max(-(-w // (4 * THREADS)) for w in (width, picks))  # what row_sum exchanges, in floats
    grid = Grid(grid_count(scores.shape))
    return Launch(kernel, sizes, tuple(arguments.args), grid, str(THREADS), str(4 * parts))


class _Lines:
    """The members one after another, as text."""

    def __init__(self, arguments: Arguments, top_k: Node) -> None:
        self.arguments = arguments
        self.sizes = {top_k.types[0].shape[-1]: "K", top_k.operands[0].type.shape[-1]: "E"}
        namesake = arguments.context.namesake(arguments.node)
        self.outer = {v: namesake.result(i) for i, v in enumerate(arguments.results)}
        self.spelled: dict[Value, str] = {}
        self.width: dict[str, int] = {}  # of names with a value a column
        self.out: list[str] = []

    def text(self) -> tuple[str, ...]:
        for m in self.arguments.members:
            for v in m.operands:
                self._load(v)
            if m.op == "heads":  # one head: the same values
                self.spelled[m.result()] = self.spelled[m.operands[0]]
            elif m.op == "top_k":
                self._top_k(m)
            else:
                width = _width(m.operands[0])
                for step in steps_of(m, self._spell, width):
                    self._step(step, width)
            for i in range(len(m.types)):
                self._store(m.result(i))
        return tuple(self.out)

    def _size(self, width: int) -> str:
        return self.sizes.get(width, str(width))

    def _each(self, width: int, line: str) -> None:
        column = "int d" if re.search(r"\bd\b", line) else "int"
        self.out.append(
            f"each_value<{self._size(width)}, THREADS>([&](int i, {column}) {{ {line} }});"
        )

    def _declare(self, name: str, width: int, ctype: str = "float") -> None:
        self.width[name] = width
        self.out.append(f"{ctype} {name}[ROW_VALUES<{self._size(width)}, THREADS>];")

    def _column(self, name: str) -> str:
        """The name of a row of values; a single one becomes a row of one."""
        if name in self.width:
            return name
        row = identifier(f"{name}_column", self.arguments.taken)
        self._declare(row, 1)
        self._each(1, f"{row}[i] = {name};")
        return row

    def _load(self, v: Value) -> None:
        """Operands from outside: a value a column of each row or of all, one a row, or one."""
        if v in self.spelled or v.node.op == "const":
            return
        name, width, of_rows = self.arguments.read(v), _width(v), v.type.rank > 1
        self.spelled[v] = identifier(f"{name}_{'row' if of_rows else 'all'}", self.arguments.taken)
        if width == 1:
            self.out.append(f"const float {self.spelled[v]} = {name}[{'row' if of_rows else '0'}];")
            return
        self._declare(self.spelled[v], width)
        at = f"size_t(row) * {self._size(width)} + d" if of_rows else "d"
        self._each(width, f"{self.spelled[v]}[i] = {name}[{at}];")

    def _top_k(self, m: Node) -> None:
        scores = self._column(self.spelled[m.operands[0]])
        values, index = self._spell(m.result(0)), self._spell(m.result(1))
        self._declare(values, _width(m.result(0)))
        self._declare(index, _width(m.result(1)), "int")
        self.out.append(f"top_k_of_warp<E, K>({scores}, {values}, {index});")

    def _step(self, step: Each | Once | Group, width: int) -> None:
        if isinstance(step, Group):
            raise Refusal(f"moe-route does not {step.helper}")
        if isinstance(step, Once):
            operands = [self._column(n) if step.over else n for n in step.operands]
            text = re.sub(r"\bD\b", self._size(width), step.text.format(*operands))
            self.out.append(f"const {step.ctype} {step.out} = {text};")
            return
        columns = [self.width[n] for n in step.operands if n in self.width]
        operands = [f"{n}[i]" if n in self.width else n for n in step.operands]
        text = step.text.format(*operands)
        if columns:
            self._declare(step.out, columns[0], step.ctype)
            self._each(columns[0], f"{step.out}[i] = {text};")
        else:
            self.out.append(f"const {step.ctype} {step.out} = {text};")

    def _store(self, v: Value) -> None:
        if v not in self.outer:
            return
        name = self.spelled[v]
        out = self.arguments.write(v, name)
        if name in self.width:
            width = self.width[name]
            self._each(width, f"{out}[size_t(row) * {self._size(width)} + d] = {name}[i];")
        else:
            self.out.append(f"if (threadIdx.x == 0) {out}[row] = {name};")

    def _spell(self, v: Value) -> str:
        """The identifier of a value, or a constant's literal."""
        if v.node.op == "const":
            return self.arguments.spell(v)
        if v not in self.spelled:
            called = self.arguments.context.names.get(self.outer.get(v, v), v.node.op)
            self.spelled[v] = identifier(called, self.arguments.taken)
        return self.spelled[v]


def _width(v: Value) -> int:
    width = v.type.shape[-1] if v.type.shape else 1
    assert isinstance(width, int)
    return width
