"""vm: a program's results on the reference VM, in NumPy alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from compiler import pipeline
from compiler.api.building import options_of
from compiler.api.values import Array, Generated, checked_prompts, need_op_program
from compiler.pipeline import Model
from compiler.program import Program
from compiler.target import HOST, Options
from compiler.values import Weight
from passes import names as fusions
from runtime.traced import LogitsSession
from runtime.vm import Session, run_program


def vm(
    model: Model | str | Path,
    inputs: Mapping[str, Array] | None = None,
    prompts: Sequence[Sequence[int]] | None = None,
    n: int = 1,
    *,
    numerics: str = "int8",
    kv: str = "",
    float64: bool = False,
    logits: bool = False,
) -> dict[str, Array] | Generated:
    """An op program's results by name; a model's `n` greedy tokens for each prompt.

    Exact values, the bits that every target gives; with float64 what the program means in real
    numbers. logits: also those of every row. Errors: UserError.
    """
    loaded = model if isinstance(model, Model) else pipeline.load(model)
    options = options_of(numerics, kv)
    if not loaded.program.is_model:
        need_op_program(loaded, prompts)
        results = run_program(bits(loaded, options, float64), inputs, float64)
        return cast(dict[str, Array], results)
    checked = checked_prompts(loaded, prompts or ())
    run = logits_session(loaded, options, float64, every=True) if logits else None
    tokens: list[list[int]] = [[] for _ in checked]
    for sequence, token in generate(loaded, checked, n, options, float64, run):
        tokens[sequence].append(token)
    rows = tuple(run.logits(s) for s in range(len(checked))) if run else ()
    return Generated(tuple(map(tuple, tokens)), rows)


def generate(
    model: Model,
    prompts: Sequence[Sequence[int]],
    n: int,
    options: Options,
    float64: bool = False,
    keeps: LogitsSession | None = None,
) -> Iterator[tuple[int, int]]:
    """(sequence, token) as the VM chooses them; `keeps` takes the prompts in even where n is 0."""
    run = keeps or session(model, bits(model, options, float64), float64)
    for place in run.stream(prompts, max(n, 1) if keeps else n):
        if n:
            yield place


def logits_session(model: Model, options: Options, float64: bool, every: bool) -> LogitsSession:
    """A session that keeps logits: of every row, or of those that choose a token."""
    made = LogitsSession(bits(model, options, float64), model.weights.weight, meaning=float64)
    made.every = every
    return made


def bits(model: Model, options: Options, float64: bool = False) -> Program:
    """The program behind lower-numerics; before it where its meaning is asked for."""
    if float64:
        return model.program
    held = Options(options.numerics, options.kv, hold=fusions())
    return pipeline.lower(model.program, held, HOST)[0]


def session(model: Model, program: Program, float64: bool = False) -> Session:
    """A run of a model's program, lowered or not, over its checkpoint."""

    def weight(name: str) -> Weight:
        return model.weights.weight(name)

    return Session(program, weight, meaning=float64)
