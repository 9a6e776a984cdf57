"""What kernels of one thread an element share: their launch, their parameters and their limits."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.expr import grid_count, is_dynamic, pointer, row_count
from codegen.kernel import Arg, Context, Grid, Kernel, Launch, Param, Refusal
from compiler.graph import Node, Value
from compiler.types import Dim, Type, size

THREADS = 256  # of a block of such a kernel
ELEMENTS = 2**31 - 1  # that an int indexes


def element_count(shape: tuple[Dim, ...]) -> str:
    """How many elements a value has, as device text that reads the step's counts."""
    return row_count((*shape, 1))


def block_count(shape: tuple[Dim, ...]) -> str:
    """How many blocks of THREADS cover a value's elements, as an expression of the launch."""
    return f"ceil_div({grid_count((*shape, 1))}, {THREADS})"


def fixed(dim: Dim, op: str) -> int:
    """A dim that must not be T or R; Refusal else."""
    if isinstance(dim, str):
        raise Refusal(f"{op} has no kernel for {dim} as this axis")
    return dim


def volume(shape: tuple[Dim, ...], op: str) -> int:
    """The product of fixed dims."""
    total = 1
    for dim in shape:
        total *= fixed(dim, op)
    return total


def integer(node: Node, name: str) -> int:
    """An attribute that is an integer."""
    value = node.attr(name)
    assert isinstance(value, int), name
    return value


def real(node: Node, name: str) -> float:
    """An attribute that is a number."""
    value = node.attr(name)
    assert isinstance(value, int | float), name
    return float(value)


def check_elements(op: str, context: Context, *types: Type) -> None:
    """Refusal where a value at its largest has more elements than an int indexes."""
    most = context.options.max_rows
    for t in types:
        if size(t.shape, most, most) > ELEMENTS:
            raise Refusal(
                f"{op} handles at most {ELEMENTS} elements a value, got {t} at {most} rows"
            )


def step_param(*values: Value) -> tuple[Param, ...]:
    """The Step parameter, where a value's size depends on the step."""
    return (Param("const Step*", "step"),) if is_dynamic(*values) else ()


def step_arg(*values: Value) -> tuple[Arg, ...]:
    return (Arg("rows", values[0]),) if is_dynamic(*values) else ()


def reads(**values: Value) -> tuple[Param, ...]:
    """Parameters that a kernel reads, by name."""
    return tuple(Param(pointer(v.type), name) for name, v in values.items())


def writes(**values: Value) -> tuple[Param, ...]:
    """Parameters that a kernel writes, by name."""
    return tuple(Param(pointer(v.type, True), name) for name, v in values.items())


def element_launch(
    node: Node,
    context: Context,
    template: str,
    names: tuple[str, ...],
    sizes: Mapping[str, int | str],
    tiles: tuple[str, ...] = (),
    **fields: object,
) -> Launch:
    """The launch of a kernel with a thread for each element of its one result `y`.

    names: the operands' names in the kernel. sizes: its template arguments, integers or a weight
    format's struct. tiles: operands that are weights in tiles. The template gets `count` too.
    """
    result = node.result()
    check_elements(node.op, context, result.type, *(v.type for v in node.operands))
    pairs = zip(names, node.operands, strict=True)
    params = (Param("const uint8_t*" if n in tiles else pointer(v.type), n) for n, v in pairs)
    kernel = Kernel(
        template,
        node.op,
        tuple(f"{'class' if isinstance(n, str) else 'int'} {name}" for name, n in sizes.items()),
        (*step_param(result), *params, *writes(y=result)),
        (("count", element_count(result.type.shape)), *fields.items()),
    )
    kinds = ("weight" if name in tiles else "value" for name in names)
    inputs = (Arg(kind, v) for kind, v in zip(kinds, node.operands, strict=True))
    args = (*step_arg(result), *inputs, Arg("value", result, writes=True))
    grid = Grid(block_count(result.type.shape))
    return Launch(kernel, tuple(map(str, sizes.values())), args, grid, str(THREADS))
