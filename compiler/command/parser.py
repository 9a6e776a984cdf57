"""Arguments shared by the verbs, and a parser whose complaints are UserErrors.

Imports nothing heavy: help must come at once. `job.py` turns parsed arguments into programs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import NoReturn

from compiler.diagnostics import UserError
from compiler.target import KV_STORAGE, NUMERICS, Options

MODEL_HELP = "a .model file, an example's name, or a checkpoint: the example of its architecture"
TARGETS = ("host", "cuda", "auto")


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that takes no abbreviations and raises UserError."""

    def __init__(self, prog: str, doc: str) -> None:
        super().__init__(
            prog,
            description=doc,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.add_argument("--traceback", action="store_true", help="show where a bug of ours is")

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        return self.parse_intermixed_args(words)

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see {self.prog} --help")


def whole(least: int, most: int = 2**31 - 1) -> Callable[[str], int]:
    """A type for `add_argument`: a whole number from `least` to `most`."""

    def read(text: str) -> int:
        number = int(text) if text.isascii() and text.removeprefix("-").isdecimal() else None
        if number is None or not least <= number <= most:
            raise argparse.ArgumentTypeError(
                f"a whole number from {least} to {most} is needed, {text!r} was given"
            )
        return number

    return read


def listed(text: str) -> tuple[str, ...]:
    """A type for `add_argument`: names between commas."""
    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError(f"names between commas are needed, {text!r} was given")
    return names


def token_ids(text: str) -> list[int]:
    """A type for `add_argument`: token ids between commas."""
    read = whole(0)
    return [read(part.strip()) for part in text.split(",")]


def add_model(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """MODEL and --weights."""
    parser.add_argument(
        "model", metavar="MODEL", nargs="?" if optional else None, help=MODEL_HELP
    )  # fmt: skip
    parser.add_argument(
        "--weights", metavar="FILE", help="the checkpoint: a GGUF file, or what is fetched"
    )
    parser.add_argument(
        "--synthetic",
        metavar="PRESET:TYPE",
        help="hashed weights of a model's shapes in place of a file: qwen3-8b:q8_0",
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """What a compilation is asked for."""
    group = parser.add_argument_group("compilation")
    default = Options()
    group.add_argument(
        "--numerics",
        choices=NUMERICS,
        default=default.numerics,
        help=f"arithmetic of projections by quantized weights ({default.numerics})",
    )
    group.add_argument(
        "--kv",
        choices=sorted(set(KV_STORAGE.values())),
        default="",
        help=f"how caches are stored ({', '.join(f'{v} in {k}' for k, v in KV_STORAGE.items())})",
    )
    group.add_argument(
        "--max-rows",
        type=whole(1, 4096),
        default=default.max_rows,
        metavar="COUNT",
        help=f"rows of one step, at most ({default.max_rows})",
    )
    group.add_argument(
        "--max-seqs",
        type=whole(1, 256),
        default=default.max_seqs,
        metavar="COUNT",
        help=f"sequences at once, at most ({default.max_seqs})",
    )
    group.add_argument(
        "--hold",
        type=listed,
        action="extend",
        default=[],
        metavar="NAMES",
        help="passes to hold back, between commas; `monocu explain` names them",
    )


def add_target(parser: argparse.ArgumentParser, arch: bool = True) -> None:
    """Where the binary shall run."""
    parser.add_argument(
        "--target",
        choices=TARGETS,
        default="auto",
        help="host: the CPU plays the GPU (g++); cuda (nvcc); auto: the GPU if there is one",
    )
    if arch:
        parser.add_argument(
            "--arch",
            type=listed,
            metavar="NAMES",
            help="cuda: architectures between commas (the GPU's here, else sm_80,sm_90a)",
        )


def add_prompts(parser: argparse.ArgumentParser) -> None:
    """A model's prompts."""
    group = parser.add_argument_group("prompts of a model (one of)")
    group.add_argument("--prompt", metavar="TEXT", help="text, by the checkpoint's vocabulary")
    group.add_argument(
        "--tokens", type=token_ids, metavar="IDS", help="token ids between commas: 1,2,3"
    )
    group.add_argument(
        "--seqs", metavar="FILE", help="token ids of several sequences, one list a line"
    )


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """An op program's inputs."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="an op program's input from a .npy file, in place of its declared or default values",
    )


def options_of(args: argparse.Namespace, dump: bool = False) -> Options:
    """The compile options that the arguments ask for."""
    return Options(
        args.numerics, args.kv, args.max_rows, args.max_seqs, tuple(args.hold), dump
    )  # fmt: skip
