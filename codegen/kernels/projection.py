"""What kernels of projections share: how blocks are cut, their rows, a norm's factor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from codegen.expr import CTYPES, STRUCTS, float_literal, is_dynamic, row_count
from codegen.forms import group_of_rows
from codegen.kernel import Context, Grid, Kernel, Launch, Refusal
from codegen.kernels.arguments import Arguments
from compiler.graph import Node, Value
from compiler.types import ACTIVATIONS, BLOCKS, Dim, Type, size

LONGEST = 65536  # inputs of a projection
NARROW = 512  # outputs of a launch: at 16 a block they would keep less than a quarter of an H200
PAIRED = 8  # warps of a block of which two can be on an SM
TILE_THREADS = 256  # of a block that makes a tile of dots
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

    turns: tiles of a warp, at most. partial_bytes: shared memory for one activation row's partial
    dots with one weight. parts: blocks of a cluster that share the tiles.
    """

    row_tiles: int
    warps: int
    turns: int
    partial_bytes: int
    parts: int = 1

    @staticmethod
    def of(
        k: int,
        outputs: int = 8,
        made: int | None = None,
        weights: int = 1,
        sms: int | None = None,
        clusters: bool = False,
    ) -> LinearShape:
        """Enough row tiles for eight warps or more, each with a tile or two in flight.

        outputs: a block makes a multiple of so many (32 where groups of 32 are quantized).
        made: by the whole launch; few, as of a router, are spread over as many blocks as can be.
        weights: how many have such outputs; where one block on each of `sms` would leave many of
        them without one in the end, blocks are small enough for two an SM.
        clusters: whether two blocks may share the tiles of one; they do where each of `sms` has
        one then or nearly so (Qwen3-1.7B on an H200: a step 712 us, with down in clusters 679,
        with output and down 637; 0.6B, whose 32 blocks leave most SMs empty: 375, 388 and 416).
        Not those of 32 tiles: 30B-A3B's output with the router behind it, 2,016 and 2,086.
        """
        groups = -(-k // 512)
        is_narrow = made is not None and made <= NARROW
        row_tiles = outputs // 8 if is_narrow else max(outputs // 8, 8 // groups)
        tiles = weights * row_tiles * groups
        blocks = -(-made // (8 * row_tiles)) if made and sms else 0
        paired = clusters and sms and 2 * blocks <= sms < 4 * blocks and not 16 < tiles < 48
        parts = 2 if paired else 1
        tiles = -(-tiles // parts)
        if weights > 1 and sms and _is_uneven(blocks, sms):
            warps = min(tiles, PAIRED)
        else:
            warps = tiles if tiles <= 24 else min(range(8, 17), key=lambda w: (-tiles % w, -w))
        partial_bytes = 8 * row_tiles * (-(-k // 128) + 1) * 4
        return LinearShape(row_tiles, warps, -(-tiles // warps), partial_bytes, parts)

    @property
    def outputs(self) -> int:
        return 8 * self.row_tiles

    def shared(self, group: str, weights: int = 1, factors: int = 0) -> str:
        """Bytes of the emitted LinearShared for a form of `group` rows."""
        return f"{group} * {self.partial_bytes * weights + 4 * max(1, factors)}"


def group_of(shape: tuple[Dim, ...], tiled: bool = False) -> str:
    """Which form's row group a launch over these rows uses: ROWS, FEW, WANTED, or a fixed count.

    tiled: whether more than 8 rows at once are cut in tiles.
    """
    if shape and shape[0] == "R":
        return "WANTED"
    if shape and shape[0] == "T":
        return "ROWS" if tiled else "FEW"
    return str(group_of_rows(size(shape[:-1]), tiled))


@dataclass(frozen=True)
class RowForms:
    """How a launch of projections is cut in each form: template arguments and the launch's shape.

    group: rows of a block. weights: how many of equally many outputs a block has side by side.
    tiled: forms of more than 8 rows make tiles of dots on tensor cores (row_forms.cuh), ROWS rows
    by ROWS outputs; else rows go by eights.
    """

    k: int
    shape: LinearShape
    x: Type
    tiled: bool
    weights: int = 1
    factors: int = 0

    @staticmethod
    def can_tile(x: Type, weights: Sequence[Type], context: Context) -> bool:
        """Whether activations and weights are bytes or nibbles, and the rows may be many."""
        if x.dtype not in ACTIVATIONS or any(w.dtype not in BLOCKS for w in weights):
            return False
        if x.shape[0] in ("R", "T"):
            most = context.options.max_rows if x.shape[0] == "T" else 1
        else:
            most = size(x.shape[:-1])
        return group_of_rows(most, many=True) > 8

    @property
    def group(self) -> str:
        return group_of(self.x.shape, self.tiled)

    @property
    def _makes_tiles(self) -> bool | None:
        """Whether blocks make tiles; None: in some forms."""
        return None if self.tiled and self.group == "ROWS" else self.tiled

    def _cases(self, few: int, many: str) -> str:
        """A number by form, as an expression of C++ and of Python."""
        if self._makes_tiles is None and str(few) != many:
            return f"{few} * (ROWS <= 8) + {many} * (ROWS > 8)"
        return many if self._makes_tiles else str(few)

    @property
    def outputs(self) -> str:
        """Of each weight, a block's."""
        many = _halved(self.group) if self.weights == 2 else self.group
        return self._cases(self.shape.outputs, many)

    @property
    def _parts(self) -> str:
        """What the blocks of a launch are counted times."""
        parts = self.shape.parts
        return "" if parts == 1 else f"({self._cases(parts, '1')}) * "

    @property
    def threads(self) -> str:
        return self._cases(32 * (self.shape.warps + self._more), str(TILE_THREADS))

    @property
    def _more(self) -> int:
        """Warps beside those that make dots: one for the rows' factors, which would wait for its
        dots (glu of Qwen3-0.6B on an H200: 450 of 2,850 cycles). Where warps have several tiles
        another block works meanwhile, and registers are for tiles."""
        return int(self.tiled and self.factors > 0 and self.shape.turns == 1)

    @property
    def templates(self) -> tuple[str, ...]:
        """Parameters of the emitted kernel; `arguments` are theirs."""
        shape = ("class FORM",) if self.tiled else ("int ROW_TILES", "int WARPS")
        return ("int K", *shape, "int ROWS")

    @property
    def arguments(self) -> tuple[str, ...]:
        few = (str(self.shape.row_tiles), str(self.shape.warps))
        return (str(self.k), *((self._form,) if self.tiled else few), self.group)

    @property
    def _form(self) -> str:
        counts = f"{self.weights}, {max(1, self.factors)}"
        more = f", {self._more}" if self._more or self.shape.parts > 1 else ""
        more += f", {self.shape.parts}" if self.shape.parts > 1 else ""
        shape = f"LinearShape<{self.k}, {self.shape.row_tiles}, {self.shape.warps}{more}>"
        return f"RowForm<{self.group}, {shape}, {CTYPES[self.x.dtype]}, {counts}>"

    def launch(
        self,
        kernel: Kernel,
        arguments: Sequence[str],
        signature: Signature,
        outputs: Sequence[Dim],
        in_place: tuple[Value, ...] = (),
    ) -> Launch:
        """The launch of a kernel over all rows and `outputs` of each projection, side by side."""
        rows = signature.rows.replace("step->", "")
        shared = self.shape.shared(self.group, self.weights, self.factors)
        return Launch(
            kernel,
            tuple(arguments),
            tuple(signature.args),
            Grid(
                " + ".join(f"{self._parts}ceil_div({n}, {self.outputs})" for n in outputs),
                f"ceil_div({rows}, {self.group})",
            ),
            self.threads,
            f"sizeof(typename {self._form}::Shared)" if self.tiled else shared,
            in_place,
            many=self._makes_tiles is None,
        )


def _halved(group: str) -> str:
    return str(int(group) // 2) if group.isdigit() else f"({group} >> 1)"


def _is_uneven(blocks: int, sms: int) -> bool:
    """Whether rounds of a block an SM leave more than a tenth of them without one (Qwen3-1.7B's
    glu on an H200: 192 blocks of 16 warps 9.3 us, of 8 warps 6.4; 30B-A3B's
    experts', as many: 12.4 and 10.0; 8B's 384: 26.9 and 27.9)."""
    return blocks > sms and blocks < 0.9 * sms * -(-blocks // sms)


def alike(names: Sequence[str], types: Sequence[Type]) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """Weights side by side in runs of one format: the number of a run's first, and their names."""
    numbered = [(i, t.dtype) for i, t in enumerate(types)]
    runs = [[i for i, _ in run] for _, run in groupby(numbered, lambda pair: pair[1])]
    return tuple((run[0], tuple(names[i] for i in run)) for run in runs)


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
