"""monocu run: compiles, builds (both cached) and runs; the binary's flags are passed through."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from compiler.command.parser import (
    add_inputs,
    add_model,
    add_options,
    add_prompts,
    add_target,
    whole,
)

if TYPE_CHECKING:
    from runtime.gguf import Checkpoint

DOC = """Runs a model on prompts, or an op program on its inputs. Tokens (or text) and results go to
standard output, everything else to standard error."""

VALUES = {  # flags of the binary with a value: what stands for it, help
    "--context": ("TOKENS", "room of a sequence (what its prompt and -n need)"),
    "--stop": ("IDS", "tokens that end a sequence (with --prompt: the checkpoint's end token)"),
    "--logits": ("all|last", "rows whose logits are computed (last)"),
    "--logits-file": ("FILE", "writes those logits, .npy"),
    "--chunk": ("ROWS", "rows of a prompt that one step takes, at most"),
    "--dump": ("NAMES", "values to write: all, or names with * between commas"),
    "--dump-dir": ("FOLDER", "where --dump writes NAME.npy"),
    "--out": ("FOLDER", "op programs: writes each result as NAME.npy"),
    "--device": ("NUMBER", "the GPU (0)"),
    "--host-seed": ("SEED", "another order of threads (host target only)"),
}
SWITCHES = {
    "--text": "prints text in place of ids (with --prompt that is the default)",
    "--json": "a report as the last line of standard error",
    "--info": "says what the program is and needs, and runs nothing",
    "--no-graph": "launches each kernel of a step by itself",
}
PLANNED = ("--temperature", "--seed", "--top-k", "--top-p", "--min-p", "--profile")


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser, optional=True)
    parser.add_argument("--cu", metavar="FILE", help="run this .cu, edited by hand")
    add_prompts(parser)
    add_inputs(parser)
    group = parser.add_argument_group("flags of the binary")
    group.add_argument("-n", type=whole(0), metavar="COUNT", help="tokens to generate (64)")
    for flag, (value, doc) in VALUES.items():
        group.add_argument(flag, metavar=value, help=doc)
    for flag, doc in SWITCHES.items():
        group.add_argument(flag, action="store_true", help=doc)
    for flag in PLANNED:
        group.add_argument(flag, nargs="?", const="", help=argparse.SUPPRESS)
    add_target(parser)
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    from compiler.command.build import built
    from runtime import binary

    refuse_planned(args)
    check(args)
    flags = passed(args)
    with tempfile.TemporaryDirectory(prefix="monocu.") as folder:
        flags += feeding(args, Path(folder))
        program, _ = built(args, dump=args.dump is not None)
        return binary.stream(program, flags)


def refuse_planned(args: argparse.Namespace) -> None:
    from compiler.diagnostics import UserError

    for flag in PLANNED:
        if value_of(args, flag) is not None:
            raise UserError(f"{flag}: planned, not there yet")


def check(args: argparse.Namespace) -> None:
    """What the binary would refuse only after a long build."""
    from compiler.diagnostics import UserError

    if (args.dump is None) != (args.dump_dir is None):
        raise UserError("--dump and --dump-dir are needed together, one was given")
    if args.logits not in (None, "all", "last"):
        raise UserError(f"--logits: all or last is needed, {args.logits!r} was given")
    for flag in ("--context", "--chunk", "--device", "--host-seed"):
        if (given := value_of(args, flag)) is not None:
            try:
                whole(0, 2**32 - 1)(given)
            except argparse.ArgumentTypeError as error:
                raise UserError(f"{flag}: {error}") from None


def value_of(args: argparse.Namespace, flag: str) -> str | None:
    return getattr(args, flag.removeprefix("--").replace("-", "_"))


def passed(args: argparse.Namespace) -> list[str]:
    """The binary's flags that were given."""
    flags = ["-n", str(args.n)] if args.n is not None else []
    for flag in VALUES:
        if (given := value_of(args, flag)) is not None:
            flags += [flag, given]
    flags += [flag for flag in SWITCHES if value_of(args, flag)]
    for word in args.input:
        flags += ["--input", word]
    return flags


def feeding(args: argparse.Namespace, folder: Path) -> list[str]:
    """The flags that tell the binary its checkpoint and its prompts; nothing for op programs."""
    from compiler.command import job
    from compiler.diagnostics import UserError

    _, weights = job.sources_of(args)
    given = [n for n in ("prompt", "tokens", "seqs") if getattr(args, n) is not None]
    if weights is None or args.info:
        if given and not args.info:
            raise UserError(f"--{given[0]} needs a model's checkpoint (--weights FILE)")
        return []
    if len(given) != 1:
        said = f"{' and '.join(f'--{n}' for n in given)} were" if given else "none was"
        raise UserError(f"one of --prompt, --tokens and --seqs is needed, {said} given")
    if args.input:
        raise UserError("a model takes prompts, not --input")
    flags = job.flags_of(weights)
    if args.prompt is not None:
        return flags + prompted(args, weights)
    if args.tokens is not None:
        return [*flags, "--tokens", ",".join(map(str, args.tokens))]
    return [*flags, "--seqs", args.seqs]


def prompted(args: argparse.Namespace, weights: str | Checkpoint) -> list[str]:
    """A text as token ids; its answer is text that ends where the checkpoint's end token comes."""
    from compiler.command import job
    from runtime.gguf import open_checkpoint
    from runtime.tokenizer import open_tokenizer

    checkpoint = open_checkpoint(weights) if isinstance(weights, str) else weights
    ids = job.ids_of(open_tokenizer(checkpoint), args.prompt)
    flags = ["--tokens", ",".join(map(str, ids))]
    end = checkpoint.meta.get("tokenizer.ggml.eos_token_id")
    if args.stop is None and isinstance(end, int):
        flags += ["--stop", str(end)]
    return flags if args.text else [*flags, "--text"]
