"""monocu score: how likely a model finds a text, token by token, and its perplexity."""

from __future__ import annotations

import argparse
import math
from typing import Any

from compiler.command.parser import MODEL_HELP, add_options, add_target, token_ids

DOC = f"""Log-probabilities (natural logarithms) of a text's tokens, and its perplexity: by the
binary's logits of every row, or by the reference VM.
MODEL: {MODEL_HELP};
it may be left out where --weights says it."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "monocu score [MODEL] TEXT [options]"
    parser.add_argument("words", nargs="*", metavar="[MODEL] TEXT", help="the text to score")
    parser.add_argument("--weights", metavar="FILE", help="the checkpoint, GGUF")
    parser.add_argument("--file", metavar="FILE", help="a file's text in place of TEXT")
    parser.add_argument("--tokens", type=token_ids, metavar="IDS", help="ids in place of TEXT")
    parser.add_argument("--vm", action="store_true", help="by the reference VM: no compiler")
    parser.add_argument("--total", action="store_true", help="only the last line")
    add_target(parser)
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    from compiler.api.values import checked_prompts
    from compiler.command import job, show
    from compiler.diagnostics import UserError

    text = take_text(args)
    model = job.model_of(args)
    ids = args.tokens if text is None else job.ids_of(job.tokenizer_of(model), text)
    (ids,) = checked_prompts(model, [ids])
    if len(ids) < 2:
        raise UserError(f"at least 2 tokens are needed to score, {len(ids)} was given")
    with show.progress("computing logits"):
        logits = by_vm(args, model, ids) if args.vm else by_binary(args, model, ids)
    scores = log_probabilities(logits[:-1], ids[1:])
    words = None if text is None else job.tokenizer_of(model)
    rows = [
        (at, token, f"{score:.6f}", repr(words.decode([token])) if words else "")
        for at, (token, score) in enumerate(zip(ids[1:], scores, strict=True), 1)
    ]
    if not args.total:
        print(show.table([("at", "token", "logprob", "text"), *rows], right=(0, 1, 2)))
    mean = sum(scores) / len(scores)
    print(f"perplexity {math.exp(-mean):.6f} over {len(scores)} tokens, mean logprob {mean:.6f}")
    return 0


def take_text(args: argparse.Namespace) -> str | None:
    """The text; args.model becomes MODEL."""
    from pathlib import Path

    from compiler.diagnostics import UserError, cause

    elsewhere = (args.file is not None) + (args.tokens is not None)
    words = list(args.words)
    if elsewhere > 1 or len(words) > 2 - elsewhere:
        raise UserError("one of TEXT, --file and --tokens is needed, more were given")
    lone_model = len(words) == 1 and args.weights is None
    if not elsewhere and (not words or lone_model):
        raise UserError("a TEXT, --file or --tokens is needed, none was given")
    text = None if elsewhere else words.pop()
    args.model = words[0] if words else None
    if args.file is None:
        return text
    try:
        return Path(args.file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--file: {args.file} cannot be read: {cause(error)}") from None


def by_vm(args: argparse.Namespace, model: Any, ids: list[int]) -> Any:
    from compiler.api.reference import bits, session
    from compiler.command.parser import options_of
    from runtime.traced import all_logits

    return all_logits(session(model, bits(model, options_of(args))), ids)


def by_binary(args: argparse.Namespace, model: Any, ids: list[int]) -> Any:
    from compiler.api.building import compile as compile_model
    from compiler.api.running import run as run_model

    compiled = compile_model(
        model, numerics=args.numerics, kv=args.kv, max_rows=args.max_rows,
        max_seqs=args.max_seqs, hold=args.hold, target=args.target,
    )  # fmt: skip
    made: Any = run_model(compiled, prompts=[ids], n=0, logits=True, archs=args.arch)
    return made.logits[0]


def log_probabilities(logits: Any, tokens: list[int]) -> list[float]:
    """ln p of each token after its row of logits f32[rows, V], in float64."""
    import numpy as np

    wide = logits.astype(np.float64)
    wide -= wide.max(axis=1, keepdims=True)
    picked = wide[np.arange(len(tokens)), tokens]
    return (picked - np.log(np.exp(wide).sum(axis=1))).tolist()
