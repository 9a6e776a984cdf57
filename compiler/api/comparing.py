"""diff: every value of a compiled program, and its plain build's logits, against the VM's bits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from compiler import pipeline
from compiler.api.building import build
from compiler.api.reference import session
from compiler.api.running import generated, model_argv, read_folder, results
from compiler.api.values import Array, checked_prompts, need_op_program
from compiler.diagnostics import UserError
from compiler.pipeline import Compiled
from runtime.compare import Report, walk
from runtime.traced import trace_program, trace_rows

LOGITS = "logits of the plain build"
DUMP = ("--dump", "all", "--dump-dir")


@dataclass(frozen=True)
class Compared:
    """A comparison in full: the report, the line of the first difference, names not stored."""

    report: Report
    line: str = ""
    missing: tuple[str, ...] = ()


def diff(
    compiled: Compiled,
    inputs: Mapping[str, Array] | None = None,
    prompts: Sequence[Sequence[int]] | None = None,
    n: int = 4,
) -> Report:
    """Compares every value, in program order; for models over the rows of prompts and n tokens.

    The compilation's options are taken; that it may not store every value does not matter.
    """
    return compare(compiled, inputs or {}, prompts, n).report


def compare(
    compiled: Compiled,
    inputs: Mapping[str, Array],
    prompts: Sequence[Sequence[int]] | None,
    n: int,
    edited: Path | None = None,
    archs: Sequence[str] | None = None,
) -> Compared:
    """`edited`: a binary of a changed `.cu`, whose stored values are compared in place of ours."""
    dumping = dumped(compiled)
    with tempfile.TemporaryDirectory(prefix="monocu.") as folder:
        place = Path(folder)
        binary = edited or build(dumping, archs)
        if compiled.program.is_model:
            prompts = checked_prompts(compiled.model, prompts or ())
            plain = None if edited else build(compiled, archs)
            given, expected = _model(dumping, binary, plain, prompts, n, place)
        else:
            need_op_program(compiled.model, prompts)
            argv = [*DUMP, str(place / "dump")]
            results(binary, inputs, place, argv)
            given = read_folder(place / "dump")
            expected = trace_program(dumping.program, inputs)
    if not expected.keys() & given.keys():
        raise UserError("no value of this program is stored by the binary that was given")
    report = walk(_pairs(expected, given))
    line = dumping.line(value_of(report.first.name)) if report.first else ""
    return Compared(report, line, tuple(name for name in expected if name not in given))


def dumped(compiled: Compiled) -> Compiled:
    """The same compilation, storing every value."""
    if compiled.options.dump:
        return compiled
    options = replace(compiled.options, dump=True)
    return pipeline.compile_model(compiled.model, options, compiled.target)


def value_of(name: str) -> str:
    """The value that an array of a dump belongs to."""
    if name == LOGITS:
        return "logits"
    parts = ("words", "low", "scales", "sums")
    head, _, last = name.rpartition(".")
    return head if last in parts else name


def _pairs(
    expected: Mapping[str, Array], given: Mapping[str, Array]
) -> Iterator[tuple[str, Array, Array]]:
    for name, array in expected.items():
        if name in given:
            if given[name].dtype != array.dtype or given[name].shape != array.shape:
                raise UserError(
                    f"{name}: {array.dtype}{list(array.shape)} is needed, the binary gives "
                    f"{given[name].dtype}{list(given[name].shape)}: was it compiled otherwise?"
                )
            yield name, array, given[name]


def _model(
    dumping: Compiled,
    binary: Path,
    plain: Path | None,
    prompts: Sequence[Sequence[int]],
    n: int,
    folder: Path,
) -> tuple[dict[str, Array], dict[str, Array]]:
    """What the binary gives and what the VM expects of the same rows.

    The VM is fed the tokens that the binary chose: what differs first is then where it went wrong.
    """
    argv = [*model_argv(dumping.model, prompts, n, folder), *DUMP, str(folder / "dump")]
    lengths = [len(p) for p in prompts]
    made = generated(binary, argv, lengths, folder, logits=True)
    given = read_folder(folder / "dump")
    fed = [[*p, *t[:-1]] for p, t in zip(prompts, made.tokens, strict=True)]
    expected = trace_rows(session(dumping.model, dumping.program), fed)
    if plain is not None:
        argv = model_argv(dumping.model, prompts, n, folder)
        whole = generated(plain, argv, lengths, folder, logits=True)
        given[LOGITS], expected[LOGITS] = np.concatenate(whole.logits), expected["logits"]
    return given, expected
