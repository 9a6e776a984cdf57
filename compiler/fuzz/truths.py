"""The truth lines of op records, `call = result`, as programs with their results."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from compiler.diagnostics import ProgramError
from compiler.fuzz import spell
from compiler.fuzz.draw import Array
from compiler.fuzz.generate import Case
from compiler.ops import get, load


@dataclass(frozen=True)
class Truth:
    """A line, its operands, the results that it states; the program that it is about, None where a
    result is quantized, which no program returns."""

    line: str
    given: dict[str, Array]
    case: Case | None
    want: tuple[Array, ...]


def truths() -> Iterator[Truth]:
    for name, op in sorted(load().items()):
        for at, line in enumerate(op.truths):
            yield truth(line, f"{name}.truth-{at}")


def truth_cases() -> list[Case]:
    """The programs of all lines."""
    return [t.case for t in truths() if t.case]


def truth(line: str, name: str = "truth") -> Truth:
    call, _, result = line.partition(" = ")
    value = _value(result)
    want = tuple(map(_array, value if isinstance(value, tuple) else (value,)))
    lines, given = _called(call)
    results = ", ".join(f"y{at}" for at in range(len(want)))
    lines = [*lines[:-1], f"{results} = {lines[-1]}", f"return {results}", ""]
    inputs = [f"input {name}: {_type(name, array)}" for name, array in given.items()]
    try:
        case = spell.case_of_text("\n".join([*inputs, *lines]), name)
    except ProgramError as error:
        if "plain numbers" not in str(error):
            raise
        return Truth(line, given, None, want)
    places = given.get("rows", case.places)
    options = replace(case.options, max_rows=len(places))
    return Truth(line, given, replace(case, inputs=given, places=places, options=options), want)


def _called(call: str) -> tuple[list[str], dict[str, Array]]:
    """The statements of a call, the last of them an expression; the arrays of its inputs."""
    tree = ast.parse(call, mode="eval").body
    assert isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name), call
    operands = {p.name for p in get(tree.func.id).params if p.is_operand}
    statements: list[str] = []
    words: list[str] = []
    given: dict[str, Array] = {}
    for at, (key, node) in enumerate(
        [*((None, a) for a in tree.args), *((k.arg, k.value) for k in tree.keywords)]
    ):
        if key is not None and key not in operands:
            words.append(f"{key}={ast.unparse(node)}")
            continue
        name = "rows" if key == "rows" else f"a{at}"
        word = name
        if isinstance(node, ast.Call):  # cache(x)
            (node,) = node.args
            word = f"c{at}.k"
            entry = _array(_value(ast.unparse(node))).shape[1:]
            statements += [f"cache c{at} {{ k {list(entry)} }}", f"{word} = append({word}, {name})"]
        given[name] = _array(_value(ast.unparse(node)))
        words.append(word if key is None else f"{key}={word}")
    return [*statements, f"{tree.func.id}({', '.join(words)})"], given


def _value(text: str) -> Any:
    """Numbers, lists and tuples of them, nan and inf; of the repository's own lines."""
    return eval(text, {"__builtins__": {}, "nan": math.nan, "inf": math.inf})


def _array(value: Any) -> Array:
    array = np.array(value)
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return array.astype(np.float32)
    return array.astype(np.int32 if np.abs(array).max() < 2**31 else np.int64)


def _type(name: str, array: Array) -> str:
    if name == "rows":
        return f"rows[{len(array)}]"
    return f"{'f32' if array.dtype.kind == 'f' else 'i32'}{list(array.shape) if array.ndim else ''}"
