"""Types of values: a dtype and a shape; dims are integers or the step's dynamic counts T and R."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

Dim = int | str

ROWS = "T"  # rows of this step
WANTED = "R"  # rows whose results this step wants
DYNAMIC = (ROWS, WANTED)

FLOATS = ("f32", "f16", "bf16")
INTEGERS = ("i32", "i64")
ACTIVATIONS = ("q8", "q8x2")  # quantized activations: words, scales and block sums as one value
BLOCK_SIZES = {  # weight formats in blocks: weights and bytes of a block
    "q8_0": (32, 34),
    "q4_1": (32, 20),
    "q4_0": (32, 18),
    "q4_k": (256, 144),
    "q5_k": (256, 176),
    "q6_k": (256, 210),
}
BLOCKS = tuple(BLOCK_SIZES)
CACHES = ("cache_f32", "cache_f16")  # one entry a position of a sequence
DTYPES = (*FLOATS, *INTEGERS, *ACTIVATIONS, *BLOCKS, *CACHES, "rows")

ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "i64": 8}
GROUP = 32  # activations that share one scale


@dataclass(frozen=True, slots=True)
class Type:
    """A value's type; `str` is its spelling, `f32[T, 576]`; a scalar has no brackets."""

    dtype: str
    shape: tuple[Dim, ...] = ()

    def __str__(self) -> str:
        dims = ", ".join(map(str, self.shape))
        return f"{self.dtype}[{dims}]" if self.shape else self.dtype

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    @property
    def is_number(self) -> bool:
        """Plain elements that arithmetic takes: f32, f16, bf16, i32, i64."""
        return self.dtype in ELEMENT_BYTES

    @property
    def is_dynamic(self) -> bool:
        return any(dim in DYNAMIC for dim in self.shape)

    def with_shape(self, *shape: Dim) -> Type:
        return Type(self.dtype, shape)

    def with_dtype(self, dtype: str) -> Type:
        return Type(dtype, self.shape)


def whole(dtype: str) -> int:
    """What the last axis of such values is a multiple of."""
    return BLOCK_SIZES[dtype][0] if dtype in BLOCK_SIZES else GROUP if dtype in ACTIVATIONS else 1


def size(shape: tuple[Dim, ...], rows: int = 1, wanted: int = 1) -> int:
    """The element count of a shape where T is `rows` and R is `wanted`."""
    return prod({ROWS: rows, WANTED: wanted}[d] if isinstance(d, str) else d for d in shape)


def nbytes(type_: Type, rows: int = 1, wanted: int = 1) -> int:
    """Bytes of a value as stored: weight formats by block, activations with scales and sums."""
    count = size(type_.shape, rows, wanted)
    match type_.dtype:
        case "q8":
            return count + 8 * (count // GROUP)
        case "q8x2":
            return 2 * count + 8 * (count // GROUP)
        case "cache_f32":
            return 4 * count
        case "cache_f16":
            return 2 * count
        case "rows":
            return 8 * count
        case dtype if dtype in BLOCK_SIZES:
            weights, bytes_ = BLOCK_SIZES[dtype]
            return count // weights * bytes_
        case dtype:
            return count * ELEMENT_BYTES[dtype]


def broadcast(a: Type, b: Type) -> tuple[Dim, ...] | None:
    """An elementwise shape: axes missing on the left or of size 1 stretch; None: they disagree."""
    rank = max(a.rank, b.rank)
    left = (1,) * (rank - a.rank) + a.shape
    right = (1,) * (rank - b.rank) + b.shape
    if any(x != y and x != 1 and y != 1 for x, y in zip(left, right, strict=True)):
        return None
    return tuple(y if x == 1 else x for x, y in zip(left, right, strict=True))
