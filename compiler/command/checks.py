"""What is held of a verb's arguments before it begins: what it would write, a GPU to run on."""

from __future__ import annotations

import argparse
import os

from compiler.diagnostics import TOOLCHAIN, UserError

READ = ("model", "weights", "cu")  # arguments that name files to read,
WRITTEN = {"out": "-o", "trace": "--trace", "logits_file": "--logits-file"}  # and to write
RUNNING = ("run", "score", "diff", "bench", "profile")  # verbs that run what they build


def check(verb: str, args: argparse.Namespace) -> None:
    """UserError where a file would be written over one that is read, or no GPU is there."""
    inputs = [path for name in READ if (path := getattr(args, name, None))]
    for name, flag in WRITTEN.items():
        path = getattr(args, name, None)
        if path and any(_is_same(path, read) for read in inputs):
            raise UserError(f"{flag} {path}: another file is needed, this one is read")
    if verb in RUNNING and getattr(args, "target", None) == "cuda":
        _check_gpu()
    if getattr(args, "sanitize", False) and args.target == "cuda":
        raise UserError("--sanitize: the host target is needed, cuda was given")


def _is_same(one: str, other: str) -> bool:
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


def _check_gpu() -> None:
    from runtime.gpu import gpus

    if not gpus():
        needed = "a GPU and its driver are needed, there is none; --target host runs without"
        raise UserError(f"--target cuda: {needed}", TOOLCHAIN)
