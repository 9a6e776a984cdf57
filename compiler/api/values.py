"""What goes into and comes out of runs: arrays by name, prompts, generated tokens and logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.diagnostics import UserError
from compiler.pipeline import Model

Array = NDArray[Any]


@dataclass(frozen=True)
class Generated:
    """What a model made of its prompts.

    tokens: the new ids of each sequence. logits: f32[rows, V] of each, where they were asked for:
    a row for each new token, or for every row but the last token's. report: the binary's figures.
    """

    tokens: tuple[tuple[int, ...], ...]
    logits: tuple[NDArray[np.float32], ...] = ()
    report: dict[str, Any] | None = None


def checked_prompts(model: Model, prompts: Sequence[Sequence[int]]) -> list[list[int]]:
    """The prompts as lists. UserError where there is none, or an id is outside the vocabulary."""
    if not model.program.is_model:
        raise UserError(f"{model.program.name} is an op program: it takes inputs, not prompts")
    vocabulary = dict(model.program.graph.results)["logits"].type.shape[-1]
    assert isinstance(vocabulary, int)
    if not prompts or not all(len(p) for p in prompts):
        raise UserError(f"{model.program.name} needs prompts of at least one token")
    for token in (t for prompt in prompts for t in prompt):
        if not 0 <= token < vocabulary:
            raise UserError(f"token ids from 0 to {vocabulary - 1} are needed, {token} was given")
    return [[int(t) for t in prompt] for prompt in prompts]


def need_op_program(model: Model, prompts: Sequence[Sequence[int]] | None) -> None:
    """UserError where an op program is given prompts."""
    if prompts is not None:
        checked_prompts(model, prompts)
