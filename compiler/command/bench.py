"""monocu bench: llama-bench's tests of a model, with the share of the memory's speed they reach."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from compiler.command.parser import add_model, add_options, add_target, whole
from compiler.target import Options

if TYPE_CHECKING:
    from compiler.pipeline import Compiled

DOC = """Times a model as llama-bench does, under its names: pp512 takes in a prompt of 512 tokens,
tg128 decodes 128 (the token choice included), tg128 @ d4096 behind 4,096 tokens. Random tokens, one
sequence; each test runs once to warm up, then -r times: the median and the standard deviation.
Beside them stand the bytes of weights and cache that a token reads, and their share of what plain
reads of the memory get, measured in the same run. --synthetic needs no checkpoint."""

FLAGS = {  # what stands for the value, the least number, the default, help
    "-p": ("TOKENS", 1, (512,), "prompts' lengths, between commas (512)"),
    "-n": ("TOKENS", 1, (128,), "tokens to decode, between commas (128)"),
    "-d": ("TOKENS", 0, (0,), "depths: tokens in the cache before a test begins (0)"),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser, optional=True)
    for flag, (value, least, usual, doc) in FLAGS.items():
        parser.add_argument(flag, metavar=value, type=numbers(least), default=usual, help=doc)
    parser.add_argument(
        "-r", metavar="COUNT", type=whole(1, 1000), default=5, help="runs of each test (5)"
    )
    parser.add_argument(
        "-o", dest="form", choices=("md", "json"), default="md", help="a table, or one document"
    )
    add_target(parser)
    add_options(parser)
    parser.set_defaults(max_rows=512)


def numbers(least: int) -> Callable[[str], tuple[int, ...]]:
    """A type for `add_argument`: whole numbers between commas."""
    read = whole(least)

    def listed(text: str) -> tuple[int, ...]:
        return tuple(read(part.strip()) for part in text.split(","))

    return listed


def run(args: argparse.Namespace) -> int:
    import json

    from compiler.command import bench_table, show

    with show.progress("compiling"):
        made = compiled(args)
    with show.progress("building and running"):
        found = measured(args, made)
    if args.form == "json":
        print(json.dumps(found, indent=1))
    else:
        print(bench_table.markdown(found))
    return 0


def compiled(args: argparse.Namespace) -> Compiled:
    """The model. UserError where it cannot run what is asked for."""
    from compiler.api import benching
    from compiler.command import job

    made = job.compiled_of(args)
    benching.check(made, benching.tests_of(args.p, args.n, args.d))
    return made


def measured(args: argparse.Namespace, made: Compiled) -> dict[str, Any]:
    """The document of a run."""
    from compiler.api import benching

    tests = benching.tests_of(args.p, args.n, args.d)
    return {**benching.measure(made, tests, args.r, args.arch), "command": command(args)}


def command(args: argparse.Namespace) -> str:
    """The command line again, files by their names."""
    words = ["monocu", "bench"]
    words += [args.model.rsplit("/", 1)[-1]] if args.model else []
    for flag, value in (("--weights", args.weights), ("--synthetic", args.synthetic)):
        words += [flag, value.rsplit("/", 1)[-1]] if value else []
    for flag in FLAGS:
        words += [flag, ",".join(map(str, getattr(args, flag[1:])))]
    words += ["-r", str(args.r), "--target", args.target, "--numerics", args.numerics]
    words += ["--kv", args.kv] if args.kv else []
    words += ["--max-rows", str(args.max_rows)]
    words += ["--max-seqs", str(args.max_seqs)] if args.max_seqs != Options().max_seqs else []
    words += ["--arch", ",".join(args.arch)] if args.arch else []
    words += ["--hold", ",".join(args.hold)] if args.hold else []
    return shlex.join(words)
