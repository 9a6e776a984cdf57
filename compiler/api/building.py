"""compile and build: a model as one `.cu`, and the `.cu` as a binary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from compiler import pipeline
from compiler.diagnostics import UserError
from compiler.pipeline import Compiled, Model
from compiler.target import CUDA, HOST, KV_STORAGE, NUMERICS, Options, Target
from runtime import toolchain
from runtime.gpu import gpus

TARGETS = {"host": HOST, "cuda": CUDA}


def target_of(name: str) -> Target:
    """The machine to plan for; "auto" is the GPU where there is one and nvcc, else the host."""
    if name == "auto":
        name = "cuda" if gpus() and has_nvcc() else "host"
    if name not in TARGETS:
        raise UserError(f"a target is one of {', '.join(TARGETS)}, auto; {name!r} was given")
    return TARGETS[name]


def has_nvcc() -> bool:
    try:
        toolchain.find_nvcc()
    except UserError:
        return False
    return True


def archs_of(given: Sequence[str] | None) -> tuple[str, ...]:
    """What nvcc compiles for: as told, else the GPU here, else what monocu supports."""
    if given:
        return tuple(given)
    return (gpus()[0].build_arch,) if gpus() else toolchain.ARCHS


def options_of(
    numerics: str, kv: str, max_rows: int = 64, max_seqs: int = 8, hold: Iterable[str] = ()
) -> Options:
    """Compile options. UserError where one is none."""
    known = (("numerics", numerics, NUMERICS), ("kv", kv, ("", *KV_STORAGE.values())))
    for name, given, allowed in known:
        if given not in allowed:
            choices = ", ".join(repr(a) for a in dict.fromkeys(allowed))
            raise UserError(f"{name} is one of {choices}; {given!r} was given")
    if min(max_rows, max_seqs) < 1:
        raise UserError(f"max_rows and max_seqs of 1 or more are needed, not {max_rows, max_seqs}")
    return Options(numerics, kv, max_rows, max_seqs, tuple(hold))


def compile(
    model: Model | str | Path,
    *,
    numerics: str = "int8",
    kv: str = "",
    max_rows: int = 64,
    max_seqs: int = 8,
    hold: Iterable[str] = (),
    dump: bool = False,
    target: str = "auto",
) -> Compiled:
    """The model as one `.cu` (`.text`), with every stage on the way.

    dump: every value is stored, for `diff`. Errors: UserError; ProgramError lists all that the
    target cannot compute.
    """
    loaded = model if isinstance(model, Model) else pipeline.load(model)
    options = replace(options_of(numerics, kv, max_rows, max_seqs, hold), dump=dump)
    return pipeline.compile_model(loaded, options, target_of(target))


def build(compiled: Compiled, archs: Sequence[str] | None = None) -> Path:
    """The binary of a compilation, built now or found in the cache; archs are nvcc's."""
    return toolchain.build(compiled.text, compiled.target.name, archs_of(archs))
