"""run: a compilation's binary, built if need be, with NumPy in and out."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from compiler.api.building import build
from compiler.api.building import compile as compile_model
from compiler.api.values import Array, Generated, checked_prompts, need_op_program
from compiler.diagnostics import UserError
from compiler.pipeline import Compiled, Model
from runtime.binary import capture


def run(
    compiled: Compiled | Model | str | Path,
    inputs: Mapping[str, Array] | None = None,
    prompts: Sequence[Sequence[int]] | None = None,
    n: int = 64,
    *,
    logits: bool = False,
    flags: Sequence[str] = (),
    archs: Sequence[str] | None = None,
) -> dict[str, Array] | Generated:
    """An op program's results by name; a model's greedy tokens for each prompt (token ids).

    n: tokens of each sequence, at most. logits: also those of every row. flags: more of the
    binary's. archs: nvcc's. Errors: UserError, with the binary's code and words where it refuses.
    """
    made = compiled if isinstance(compiled, Compiled) else compile_model(compiled)
    with tempfile.TemporaryDirectory(prefix="monocu.") as folder:
        place = Path(folder)
        if not made.program.is_model:
            need_op_program(made.model, prompts)
            return results(build(made, archs), inputs or {}, place, flags)
        checked = checked_prompts(made.model, prompts or ())
        argv = [*model_argv(made.model, checked, n, place), *flags]
        return generated(build(made, archs), argv, [len(p) for p in checked], place, logits)


def results(
    binary: Path, inputs: Mapping[str, Array], folder: Path, flags: Sequence[str] = ()
) -> dict[str, Array]:
    """Runs an op program's binary; `folder` takes its files."""
    argv: list[str] = ["--out", str(folder / "out"), *flags]
    for index, (name, array) in enumerate(inputs.items()):
        path = folder / f"input{index}.npy"
        np.save(path, array)
        argv += ["--input", f"{name}={path}"]
    capture(binary, argv)
    return read_folder(folder / "out")


def read_folder(folder: Path) -> dict[str, Array]:
    """Every `.npy` of a folder by its name."""
    return {path.stem: np.load(path, allow_pickle=False) for path in folder.glob("*.npy")}


def model_argv(model: Model, prompts: Sequence[Sequence[int]], n: int, folder: Path) -> list[str]:
    """The flags of a model's binary for these prompts; `folder` takes the list of them."""
    path = folder / "prompts"
    path.write_text("".join(",".join(map(str, p)) + "\n" for p in prompts))
    return [*model.weights.flags, "--seqs", str(path), "-n", str(n)]


def generated(
    binary: Path, argv: Sequence[str], lengths: Sequence[int], folder: Path, logits: bool
) -> Generated:
    """Runs a model's binary; `lengths` are its prompts'."""
    path = folder / "logits.npy"
    more = ["--logits", "all", "--logits-file", str(path)] if logits else []
    done = capture(binary, [*argv, "--json", *more])
    report = done.report()
    tokens = tuple(tuple(int(t) for t in line) for line in report["tokens"])
    if len(tokens) != len(lengths):
        raise UserError(f"{len(lengths)} sequences went in, {len(tokens)} came out")
    rows = np.load(path, allow_pickle=False) if logits else np.zeros((0, 0), np.float32)
    ends = np.cumsum([k + max(len(t), 1) - 1 for k, t in zip(lengths, tokens, strict=True)])
    split = tuple(np.split(rows, ends[:-1])) if logits else ()
    return Generated(tokens, split, report)
