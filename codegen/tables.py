"""The tables of the emitted file as data: weights, caches, buffers, stored values, inputs, results,
kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from codegen import layers, metadata
from codegen.expr import CTYPES, STRUCTS, identifier, literal
from codegen.families import PLAIN, TILES, split_name, stored_bytes
from codegen.memory_of import root
from codegen.plan import Plan, short_name
from codegen.variants import table_name
from compiler.formats import FORMATS
from compiler.graph import Value
from compiler.program import Input
from compiler.types import BLOCKS, GROUP, INTEGERS, ROWS, Type, size

DTYPE_FORMAT = {"f32": "f32", "f16": "f16", "bf16": "bf16"}


@dataclass(frozen=True)
class Row:
    """One line of a table: fields of the emitted aggregate in order, and what a person reads behind
    it."""

    name: str
    fields: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class Tables:
    weights: tuple[Row, ...]
    layers: tuple[Row, ...]
    caches: tuple[Row, ...]
    buffers: tuple[Row, ...]
    values: tuple[Row, ...]
    inputs: tuple[Row, ...]
    blocks: tuple[Row, ...]
    literals: tuple[Row, ...]
    results: tuple[Row, ...]
    kernels: tuple[Row, ...]
    metadata: tuple[Row, ...]
    scalars: Mapping[str, str]


def of(plan: Plan) -> Tables:
    inputs, literals = _inputs(plan)
    return Tables(
        tuple(_weight(plan, i) for i in range(len(plan.families))),
        tuple(_layers(plan, i) for i in range(len(layers.of(plan.families).tables))),
        tuple(_cache(plan, i) for i in range(len(plan.cache_families))),
        tuple(_buffer(plan, i) for i in range(len(plan.buffers))),
        tuple(_values(plan)),
        inputs,
        _blocks(plan),
        literals,
        tuple(Row(n, (_value(plan, n, v, -1),)) for n, v in plan.graph.results),
        tuple(
            Row(k, (_string(k), str(sum(k in (p.kernel, p.one_kernel) for p in plan.launches))))
            for k in plan.kernels
        ),
        tuple(Row(k, (_string(k), _string(v))) for k, v in metadata.rows(plan.program.meta)),
        _scalars(plan),
    )


def _string(text: str) -> str:
    """A C string literal; whatever could end or change it is an octal escape of its UTF-8 bytes."""
    plain = set(b"._-/ %[],{}'+")
    letters = (
        chr(b) if (chr(b).isalnum() and b < 128) or b in plain else f"\\{b:03o}"
        for b in text.encode()
    )
    return f'"{"".join(letters)}"'


def family_name(plan: Plan, index: int) -> str:
    return plan.family_names[index]


def cache_name(plan: Plan, index: int) -> str:
    return plan.cache_names[index]


def _weight(plan: Plan, index: int) -> Row:
    f = plan.families[index]
    shape = ", ".join(map(str, f.type.shape))
    fields = (
        _string(f.name.replace("{}", "%d")), str(f.first), str(f.count),
        str(FORMATS[f.type.dtype].ggml), _string(f.type.dtype), str(f.type.rank),
        f"{{{shape}}}", str(f.offset), str(f.stride), str(f.layout),
        *((str(stored_bytes(f.type, f.layout)),) if plan.options.guard else ()),
    )  # fmt: skip
    return Row(family_name(plan, index), fields)


def _layers(plan: Plan, index: int) -> Row:
    table = layers.of(plan.families).tables[index]
    fields = tuple(f"{{{family_name(plan, m.family)}, {m.index}}}" for m in table.members)
    return Row(table_name(plan, index), fields, "tiles" if table.layout == TILES else "vector")


def _cache(plan: Plan, index: int) -> Row:
    f = plan.cache_families[index]
    return Row(
        cache_name(plan, index), (str(f.offset), str(f.position_bytes)), f"{f.name} {f.type}"
    )


def _buffer(plan: Plan, index: int) -> Row:
    b = plan.buffers[index]
    value = b.values[-1]
    tile = index not in plan.buffer_of.values()
    kind = "uint8_t*" if tile else buffer_type(value.type)
    names = list(dict.fromkeys(short_name(plan.names[v]) for v in b.values))
    note = f"{', '.join(names)}: {value.type}"
    return Row(b.name, (kind, str(b.offset), *(_parts(plan, value.type) if not tile else ())), note)


def buffer_type(t: Type) -> str:
    name = CTYPES.get(t.dtype, "uint8_t")
    return name if name in ("Q8", "Q8x2") else f"{name}*"


def _parts(plan: Plan, t: Type) -> tuple[str, ...]:
    """Elements of a quantized value at its largest, by which its parts are laid out."""
    if t.dtype not in ("q8", "q8x2"):
        return ()
    return (str(size(t.shape, plan.options.max_rows, max_wanted(plan))),)


def max_wanted(plan: Plan) -> int:
    return min(plan.options.max_seqs, plan.options.max_rows)


def tile_buffer(plan: Plan, value: Value) -> str:
    own = set(plan.buffer_of.values())
    return next(b.name for i, b in enumerate(plan.buffers) if i not in own and value in b.values)


def cast_pointer(plan: Plan, value: Value, name: str, raw: bool) -> str:
    """A buffer is declared by the value that names it; others of its slot may have another type."""
    buffer = plan.buffers[plan.buffer_of[value]]
    if raw:
        return f"(const uint8_t*){name}"
    if buffer_type(buffer.values[-1].type) == buffer_type(value.type):
        return name
    return f"({buffer_type(value.type)}){name}"


def _value(
    plan: Plan, name: str, v: Value, launch: int, first: int = 0, count: int = 1, period: int = 0
) -> str:
    dims = [{ROWS: "-1"}.get(d, "-2") if isinstance(d, str) else str(d) for d in v.type.shape]
    base = root(v)
    offset = plan.buffers[plan.buffer_of[base]].offset if base in plan.buffer_of else 0
    return (
        f'{{{_string(name)}, {first}, {count}, "{v.type.dtype}", {len(dims)}, '
        f"{{{', '.join(dims)}}}, {offset}, {launch}, {period}}}"
    )


def _values(plan: Plan) -> Iterable[Row]:
    """Every stored value and view by name; layers of a loop share a line where names and launches
    march alike."""
    made: dict[Value, int] = {}
    for number, p in enumerate(plan.launches):
        for arg in p.launch.args:
            if arg.writes and arg.kind == "value" and p.node is not None:
                made[arg.value] = number
    groups: dict[tuple[str, str, Type, int], list[tuple[int, int, Value]]] = {}
    for node in plan.graph.nodes():
        for v in map(node.result, range(len(node.types))):
            base = root(v)
            if base not in made or v not in plan.names:
                continue
            name, number = layer_of(plan.names[v])
            key = (name, str(v.type), v.type, plan.buffers[plan.buffer_of[base]].offset)
            groups.setdefault(key, []).append((number, made[base], v))
    for (name, _, _, _), members in groups.items():
        for run in _marching(sorted(members, key=lambda m: m[:2])):
            (first, launch, v), *rest = run
            period = rest[0][1] - launch if rest else 0
            shown = name if first >= 0 else plan.names[v]
            yield Row(shown, (_value(plan, shown, v, launch, max(0, first), len(run), period),))


def layer_of(name: str) -> tuple[str, int]:
    """`l3.attend.q` -> (`l%d.attend.q`, 3); other names keep themselves, -1."""
    head, dot, rest = name.partition(".")
    if dot and head[:1] == "l" and head[1:].isdigit():
        return f"l%d.{rest}", int(head[1:])
    return name, -1


def _marching(
    members: Sequence[tuple[int, int, Value]],
) -> list[list[tuple[int, int, Value]]]:
    runs: list[list[tuple[int, int, Value]]] = []
    for m in members:
        run = runs[-1] if runs else []
        step = run[1][1] - run[0][1] if len(run) > 1 else None
        follows = run and m[0] == run[-1][0] + 1 and m[0] >= 0
        if follows and (step is None or m[1] - run[-1][1] == step):
            run.append(m)
        else:
            runs.append([m])
    return runs


def _inputs(plan: Plan) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    rows: list[Row] = []
    literals: list[Row] = []
    leaves = {str(n.attr("name")): n.result() for n in plan.graph.nodes() if n.op == "input"}
    taken: set[str] = set()
    for declared in plan.program.inputs:
        leaf = leaves.get(declared.name)
        if leaf is None:
            continue
        value = _value(plan, declared.name, leaf, -1)
        rows.append(Row(declared.name, (value, *_fill(declared, literals, taken))))
    return tuple(rows), tuple(literals)


def _blocks(plan: Plan) -> tuple[Row, ...]:
    """The block formats of the inputs, which the driver encodes."""
    used = dict.fromkeys(i.type.dtype for i in plan.program.inputs if i.type.dtype in BLOCKS)
    rows: list[Row] = []
    for f in map(FORMATS.__getitem__, used):
        offsets = (f.scale, f.offset, f.scales, f.levels, f.high)
        parts = (f.block, f.size, f.group, f.bits, *offsets, f.zero, f.run)
        fields = (_string(f.name), *(str(-1 if p is None else p) for p in parts))
        rows.append(Row(f.name, fields))
    return tuple(rows)


def _fill(declared: Input, literals: list[Row], taken: set[str]) -> tuple[str, ...]:
    """How an input is filled: the fields behind its value."""
    if declared.value is None:
        return "0", "0.0", "nullptr", "nullptr"
    fill = "1" if isinstance(declared.value, int | float) else "2"
    flat: list[int | float] = []
    _flatten(declared.value, flat)
    if declared.type.dtype not in INTEGERS and fill == "1":
        return fill, float(flat[0]).hex(), "nullptr", "nullptr"
    name = identifier(f"{declared.name}_literal".upper(), taken)
    if declared.type.dtype in INTEGERS:
        numbers = tuple(literal(v, "i64") for v in flat)
        literals.append(Row(name, numbers, "long long"))
        return fill, "0.0", "nullptr", name
    literals.append(Row(name, tuple(float(v).hex() for v in flat), "double"))
    return fill, "0.0", name, "nullptr"


def _flatten(value: object, out: list[int | float]) -> None:
    if isinstance(value, int | float):
        out.append(value)
    else:
        assert isinstance(value, tuple)
        for part in value:  # pyright: ignore[reportUnknownVariableType]
            _flatten(part, out)  # pyright: ignore[reportUnknownArgumentType]


def _scalars(plan: Plan) -> Mapping[str, str]:
    offset = {
        n: plan.buffers[plan.buffer_of[root(v)]].offset
        for n, v in plan.graph.results
        if root(v) in plan.buffer_of
    }
    results = dict(plan.graph.results)
    vocabulary = results["logits"].type.shape[-1] if plan.program.is_model else 0
    rows = [i.type.shape[0] for i in plan.program.inputs if i.type.dtype == "rows"]
    in_steps = plan.program.is_model or any(ROWS in i.type.shape for i in plan.program.inputs)
    most = plan.options.max_rows if in_steps else next(iter(rows), 1)
    return {
        "program": _string(plan.program.name),
        "rows": str(most),
        "wanted": str(max_wanted(plan) if in_steps else most),
        "seqs": str(plan.options.max_seqs if in_steps else most),
        "vocabulary": str(vocabulary),
        "logits": str(offset.get("logits", 0)),
        "next": str(offset.get("next", 0)),
    }


__all__ = ["GROUP", "PLAIN", "STRUCTS", "Row", "Tables", "of", "split_name"]
