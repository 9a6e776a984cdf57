"""Parsed arguments become programs, prompts and inputs; files are written whole or not at all."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from compiler import pipeline
from compiler.command.parser import options_of, token_ids
from compiler.diagnostics import CHECKPOINT, USAGE, UserError, cause
from compiler.pipeline import Compiled, Model
from runtime import fetch
from runtime.gguf import Checkpoint
from runtime.hashed_weights import open_synthetic
from runtime.inputs import read_npy
from runtime.tokenizer import Tokenizer, open_tokenizer


def model_of(args: argparse.Namespace) -> Model:
    """MODEL with --weights; either may name a checkpoint that `monocu fetch` has stored."""
    model, weights = sources_of(args)
    return pipeline.load(model, weights)


def flags_of(weights: str | Checkpoint) -> list[str]:
    """How a binary is told of a checkpoint."""
    return weights.flags if isinstance(weights, Checkpoint) else ["--weights", weights]


def sources_of(args: argparse.Namespace) -> tuple[str | None, str | Checkpoint | None]:
    """The program and the checkpoint that MODEL and --weights or --synthetic say."""
    model, weights = args.model, args.weights
    spelled: str | None = getattr(args, "synthetic", None)  # score has no such flag
    if spelled is not None:
        given = model if model is None or pipeline.is_checkpoint(model) else None
        if given or weights:
            both = f"{given or weights} and --synthetic"
            raise UserError(f"one checkpoint is needed, {both} were given")
        return model, open_synthetic(spelled)
    if model is not None and (pipeline.is_checkpoint(model) or model in fetch.MODELS):
        if weights is not None:
            raise UserError(f"one checkpoint is needed, {model} and {weights} were given")
        model, weights = None, model
    return model, stored(weights)


def stored(weights: str | None) -> str | None:
    """The path of a checkpoint, which may be the name of one that is fetched."""
    if weights is None or weights not in fetch.MODELS or Path(weights).exists():
        return weights
    path = fetch.cached(weights)
    if path is None:
        raise UserError(f"{weights} is not fetched yet: monocu fetch {weights}", CHECKPOINT)
    return str(path)


def compiled_of(
    args: argparse.Namespace, dump: bool = False, timed: bool = False, guard: bool = False
) -> Compiled:
    """The program of the arguments, compiled for their target; guard: on the host, with guards."""
    from compiler.api.building import target_of

    target = target_of(args.target)
    guard = guard and target.name == "host"
    options = replace(options_of(args, dump), timed=timed, guard=guard)
    return pipeline.compile_model(model_of(args), options, target)


def tokenizer_of(model: Model) -> Tokenizer:
    return open_tokenizer(model.weights)


def prompts_of(args: argparse.Namespace, model: Model) -> list[list[int]] | None:
    """Token ids of each sequence; None for an op program. UserError unless just one is given."""
    given = [n for n in ("prompt", "tokens", "seqs") if getattr(args, n) is not None]
    if not model.program.is_model:
        if given:
            name = model.program.name
            raise UserError(f"{name} is an op program: it takes --input, not --{given[0]}")
        return None
    if args.input:
        raise UserError(f"{model.program.name} is a model: it takes prompts, not --input")
    if len(given) != 1:
        said = f"{' and '.join(f'--{n}' for n in given)} were" if given else "none was"
        raise UserError(f"one of --prompt, --tokens and --seqs is needed, {said} given")
    if args.prompt is not None:
        return [ids_of(tokenizer_of(model), args.prompt)]
    return [args.tokens] if args.tokens is not None else read_lists(args.seqs)


def own_cu(path: str, timed: bool = False) -> Path:
    """A `.cu` by hand; timed: with clocks in it. UserError unless it was monocu's before."""
    from runtime import toolchain

    text = toolchain.read_source(Path(path))
    if "inline constexpr const char* PROGRAM = " not in text:
        raise UserError(f"--cu: a file that `monocu compile` has written is needed, {path} is none")
    if timed and "launch_times" not in text:
        raise UserError(f"--cu: what `monocu compile --timed` has written is needed, not {path}")
    return Path(path)


def ids_of(tokenizer: Tokenizer, text: str) -> list[int]:
    """UserError where the text has no tokens."""
    ids = tokenizer.encode(text)
    if not ids:
        raise UserError("a text of at least one token is needed, an empty one was given")
    return ids


def read_lists(path: str) -> list[list[int]]:
    """The token lists of a file, one a line."""
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--seqs: {path} cannot be read: {cause(error)}") from None
    try:
        lists = [token_ids(line) for line in lines]
    except argparse.ArgumentTypeError as error:
        raise UserError(f"--seqs: {path}: {error}") from None
    if not lists:
        raise UserError(f"--seqs: {path}: a token list a line is needed")
    return lists


def inputs_of(given: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The arrays of NAME=FILE words."""
    arrays: dict[str, NDArray[Any]] = {}
    for word in given:
        name, equals, path = word.partition("=")
        if not (name and equals and path):
            raise UserError(f"--input: NAME=FILE is needed, {word!r} was given")
        if name in arrays:
            raise UserError(f"--input: one file for {name} is needed, a second was given")
        arrays[name] = read_npy(path)
    return arrays


def write_whole(path: str, content: bytes, executable: bool = False) -> None:
    """Writes a file under another name and moves it to its own; `-` is standard output.

    A link stays one, and a device or a pipe is written to: only a file is replaced.
    """
    if path == "-":
        sys.stdout.buffer.write(content)
        return
    place = Path(path).resolve()
    try:
        if place.exists() and not place.is_file():
            place.write_bytes(content)
            return
        fd, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        try:
            with open(fd, "wb") as file:
                file.write(content)
            os.chmod(temporary, (0o777 if executable else 0o666) & ~_umask())
            os.replace(temporary, place)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}", USAGE) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
