"""A case as a `.model` that the command line takes: inputs with their numbers, a statement an op.

Programs of T rows are written for all their rows at once. What a literal cannot hold (infinities,
NaN, long arrays) goes into `.npy` files beside it: NAME.INPUT.npy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import passes
from compiler import text
from compiler.diagnostics import UserError
from compiler.fuzz.builder import cache_name
from compiler.fuzz.draw import Array
from compiler.fuzz.generate import Case, inputs_of
from compiler.graph import Graph, Value, leaf, node, rebuild
from compiler.ops import OpError, build
from compiler.program import Input
from compiler.target import Options
from compiler.types import CACHES, ROWS, WANTED, Type
from compiler.values import Rows
from frontend.elaborate import elaborate
from runtime.inputs import plain_dtype, plain_shape, read_npy, value_of

LITERAL = 600  # numbers, at most


def static(case: Case) -> Case | None:
    """The case with its rows as a number, in one step, all wanted; None where that is none."""
    if not case.steps:
        return case
    counts = {ROWS: len(case.places), WANTED: len(case.places)}

    def change(old: Any, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        shape = tuple(counts.get(str(d), d) for d in old.types[0].shape)
        if not old.operands:
            if old.op != "input":
                return (node(old.op, (), dict(old.attrs), old.types).result(),)
            return (leaf("input", str(old.attr("name")), old.types[0].with_shape(*shape)),)
        attrs = {k: _fixed(v, counts) for k, v in old.attrs}
        made = build(old.op, operands, attrs)
        return tuple(made.result(i) for i in range(len(made.types)))

    try:
        graph = rebuild(case.program.graph, change)
    except OpError:
        return None
    program = replace(case.program, graph=graph, inputs=inputs_of(graph.nodes()))
    return replace(case, program=program, steps=())


def _fixed(value: Any, counts: Mapping[str, int]) -> Any:
    if isinstance(value, tuple):
        return tuple(counts.get(str(v), v) for v in value)
    return value


def spelled(case: Case, found: str = "") -> str:
    """The case as text. A case of fixed rows."""
    names = _names(case.program.graph)
    lines = [f"# options: {_options(case.options)}".rstrip(), *([f"# {found}"] if found else [])]
    for declared in case.program.inputs:
        literal = _literal(case.inputs[declared.name])
        lines.append(f"input {declared.name}: {declared.type}{literal and f' = {literal}'}")
    nodes = case.program.graph.nodes()
    for n in nodes:
        if n.op == "cache":
            lines.append(f"cache {n.attr('name')} {{ k {list(n.types[0].shape)} }}")
    for n in nodes:
        if n.operands:
            lines += text.ir_lines(n, names)
    results = (f"{name} = {names[v]}" for name, v in case.program.graph.results)
    return "\n".join([*lines, f"return {', '.join(results)}", ""])


def _names(graph: Graph) -> dict[Value, str]:
    """Inputs by their own names, cache versions by their cache's, all else numbered."""
    names: dict[Value, str] = {}
    for n in graph.nodes():
        for i in range(len(n.types)):
            v = n.result(i)
            if v.type.dtype in CACHES:
                names[v] = f"{cache_name(v)}.k"
            else:
                names[v] = str(n.attr("name")) if n.op == "input" else f"v{len(names)}"
    return names


def _options(options: Options) -> str:
    parts = {"numerics": options.numerics, "kv": options.kv, "hold": ",".join(options.hold)}
    return " ".join(f"{k}={v}" for k, v in parts.items() if v)


def _literal(array: Array) -> str:
    """The array as the language writes it; "" where it cannot, or it is the default pattern."""
    if array.size > LITERAL or not np.isfinite(array).all():
        return ""
    return _nested(array)


def _nested(array: Array) -> str:
    if array.ndim:
        return f"[{', '.join(map(_nested, array))}]"
    value = array[()]
    if array.dtype.kind == "i":
        return str(int(value))
    return text.number(float(str(np.float32(value))))


def write(case: Case, folder: Path, found: str = "") -> Path:
    """The case as NAME.model in the folder, and the arrays that it cannot hold beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{case.name}.model"
    path.write_text(spelled(case, found))
    for name, array in case.inputs.items():
        if not _literal(array):
            np.save(folder / f"{case.name}.{name}.npy", array)
    return path


def read(path: Path) -> Case:
    """A case of a file that `write` wrote."""
    return case_of_text(path.read_text(), path.stem, path)


def case_of_text(source: str, name: str, path: Path | None = None) -> Case:
    """A case of a program's text; path: its file, beside which arrays may lie."""
    program = elaborate(source, f"{name}.model")
    inputs = dict(_arrays(path, program.inputs))
    rows = next((inputs[i.name] for i in program.inputs if i.type.dtype == "rows"), None)
    places = np.zeros((1, 2), np.int32) if rows is None else rows
    options = replace(read_options(source), max_rows=max(1, len(places)))
    return Case(name, program, inputs, places, options)


def _arrays(path: Path | None, inputs: tuple[Input, ...]) -> Iterator[tuple[str, Array]]:
    for declared in inputs:
        beside = path.with_suffix(f".{declared.name}.npy") if path else None
        if beside and beside.exists():
            yield declared.name, read_npy(beside)
        elif declared.value is not None:
            dtype, shape = plain_dtype(declared.type), plain_shape(declared.type)
            held = np.array(declared.value, dtype)
            yield declared.name, np.broadcast_to(held, shape).copy()
        else:
            value = value_of(replace(declared, type=_unpacked(declared.type)))
            yield declared.name, _pairs(value)


def _pairs(value: Any) -> Array:
    """A value as the array that an input is given by."""
    return np.stack([value.seq, value.pos], 1) if isinstance(value, Rows) else value


def _unpacked(t: Type) -> Type:
    """The type of the plain array that an input is given by."""
    return t if t.dtype in ("f32", "f16", "i32", "i64", "rows") else t.with_dtype("f32")


def read_options(source: str) -> Options:
    """The options of a `# options:` line. UserError where it has others."""
    lines = [line for line in source.splitlines() if line.startswith("# options: ")]
    given = dict(word.split("=", 1) for line in lines for word in line.split()[2:])
    unknown = given.keys() - {"numerics", "kv", "hold"}
    if unknown:
        raise UserError(f"options are numerics, kv and hold, {', '.join(unknown)} was given")
    hold = tuple(n for n in given.get("hold", "").split(",") if n in passes.names())
    return Options(given.get("numerics", "int8"), given.get("kv", ""), hold=hold)
