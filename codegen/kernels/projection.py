"""What kernels of projections share: how blocks are cut, their rows, a norm's factor."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.expr import STRUCTS, float_literal, is_dynamic, row_count
from codegen.kernel import Context, Refusal
from codegen.kernels.arguments import Arguments
from compiler.graph import Node, Value
from compiler.types import Dim, size

LONGEST = 65536  # inputs of a projection
NARROW = 512  # outputs of a launch: at 16 a block they would keep less than a quarter of an H200
# What the templates of projections call their own; no parameter may be called so.
LOCAL = frozenset(
    (
        *("x", "s", "first", "rows", "block", "r", "n", "w", "w0", "w1", "i", "dot", "dots"),
        "output",
        "L",
    )
)


@dataclass(frozen=True)
class LinearShape:
    """How a block of a projection is cut; the emitted LinearShape takes these numbers.

    partial_bytes: shared memory for one activation row's partial dots with one weight.
    """

    row_tiles: int
    warps: int
    partial_bytes: int

    @staticmethod
    def of(k: int, outputs: int = 8, made: int | None = None) -> LinearShape:
        """Enough row tiles for eight warps or more, each with one tile in flight; long rows loop.

        outputs: a block makes a multiple of so many (32 where groups of 32 are quantized).
        made: by the whole launch; few, as of a router, are spread over as many blocks as can be.
        """
        groups = -(-k // 512)
        is_narrow = made is not None and made <= NARROW
        row_tiles = outputs // 8 if is_narrow else max(outputs // 8, 8 // groups)
        tiles = row_tiles * groups
        warps = tiles if tiles <= 24 else min(range(8, 17), key=lambda w: (-tiles % w, -w))
        return LinearShape(row_tiles, warps, 8 * row_tiles * (-(-k // 128) + 1) * 4)

    @property
    def outputs(self) -> int:
        return 8 * self.row_tiles

    def shared(self, group: str, weights: int = 1, factors: int = 0) -> str:
        """Bytes of the emitted LinearShared for a form of `group` rows."""
        return f"{group} * {self.partial_bytes * weights + 4 * max(1, factors)}"


def group_of(shape: tuple[Dim, ...]) -> str:
    """Which form's row group a launch over these rows uses: ROWS, WANTED, or a fixed count."""
    if shape and shape[0] == "R":
        return "WANTED"
    if shape and shape[0] == "T":
        return "ROWS"
    count = size(shape[:-1])
    return "1" if count == 1 else "4" if count <= 4 else "8"


def check_weight(op: str, weight: Value) -> None:
    """Refusal for formats and lengths that no kernel takes."""
    k = weight.type.shape[-1]
    if weight.type.dtype not in STRUCTS:
        raise Refusal(f"{op} has no kernel for weights of {weight.type.dtype}")
    if not isinstance(k, int) or k > LONGEST:
        raise Refusal(f"{op} needs at most {LONGEST} inputs, got {k}")


def in_tiles(value: Value) -> bool:
    """Whether a matrix can be read in tiles: a weight, or an input that a launch repacks."""
    return value.node.op in ("weight", "input")


class Signature(Arguments):
    """The parameters and arguments of a kernel of projections: `x`, then each value once.

    factors: text that fills s.factor[i], the rows' factors, once a block. early, folds: the same
    in two steps, what is read before the dots and what is done with it behind them.
    """

    def __init__(self, node: Node, context: Context, x: Value) -> None:
        super().__init__(node, context, set(LOCAL))
        self.x = x
        self.factors: list[str] = []
        self.early: list[str] = []
        self.folds: list[str] = []
        self.factor_of: dict[Value, int] = {}
        if is_dynamic(x):
            self.step(x)
        self.names[x] = "x"
        self.given(x, "x")

    @property
    def rows(self) -> str:
        return row_count(self.x.type.shape)

    def factor(self, value: Value | None) -> str:
        """How the kernel spells a row's factor, made once a block; "" where there is none."""
        if value is None:
            return ""
        if value not in self.factor_of:
            self.factor_of[value] = index = len(self.factors)
            self.factors.append(self._fill(value, index))
        return f"s.factor[{self.factor_of[value]}][r]"

    def _fill(self, value: Value, index: int) -> str:
        node = value.node
        if node.op != "root_factor":
            name = self.read(value, "factor")
            fill = f"load_factors(s.factor[{index}], {name}, first, rows);"
            self.folds.append(fill)
            return fill
        sums = node.operands[0]
        n, eps, count = node.attr("n"), node.attr("eps"), sums.type.shape[-1]
        assert isinstance(n, int) and isinstance(eps, int | float)
        name = self.read(sums, "square_sums")
        numbers = f"{float_literal(n)}, {float_literal(eps)}"
        sums = f"load_root_sums<{count}, ROWS, L>({name}, first, rows)"
        self.early.append(f"const auto sums_{index} = {sums};")
        self.folds.append(f"fold_root_sums(s.factor[{index}], sums_{index}, {numbers});")
        return f"root_factors<{count}>(s.factor[{index}], {name}, first, rows, {numbers});"
