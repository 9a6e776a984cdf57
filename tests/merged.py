"""Many small op programs as one, so that a translation unit (seconds of g++) serves dozens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from codegen import plan as planning
from codegen import render
from codegen.plan import Plan
from compiler import pipeline
from compiler.exact import round_bf16
from compiler.fuzz.merge import merged
from compiler.program import Input, Program
from compiler.target import HOST, Options, Target
from runtime.binary import capture
from runtime.inputs import plain_dtype, plain_shape
from tests.awkward import SPECIAL, random_floats

__all__ = [
    "Built",
    "awkward",
    "compiled",
    "groups",
    "kinds_of_values",
    "merged",
    "rows_of",
    "rows_values",
    "run",
]

Array = NDArray[np.generic]


def rows_of(program: Program) -> Input | None:
    return next((i for i in program.inputs if i.type.dtype == "rows"), None)


def groups(programs: Iterable[Program], most: int = 40) -> list[list[Program]]:
    """Programs that one binary may hold: without rows, or with rows of one length."""
    kinds: dict[str, list[Program]] = {}
    for program in programs:
        rows = rows_of(program)
        kinds.setdefault(str(rows.type) if rows else "", []).append(program)
    return [k[at : at + most] for k in kinds.values() for at in range(0, len(k), most)]


def rows_values(programs: Iterable[Program]) -> list[dict[str, Array]]:
    """The different rows that the programs declare, each as an input `rows`; one empty without."""
    found: dict[object, Array] = {}
    for rows in filter(None, map(rows_of, programs)):
        count = plain_shape(rows.type)[0]
        pattern = tuple((0, t) for t in range(count))
        value = pattern if rows.value is None else rows.value
        found[value] = np.array(value, np.int32)
    return [{"rows": v} for v in found.values()] or [{}]


@dataclass(frozen=True)
class Built:
    """A program behind its passes, its plan and its text."""

    program: Program
    plan: Plan
    text: str


def compiled(program: Program, options: Options, target: Target = HOST) -> Built:
    lowered, _ = pipeline.lower(program, options, target)
    plan = planning.plan(lowered, target, options, pipeline.names_of(lowered.graph))
    return Built(lowered, plan, render.render(plan))


def run(binary: Path, inputs: Mapping[str, Array], *flags: str) -> dict[str, Array]:
    """The results of an op program's binary by name."""
    with TemporaryDirectory() as folder:
        argv = ["--out", f"{folder}/out", *flags]
        for name, array in inputs.items():
            np.save(f"{folder}/{name}.npy", array)
            argv += ["--input", f"{name}={folder}/{name}.npy"]
        capture(binary, argv)
        return {p.stem: np.load(p) for p in Path(folder, "out").glob("*.npy")}


def kinds_of_values(program: Program) -> dict[str, dict[str, Array]]:
    """Default values, whose sums are exact in any order; normal ones, whose rounding tells orders
    apart; and awkward ones, of which a long sum is NaN."""
    return {"default": {}, "normal": awkward(program, 2, share=0), "awkward": awkward(program, 1)}


def awkward(program: Program, seed: int, share: float = 0.1) -> dict[str, Array]:
    """Values for the inputs of floats: normal ones, of f32 a share special or of random bits.

    Inputs of blocks get numbers only: what a quantizer makes of NaN is nobody's contract.
    """
    rng = np.random.default_rng(seed)
    out: dict[str, Array] = {}
    for declared in program.inputs:
        if declared.type.dtype in ("rows", "i32", "i64"):
            continue
        shape = plain_shape(declared.type)
        values = rng.standard_normal(shape).astype(np.float32)
        if declared.type.dtype == "f32":
            odd = np.concatenate([SPECIAL, random_floats(64, seed)])
            values = np.where(rng.random(shape) < share, rng.choice(odd, shape), values)
        values = round_bf16(values) if declared.type.dtype == "bf16" else values
        out[declared.name] = values.astype(plain_dtype(declared.type))
    return out
