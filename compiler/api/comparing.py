"""diff: every value of a compiled program, and its plain build's logits, against the VM's bits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from compiler import pipeline
from compiler.api.bisect_passes import Guilty, Reference, try_passes
from compiler.api.building import build
from compiler.api.reference import session
from compiler.api.running import generated, model_argv, read_folder, results
from compiler.api.values import Array, checked_prompts, need_op_program
from compiler.diagnostics import UserError
from compiler.pipeline import Compiled, names_of
from passes.inline import inlined
from runtime.compare import Report, walk
from runtime.traced import owner, trace_program, trace_rows

LOGITS = "logits of the plain build"
DUMP = ("--dump", "all", "--dump-dir")


@dataclass(frozen=True)
class Compared:
    """A comparison in full: the report, the line of the first difference, names not stored.

    guilty: passes that changed what is computed, so that binary and VM agree on what is wrong.
    """

    report: Report
    line: str = ""
    missing: tuple[str, ...] = ()
    guilty: tuple[Guilty, ...] = ()

    @property
    def differs(self) -> bool:
        return self.report.first is not None or bool(self.guilty)


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
    seen = observe(compiled, inputs, prompts, n, edited, archs)
    report = seen.report
    line = seen.line_of(report.first.name) if report.first else ""
    missing = tuple(name for name in seen.expected if name not in seen.given)
    return Compared(report, line, missing, _wrong_passes(compiled, inputs, prompts))


def _wrong_passes(
    compiled: Compiled, inputs: Mapping[str, Array], prompts: Sequence[Sequence[int]] | None
) -> tuple[Guilty, ...]:
    """The passes are tried by the VM where the ops behind them are not those before them."""
    lowered = set(inlined(compiled.stages[0].after).values())
    if lowered.issuperset(inlined(compiled.program.graph).values()):
        return ()
    reference = Reference(compiled.model, compiled.options, inputs, prompts, 0)
    return tuple(try_passes(reference, compiled.options, compiled.target).guilty)


@dataclass(frozen=True)
class Observed:
    """A run of a binary that stores its values, and the VM's run of the same rows, by name."""

    dumping: Compiled
    expected: Mapping[str, Array]
    given: Mapping[str, Array]

    @cached_property
    def report(self) -> Report:
        """The comparison of what both have, in program order."""
        return walk(_pairs(self.expected, self.given))

    def line_of(self, name: str) -> str:
        """The statement that computes the value of an array."""
        known = names_of(self.dumping.program.graph).values()
        return self.dumping.line("logits" if name == LOGITS else owner(name, set(known)))


def observe(
    compiled: Compiled,
    inputs: Mapping[str, Array],
    prompts: Sequence[Sequence[int]] | None,
    n: int,
    edited: Path | None = None,
    archs: Sequence[str] | None = None,
) -> Observed:
    """Runs both. UserError where the binary stores nothing of this program."""
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
    return Observed(dumping, expected, given)


def dumped(compiled: Compiled) -> Compiled:
    """The same compilation, storing every value."""
    if compiled.options.dump:
        return compiled
    options = replace(compiled.options, dump=True)
    return pipeline.compile_model(compiled.model, options, compiled.target)


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
