"""What feeds an op program: the default pattern, literals of the program, arrays of the user."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler import exact
from compiler.diagnostics import UserError
from compiler.encode import encode
from compiler.formats import FORMATS
from compiler.program import Input, Literal, Program
from compiler.types import ACTIVATIONS, BLOCKS, INTEGERS, Type
from compiler.values import Rows, Value

Array = NDArray[Any]
NUMPY = {"i32": np.int32, "i64": np.int64, "f16": np.float16, "rows": np.int32}


def default_inputs(
    program: Program, overrides: Mapping[str, Array] | None = None
) -> dict[str, Value]:
    """A value for each input: the user's array, else its literal, else the default pattern.

    UserError where an array or a literal does not fit the declared type, or its name is no input
    that the program reads: a binary has no others.
    """
    given = dict(overrides or {})
    names = [i.name for i in program.inputs]
    read = {n.attr("name") for n in program.graph.nodes() if n.op == "input"}
    for name in given:
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f"; did you mean {near[0]}?" if near else f", one of {', '.join(names)}"
            raise UserError(f"{program.name} has no input {name}{hint}")
        if name not in read:
            raise UserError(f"{program.name} declares the input {name} and never reads it")
    return {i.name: value_of(i, given.get(i.name)) for i in program.inputs}


def read_npy(path: str | Path) -> Array:
    """The array of a `.npy` file; UserError where there is none."""
    try:
        return np.load(path, allow_pickle=False)
    except OSError as error:
        raise UserError(f"{path}: a .npy file is needed: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:  # NumPy takes what it does not know for a pickle
        said = "it has another format" if "pickled" in str(error) else str(error)
        raise UserError(f"{path}: a .npy file is needed: {said}") from error


def value_of(declared: Input, array: Array | None = None) -> Value:
    """The value of one input, from `array` if given."""
    if array is not None:
        return _encoded(declared.type, _checked(declared, array))
    if declared.value is not None:
        return _encoded(declared.type, _from_literal(declared, declared.value))
    return _encoded(declared.type, _pattern(declared.type))


def plain_dtype(type_: Type) -> type[np.generic]:
    """The dtype of the array that an input of `type_` is given by: f32 for formats and bf16."""
    return NUMPY.get(type_.dtype, np.float32)


def plain_shape(type_: Type) -> tuple[int, ...]:
    """The shape of that array; rows are (sequence, position) pairs."""
    shape = tuple(d for d in type_.shape if isinstance(d, int))
    if len(shape) != type_.rank:
        raise UserError(f"an input needs a fixed shape, got {type_}")
    return (*shape, 2) if type_.dtype == "rows" else shape


def _pattern(type_: Type) -> Array:
    shape = plain_shape(type_)
    if type_.dtype == "rows":
        return np.stack([np.zeros(shape[0]), np.arange(shape[0])], axis=1).astype(np.int32)
    p = np.arange(int(np.prod(shape))) % 7 - 3
    scaled = p if type_.dtype in INTEGERS else p * 0.5
    return scaled.astype(plain_dtype(type_)).reshape(shape)


def _checked(declared: Input, array: Array) -> Array:
    dtype, shape = np.dtype(plain_dtype(declared.type)), plain_shape(declared.type)
    if array.dtype != dtype or array.shape != shape:
        raise UserError(
            f"input {declared.name}: {declared.type} needs {dtype}{list(shape)}, "
            f"got {array.dtype}{list(array.shape)}"
        )
    if declared.type.dtype == "bf16" and (other := _first_rounded(array)) is not None:
        needs = "numbers of bf16 are needed, as float32"
        raise UserError(f"input {declared.name}: {needs}; element {other} is none")
    return np.ascontiguousarray(array).reshape(shape)  # of a scalar it makes an array of one


def _first_rounded(array: Array) -> int | None:
    """The first element that is none of bf16, whose lower 16 bits are 0; a NaN's too."""
    low = np.ascontiguousarray(array).reshape(-1).view(np.uint32) & 0xFFFF
    return int((low != 0).argmax()) if low.any() else None


def _from_literal(declared: Input, literal: Literal) -> Array:
    shape, dtype = plain_shape(declared.type), plain_dtype(declared.type)
    if isinstance(literal, tuple):
        _match(declared, literal, shape)
    values = np.array(literal, object)
    if dtype in (np.int32, np.int64):
        limit = np.iinfo(dtype)
        for v in values.reshape(-1).tolist():
            if not (isinstance(v, int) and limit.min <= v <= limit.max):
                raise UserError(f"input {declared.name}: {declared.type} cannot hold {v}")
    with np.errstate(over="ignore"):
        return np.broadcast_to(values.astype(dtype), shape).copy()


def _match(declared: Input, literal: Literal, shape: tuple[int, ...]) -> None:
    """UserError unless the nested tuples have `shape`."""
    whole = f"input {declared.name}: {declared.type} needs a literal of shape {list(shape)}"
    if not shape:
        if isinstance(literal, tuple):
            raise UserError(f"{whole}, got one that is nested deeper")
        return
    if not isinstance(literal, tuple):
        raise UserError(f"{whole}, got the number {literal} where {shape[0]} entries are needed")
    if len(literal) != shape[0]:
        raise UserError(f"{whole}, got {len(literal)} entries where {shape[0]} are needed")
    for part in literal:
        _match(declared, part, shape[1:])


def _encoded(type_: Type, array: Array) -> Value:
    """The array as a value of the type: rows, blocks, quantized activations or elements."""
    if type_.dtype == "rows":
        return rows_of(array)
    if type_.dtype in BLOCKS:
        return encode(FORMATS[type_.dtype], array)
    if type_.dtype in ACTIVATIONS:
        return exact.quantize(array) if type_.dtype == "q8" else exact.quantize2(array)
    return exact.round_bf16(array) if type_.dtype == "bf16" else array


def rows_of(pairs: Array) -> Rows:
    """Rows of (sequence, position) pairs int32[n, 2], all wanted; UserError on a repeated one."""
    if pairs.size and pairs.min() < 0:
        raise UserError("rows need sequences and positions of 0 or more")
    if len(np.unique(pairs, axis=0)) != len(pairs):
        raise UserError("rows need each position of a sequence once")
    everything = np.arange(len(pairs), dtype=np.int32)
    return Rows(pairs[:, 0].copy(), pairs[:, 1].copy(), everything)
