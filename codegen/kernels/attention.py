"""`attention`: a block for each row and head; each of its warps takes a page of 64 positions.

The pages are folded in order, a round of warps at a time, so that the context has no limit. Of a
single row several blocks share each head's pages, and the last to arrive folds. `attention-quant`
is the same with an epilogue: a thread has a column of the result, so that elementwise ops go on
with it, and a warp has a group of 32 to quantize.
"""

from __future__ import annotations

from codegen.elements import check_elements, fixed, integer, real
from codegen.expr import float_literal, grid_count, row_count
from codegen.kernel import Context, Grid, Kernel, Launch, Refusal
from codegen.kernels.arguments import Arguments
from codegen.kernels.row_steps import Each, steps_of
from compiler.graph import Node, Value
from compiler.ops.attention import scale_of
from compiler.types import GROUP, ROWS, Dim

WIDEST = 256  # of a head: a thread of the smallest block owns a column of the result
GRID_Y = 65535
WARPS = 8
MOST_SPLITS = 16
NAMES = {
    "q",
    "k",
    "v",
    "score",
    "attend",
    "s",
    "at",
    "d",
    "end",
    "pages",
    "page",
    "alone",
    "result",
    "head",
    "kv",
    "warp",
    "stored",
}


def plan(node: Node, context: Context) -> Launch:
    """The launch of an `attention`, or of an `attention-quant` call."""
    to = Arguments(node, context, set(NAMES))
    attention = next(m for m in to.members if m.op == "attention")
    q, k, v, *sinks, rows = attention.operands
    check_elements("attention", context, q.type)
    heads, width = (fixed(d, "attention") for d in q.type.shape[1:])
    groups = fixed(k.type.shape[0], "attention")
    if width > WIDEST or heads > GRID_Y or shared_bytes(width) > context.target.shared_bytes:
        raise Refusal(
            f"attention takes heads of at most {WIDEST} dims and {GRID_Y} heads, got {q.type}"
        )
    to.step(rows)
    to.given(q, "q")
    to.given(k, "k", "cache")
    to.given(v, "v", "cache")
    element = to.params[-1].ctype.removeprefix("const ").removesuffix("*")
    kernel = Kernel(
        "attention.cu.j2",
        node.function.kind.replace("-", "_") if node.op == "call" else "attention",
        ("int H", "int KV", "int HD", "int WINDOW", "int WARPS", "int SPLITS"),
        (),
        (
            ("rows", row_count((*q.type.shape[:1], 1))),
            ("element", element),
            ("score", score_text(attention, width)),
            ("sinks", to.read(sinks[0], "sinks") if sinks else ""),
            ("epilogue", epilogue_lines(to, attention)),
        ),
    )
    kernel = Kernel(kernel.template, kernel.base, kernel.templates, tuple(to.params), kernel.fields)
    splits = _splits(q.type.shape[0], splits_of(heads, context.target.sms))
    sizes = (heads, groups, width, integer(attention, "window"), WARPS, splits)
    return Launch(
        kernel,
        tuple(map(str, sizes)),
        tuple(to.args),
        Grid(grid_count((*q.type.shape[:1], 1)), str(heads), splits),
        str(32 * WARPS),
        f"sizeof(AttentionShared<{element}, {width}, {WARPS}>)",
    )


def score_text(attention: Node, width: int) -> str:
    """What a dot becomes, as C++ text."""
    score = f"dot * {float_literal(scale_of(real(attention, 'scale'), width))}"
    cap = real(attention, "softcap")
    return f"capped({score}, {float_literal(cap)})" if cap else score


def epilogue_lines(to: Arguments, attention: Node) -> tuple[str, ...]:
    """The members behind attention for a thread's column, and the stores of what is a result."""
    y = attention.result()
    given = {v: to.name(v, "y" if v == y and to.node.op != "call" else "") for v in to.results}
    lines: list[str] = []
    stores: list[str] = []
    loaded: set[Value] = set()
    for member in to.members:
        value = member.result()
        out = given.get(value) or to.name(value)
        if member.op == "quantize":
            buffer = to.write(value, out)
            operand = to.spell(member.operands[0])
            stores.append(f"quantize_warp<H * HD>({operand}, row, head * HD + d, {buffer});")
            continue
        if member.op == "attention":
            lines.append(f"const float {out} = end > first ? result.sum / result.total : 0.0f;")
        else:
            lines += _loads(to, member, loaded)
            lines += _element(to, member, out)
        if value in to.results:
            stores.append(f"{to.write(value, f'{out}_out')}[at + d] = {out};")
    return (*lines, *stores)


def _loads(to: Arguments, member: Node, loaded: set[Value]) -> list[str]:
    """Locals of the parameters that a member reads first."""
    lines: list[str] = []
    inside = {m.result() for m in to.members}
    for v in member.operands:
        if v in loaded or v in inside or v.node.op == "const":
            continue
        loaded.add(v)
        lines.append(f"const float {to.read(v)}_d = {to.read(v)}[{_place(v)}];")
    return lines


def _place(value: Value) -> str:
    """Where a column's element is, of a value as large, of one a column, a row or in all."""
    shape = value.type.shape
    if len(shape) < 2:
        return "head * HD + d" if shape not in ((), (1,)) else "0"
    return "row" if shape[-1] == 1 else "at + d"


def _element(to: Arguments, member: Node, out: str) -> list[str]:
    inside = {m.result() for m in to.members}

    def spell(v: Value) -> str:
        local = v in inside or v.node.op == "const" or v == member.result()
        return to.spell(v) if local else f"{to.spell(v)}_d"

    lines: list[str] = []
    for step in steps_of(member, spell, GROUP):
        if not isinstance(step, Each):
            raise Refusal(f"attention's epilogue is elementwise, got {member.op}")
        lines.append(f"const {step.ctype} {out} = {step.text.format(*step.operands)};")
    return lines


def splits_of(heads: int, sms: int) -> int:
    """Blocks that share the pages of a single row's head: a power of two that fills the device."""
    splits = 1
    while splits < MOST_SPLITS and splits * heads < sms:
        splits *= 2
    return splits


def _splits(rows: Dim, splits: int) -> str:
    """Only a step of one row has too few blocks; a form's row group tells."""
    if rows == ROWS and splits > 1:
        return f"1 + {splits - 1} * (ROWS == 1)"
    return str(splits) if rows == 1 else "1"


def shared_bytes(width: int) -> int:
    """What AttentionShared takes, at most."""
    padded = -(-width // 32) * 32
    page = 64 * 80 + 64 * 4  # PageScratch
    return 4 * padded + WARPS * (page + 2 * (4 * width + 8)) + 8 * padded + 64
