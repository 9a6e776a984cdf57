"""C++ spellings of types, literals and index arithmetic, shared by the kernels' providers."""

from __future__ import annotations

import re

from compiler.graph import Value
from compiler.types import DYNAMIC, ROWS, Dim, Type

CTYPES = {
    "f32": "float",
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "i32": "int",
    "i64": "long long",
    "q8": "Q8",
    "q8x2": "Q8x2",
    "rows": "Step",
    "cache_f32": "float",
    "cache_f16": "uint16_t",
}
STRUCTS = {
    "f32": "F32",
    "f16": "F16",
    "bf16": "BF16",
    "q8_0": "Q8_0",
    "q4_1": "Q4_1",
    "q4_0": "Q4_0",
    "q4_k": "Q4_K",
    "q5_k": "Q5_K",
    "q6_k": "Q6_K",
}


def ctype(type_: Type) -> str:
    return CTYPES[type_.dtype]


def pointer(type_: Type, writes: bool = False) -> str:
    """The C++ type by which a kernel takes a value: a pointer, or a small struct of pointers."""
    name = CTYPES.get(type_.dtype, "uint8_t")
    if name in ("Q8", "Q8x2"):
        return name
    return f"{name}*" if writes else f"const {name}*"


def literal(value: float | int, dtype: str) -> str:
    """A C++ literal that reads back as the same number; negative ones in parentheses."""
    if dtype == "i32":
        return (
            str(value) if value >= 0 else f"({value})" if value > -(2**31) else "(-2147483647 - 1)"
        )
    if dtype == "i64":
        return (
            f"{value}ll"
            if value >= 0
            else f"({value}ll)"
            if value > -(2**63)
            else "(-9223372036854775807ll - 1)"
        )
    return float_literal(float(value))


def float_literal(value: float) -> str:
    """The shortest decimal that reads back as the same f32."""
    import numpy as np

    narrow = np.float32(value)
    if np.isnan(narrow):
        return "not_a_number()"
    if np.isinf(narrow):
        return "infinity()" if narrow > 0 else "(-infinity())"
    text = np.format_float_scientific(narrow, unique=True, trim="0", exp_digits=1)
    plain = repr(float(str(narrow)))
    text = plain if "e" not in plain and len(plain) <= len(text) + 2 else text
    return f"({text}f)" if text.startswith("-") else f"{text}f"


def identifier(name: str, taken: set[str] | None = None) -> str:
    """The last part of a value's name as a C++ identifier that is not taken, and takes it.

    Only letters, digits and single underscores pass; names of C++ and of the helpers get a `_`.
    """
    text = re.sub(r"[^A-Za-z0-9]+", "_", name.split(".")[-1]).strip("_") or "value"
    text = f"v{text}" if text[0].isdigit() else text
    text = f"{text}_" if text in RESERVED else text
    if taken is None:
        return text
    base, count = text, 2
    while text in taken:
        text, count = f"{base}_{count}", count + 1
    taken.add(text)
    return text


# Words that no emitted name may be: of C++, and of the text around kernels.
WORDS = """
alignas and asm auto bool break case catch char class const constexpr continue default delete do
double else enum explicit export extern false float for friend goto if inline int long mutable
namespace new not nullptr operator or private protected public register return short signed
sizeof static struct switch template this throw true try typedef typename union unsigned using
virtual void volatile while xor step rows row at first main shared launch run wanted at i d b l
exp log tanh sqrtf fmaf float_of bits_of D N K T THREADS ROWS
"""
RESERVED = frozenset(WORDS.split())


def row_count(shape: tuple[Dim, ...]) -> str:
    """How many rows of the last axis a value has, as device text that reads the step's counts."""
    fixed, counts = 1, list[str]()
    for dim in shape[:-1]:
        if isinstance(dim, int):
            fixed *= dim
        else:
            counts.append("step->rows" if dim == ROWS else "step->wanted")
    return " * ".join([*counts, *([str(fixed)] if fixed != 1 or not counts else [])])


def grid_count(shape: tuple[Dim, ...]) -> str:
    """The same as an expression of the launch: `rows` and `wanted` are the bucket's counts."""
    return row_count(shape).replace("step->", "")


def is_dynamic_shape(shape: tuple[Dim, ...]) -> bool:
    return any(dim in DYNAMIC for dim in shape)


def is_dynamic(*values: Value) -> bool:
    return any(is_dynamic_shape(v.type.shape) for v in values)
