"""Laws of the op table, from the table alone: no op is named here.

Every sample is a program that the command line runs; here it is computed exactly and by meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from compiler.graph import Graph, Node
from compiler.ops import Op, OpError, bound, build, load
from compiler.program import Program
from compiler.types import Type
from compiler.values import Value
from runtime.inputs import default_inputs
from runtime.vm import Environment, caches_of, run
from tests.samples import program_of

ROOT = Path(__file__).parents[1]
OPS = dict(sorted(load().items()))
SAMPLES = [
    pytest.param(op, text, id=f"{op.name}-{at}")
    for op in OPS.values()
    for at, text in enumerate(op.samples)
]
NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": np.float32, "i32": np.int32, "i64": np.int64}

# How far a result may be from its meaning, relative to the result's greatest magnitude: by the
# least precise dtype that a sample computes with.
TOLERANCE = {"f32": 2e-6, "q8x2": 3e-4, "f16": 2**-11, "bf16": 2**-8, "q8": 2e-2}

each_op = pytest.mark.parametrize("op", [pytest.param(op, id=name) for name, op in OPS.items()])
each_sample = pytest.mark.parametrize(("op", "text"), SAMPLES)


def computed(graph: Graph) -> list[Node]:
    """The nodes that ops compute."""
    return [n for n in graph.nodes() if n.operands]


def drawn(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Normal values for the f32 inputs that have no literal."""
    rng = np.random.default_rng(seed)
    return {
        i.name: rng.standard_normal(i.type.shape).astype(np.float32)  # type: ignore[arg-type]
        for i in program.inputs
        if i.type.dtype == "f32" and i.value is None
    }


def results(program: Program, inputs: dict[str, Value], meaning: bool = False) -> list[np.ndarray]:
    env = Environment(inputs, None, caches_of(program.graph, meaning))
    return list(run(program.graph, env, meaning).values())  # type: ignore[arg-type]


# the record


@each_op
def test_a_line_of_doc(op: Op) -> None:
    assert op.doc.strip() == op.doc and len(op.doc) > 5 and "\n" not in op.doc


@each_op
def test_samples_of_every_kind(op: Op) -> None:
    assert len(op.samples) >= 3
    shapes = [[d for i in program_of(s).inputs for d in i.type.shape] for s in op.samples]
    dims = [d for shape in shapes for d in shape if isinstance(d, int)]
    assert 1 in dims, "no sample with an axis of size 1"
    assert any(d > 1 and d % 32 for d in dims), "no sample with an axis that is no multiple of 32"
    assert any(all(d > 1 for d in s) and any(d % 32 == 0 for d in s) for s in shapes if s), (
        "no ordinary sample"
    )


@each_op
def test_samples_call_the_op_and_differ(op: Op) -> None:
    assert len(set(op.samples)) == len(op.samples)
    for text in op.samples:
        assert op.name in [n.op for n in computed(program_of(text).graph)]


@each_op
def test_only_its_own_file_names_it(op: Op) -> None:
    """In the op table and the VM; fusion rules and kernels may name ops."""
    quoted = re.compile(rf"""["']{op.name}["'](?!:)""")
    owners = []
    for path in [*(ROOT / "compiler/ops").glob("*.py"), ROOT / "runtime/vm.py"]:
        code = re.sub(r'(?s)""".*?"""', "", path.read_text())
        if quoted.search(code):
            owners.append(path.name)
    assert len(owners) == 1, owners


@each_op
def test_a_signature_binds_what_infer_takes(op: Op) -> None:
    names = [p.name for p in op.params]
    assert len(set(names)) == len(names)
    assert not [p for p in op.params if p.variadic and p.optional]
    operands = [p for p in op.params if p.is_operand]
    for count in {sum(not p.optional for p in operands), len(operands)}:
        given = bound(op, [Type("f32")] * count, {})
        assert sorted(given) == sorted(p.name for p in operands)


@each_op
def test_an_expression_has_its_operands_and_functions(op: Op) -> None:
    helpers = "\n".join(p.read_text() for p in (ROOT / "codegen/lib").glob("*.cuh"))
    for text in (op.expression or {}).values():
        assert {int(i) for i in re.findall(r"\{(\d)\}", text)} == set(range(len(op.params)))
        for called in re.findall(r"([a-z_0-9]+)\(", text):
            assert re.search(rf"__device__ inline \w+ {called}\(", helpers), called
    assert (op.expression is None) == ("elementwise" not in op.traits)


# the rule


@each_sample
def test_values_are_of_the_inferred_types(op: Op, text: str) -> None:
    program = program_of(text)
    got = results(program, default_inputs(program))
    for (_, value), array in zip(program.graph.results, got, strict=True):
        assert array.shape == value.type.shape
        assert array.dtype == NUMPY[value.type.dtype]


@each_sample
def test_costs_are_counts(op: Op, text: str) -> None:
    for n in computed(program_of(text).graph):
        ins, outs = [v.type for v in n.operands], list(n.types)
        flops, moved = OPS[n.op].flops(ins, outs), OPS[n.op].bytes(ins, outs)
        assert isinstance(flops, int) and isinstance(moved, int)
        assert flops >= 0 and moved >= 0
        assert moved > 0 or "view" in OPS[n.op].traits


def wrong_operands(n: Node) -> Iterator[tuple[int, Type]]:
    """Types that no operand of that place may have."""
    for at, v in enumerate(n.operands):
        yield at, Type("q8_0", (32, 32, 32, 32, 32))
        yield at, Type("cache_f32" if v.type.dtype == "rows" else "rows", v.type.shape)


@each_sample
def test_wrong_operands_are_refused_by_name(op: Op, text: str) -> None:
    for n in computed(program_of(text).graph):
        if n.op != op.name:
            continue
        for at, wrong in wrong_operands(n):
            types = [v.type for v in n.operands]
            types[at] = wrong
            with pytest.raises(OpError, match=rf"{op.name}.* needs .*got ") as error:
                op.infer(**bound(op, types, dict(n.attrs)))
            assert str(wrong) in str(error.value)


@each_op
def test_an_attribute_without_default_is_asked_for(op: Op) -> None:
    first = computed(program_of(op.samples[0]).graph)
    n = next(n for n in first if n.op == op.name)
    for p in op.params:
        if not p.is_operand and p.default is None:
            attrs = {k: v for k, v in n.attrs if k != p.name}
            with pytest.raises(OpError, match=f"{op.name} needs {p.name}="):
                build(op.name, n.operands, attrs)  # type: ignore[arg-type]


# the arithmetic


def tolerance(program: Program) -> float:
    dtypes = {t.dtype for n in computed(program.graph) for t in n.types}
    return max(TOLERANCE[d] for d in dtypes | {"f32"} if d in TOLERANCE)


def near(exact: np.ndarray, real: np.ndarray, bound: float) -> None:
    if exact.dtype.kind == "i":
        assert np.array_equal(exact, real)
        return
    assert real.dtype == np.float64
    assert np.array_equal(np.isnan(exact), np.isnan(real))
    good = np.isfinite(real)
    assert np.array_equal(exact[~good & ~np.isnan(real)], real[~good & ~np.isnan(real)])
    # a single sum of 32 rounded products may cancel: there the root of its terms is the scale
    scale = np.abs(real[good]).max(initial=4.0 if bound > TOLERANCE["f32"] else 0.0)
    assert np.abs(exact[good] - real[good]).max(initial=0.0) <= bound * scale


@each_sample
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_exact_values_are_near_their_meaning(op: Op, text: str, seed: int | None) -> None:
    program = program_of(text)
    inputs = default_inputs(program, {} if seed is None else drawn(program, seed))
    pairs = zip(results(program, inputs), results(program, inputs, meaning=True), strict=True)
    for exact, real in pairs:
        near(exact, real, tolerance(program))


@each_sample
def test_a_program_gives_the_same_bits_twice(op: Op, text: str) -> None:
    program = program_of(text)
    inputs = default_inputs(program, drawn(program))
    before = {name: v.copy() for name, v in inputs.items() if isinstance(v, np.ndarray)}
    first, second = results(program, inputs), results(program, inputs)
    for a, b in zip(first, second, strict=True):
        assert a.tobytes() == b.tobytes()
    for name, array in before.items():
        assert array.tobytes() == inputs[name].tobytes(), f"input {name} was written"  # type: ignore[union-attr]


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-40, -1e-40, 88.0, -88.0, 3e38, -3e38]
NEVER_FINITE = [np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("op", [o for o in OPS.values() if o.expression], ids=lambda o: o.name)
def test_special_values_of_elementwise_ops(op: Op) -> None:
    values = np.array(SPECIAL + NEVER_FINITE, np.float32)
    grid = np.meshgrid(*[values] * len(op.params))
    operands = {p.name: v for p, v in zip(op.params, grid, strict=True)}
    exact = op.exact(**operands)
    wide = {name: v.astype(np.float64) for name, v in operands.items()}
    with np.errstate(all="ignore"):
        real = op.meaning(**wide).astype(np.float32)
    assert np.array_equal(np.isnan(exact), np.isnan(real))
    infinite = np.isinf(real)
    assert np.array_equal(exact[infinite], real[infinite])
    both = np.isfinite(real)
    error = np.abs(exact[both].astype(np.float64) - real[both])
    # relative to the result; to the operand where 1 + (nearly -1) is multiplied by it (gelu)
    size = np.where(np.isfinite(grid[0]), np.abs(grid[0]), 0)[both]
    assert (error <= 1e-6 * np.abs(real[both]) + 6e-8 * size + 1e-36).all()


def of_rows(op: Op, text: str) -> bool:
    """Whether the sample is one call of an op that works on each row of its first input alone."""
    program = program_of(text)
    first, *others = [i.type for i in program.inputs]
    return (
        bool(op.traits & {"row", "elementwise"})
        and len(computed(program.graph)) == 1
        and first.rank > 1
        and first.shape[0] != 1
        and not any(o.rank >= first.rank or o.dtype == "rows" for o in others)
    )


@pytest.mark.parametrize(("op", "text"), [p for p in SAMPLES if of_rows(*p.values)])
def test_rows_do_not_see_each_other(op: Op, text: str) -> None:
    """Of ops that say so: a row's bits are those that it has alone, whatever stands beside it."""
    program = program_of(text)
    n = computed(program.graph)[0]
    inputs = default_inputs(program, drawn(program))
    values = [inputs[str(v.node.attr("name"))] for v in n.operands]

    def compute(x: Value) -> tuple[np.ndarray, ...]:
        got = op.exact(**bound(op, [x, *values[1:]], dict(n.attrs)))
        return got if isinstance(got, tuple) else (got,)

    whole = compute(values[0])
    spoiled = values[0].copy()  # type: ignore[union-attr]
    spoiled[1:] = np.nan if spoiled.dtype.kind == "f" else 0
    alone, beside = compute(values[0][:1]), compute(spoiled)  # type: ignore[index]
    for w, a, b in zip(whole, alone, beside, strict=True):
        assert w[:1].tobytes() == a.tobytes() == b[:1].tobytes()
