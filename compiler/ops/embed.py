"""embed: a table's row for each token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.diagnostics import UserError
from compiler.ops import Op, define, sample
from compiler.ops.rules import Array, Reals, block_formats, need, real, static
from compiler.types import BLOCKS, FLOATS, Type, nbytes, size
from compiler.values import Weight


def _infer(token: Type, table: Type) -> Type:
    need(token.dtype == "i32", "embed needs i32 tokens", token)
    need(table.dtype in (*FLOATS, *BLOCKS) and table.rank == 2 and not table.is_dynamic,
         "embed needs a table[V, D] of a weight format", table)  # fmt: skip
    return Type("f32", (*static("embed", token).shape, table.shape[1]))


def _checked(token: Array, table: Array | Weight) -> None:
    outside = token[(token < 0) | (token >= table.shape[0])]
    if outside.size:
        raise UserError(f"embed needs tokens of 0..{table.shape[0] - 1}, got {outside[0]}")


def _meaning(token: Array, table: Array | Weight) -> Reals:
    _checked(token, table)
    if not isinstance(table, Weight):
        return real(table)[token]
    used, place = np.unique(token, return_inverse=True)
    rows = np.ascontiguousarray(table.rows[used])
    picked = real(Weight(table.format, (len(used), table.shape[1]), rows))
    return picked[place.reshape(token.shape)]


def _exact(token: Array, table: Array | Weight) -> Array:
    """The rows' values as the format defines them: fl(fl(d * level) + m)."""
    _checked(token, table)
    return table.gather(token) if isinstance(table, Weight) else table[token].astype(np.float32)


def _bytes(ins: Sequence[Type], outs: Sequence[Type]) -> int:
    token, table = ins
    rows = table.with_shape(size(token.shape), table.shape[1])
    return nbytes(token) + nbytes(rows) + nbytes(outs[0])


def _samples() -> tuple[str, ...]:
    tokens = "token: i32[4] = [1, 0, 3, 1]"
    return (
        sample("token: i32[1] = [0]; table: f32[1, 1]", "embed(token, table)"),
        sample(f"{tokens}; table: f32[5, 37]", "embed(token, table)"),
        sample(f"{tokens}; table: f16[4, 64]", "embed(token, table)"),
        sample(f"{tokens}; table: bf16[4, 33]", "embed(token, table)"),
        *(
            sample(f"{tokens}; table: {f}[4, {k}]", "embed(token, table)")
            for f, k in block_formats(96)
        ),
    )


define(
    Op(
        "embed",
        "token, table",
        infer=_infer,
        meaning=_meaning,
        exact=_exact,
        doc="table[V, D]'s row for each token of i32[...], as f32[..., D]",
        truths=("embed([2, 1], [[1.0], [nan], [-0.0], [inf]]) = [[-0.0], [nan]]",),
        samples=_samples(),
        flops=lambda _, __: 0,
        bytes=_bytes,
        traits=frozenset({"weight"}),
    )
)
