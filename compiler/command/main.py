"""The command `monocu`: finds the verb, runs it, and turns what goes wrong into words and a code.

A verb is a module of this folder with `DOC`, `arguments(parser)` and `run(args) -> exit code`; only
the one that is asked for is imported, so that help needs no NumPy, compiler or GPU.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from types import ModuleType

from compiler.command.checks import check
from compiler.command.parser import Parser
from compiler.diagnostics import (
    EXIT_CODES,
    INTERNAL,
    INTERRUPTED,
    OK,
    TOOLCHAIN,
    ProgramError,
    UserError,
)

VERBS = {
    "compile": "a .model becomes one .cu",
    "build": "a .model becomes a binary",
    "run": "compile, build and run: a model's tokens, an op program's results",
    "vm": "run a program on the reference VM: no compiler, no GPU",
    "bench": "llama-bench's tests, and their share of the memory's speed",
    "score": "log-probabilities and perplexity of a text",
    "diff": "hold every value of the compiled program against the VM's",
    "fuzz": "random programs, whose bits must be equal everywhere",
    "profile": "the time of each kernel and each line of a model's step",
    "explain": "the graph before and after each pass, the kernels, the memory",
    "ops": "the table of ops",
    "fmt": "format .model files",
    "fetch": "get a small checkpoint",
    "doctor": "what is installed here, and every environment variable",
    "demo": "fetch, compile, build, generate and diff, in one go",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit code (compiler.diagnostics.EXIT_CODES)."""
    words = list(sys.argv[1:] if argv is None else argv)
    for name in ("stdout", "stderr"):  # a closed one takes nothing, and says nothing of it
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (to the end)
    try:
        code = dispatch(words)
        sys.stdout.flush()
        return code
    except UserError as error:
        return complain(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader has had enough; nothing is left to say
        drop_output()
        return OK
    except MemoryError as error:
        return complain(UserError(f"memory: {error or 'there is too little'}", TOOLCHAIN))
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            drop_output()
            place = error.filename or "standard output or a temporary file"
            return complain(UserError(f"{place}: {error.strerror}", TOOLCHAIN))
        return crash(error, words)


def drop_output() -> None:
    """Standard output cannot be written: what is left in its buffer goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def dispatch(words: list[str]) -> int:
    """The exit code of the verb that the words name."""
    if not words:
        raise UserError(f"a verb is needed: {', '.join(VERBS)}; see monocu --help")
    if words[0] in ("-h", "--help", "help"):
        print(overview())
        return OK
    if words[0] == "--version":
        print(f"monocu {version()}")
        return OK
    verb = load(words[0])
    parser = Parser(f"monocu {words[0]}", verb.DOC)
    verb.arguments(parser)
    args = parser.parse(words[1:])
    check(words[0], args)
    return verb.run(args)


def load(name: str) -> ModuleType:
    """The module of a verb."""
    if name not in VERBS:
        near = get_close_matches(name, VERBS, 2)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UserError(f"a verb is needed: {', '.join(VERBS)}; {name} was given{hint}")
    return importlib.import_module(f"compiler.command.{name}")


def overview() -> str:
    """What `monocu --help` prints."""
    verbs = "\n".join(f"  {name:<9}{doc}" for name, doc in VERBS.items())
    codes = ", ".join(f"{code} {doc}" for code, doc in EXIT_CODES.items())
    return (
        "usage: monocu VERB ...\n\n"
        "Compiles a tensor-op program, a .model file, with a checkpoint into one readable CUDA\n"
        "file that runs the whole forward pass, and holds its bits against a reference VM.\n\n"
        f"{verbs}\n\n"
        "monocu VERB --help says more. Start with: monocu vm norm_matmul_softmax\n"
        f"Exit codes: {codes}."
    )


def version() -> str:
    from importlib import metadata

    try:
        return metadata.version("monocu")
    except metadata.PackageNotFoundError:
        return "not installed"


def complain(error: UserError) -> int:
    """Says what the user has to know; a program's errors bring their own places."""
    text = str(error)
    print(text if isinstance(error, ProgramError) else f"error: {text}", file=sys.stderr)
    return error.code


def crash(error: Exception, words: Sequence[str]) -> int:
    """An error that is ours."""
    if "--traceback" in words:
        traceback.print_exception(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(last.filename)}:{last.lineno}"
    said = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    print(
        f"internal error: {said} (at {place})\n"
        "This is a bug of monocu. Please report it with the command line, what `monocu doctor`\n"
        "prints and, if you may, the .model; --traceback shows where it happened.",
        file=sys.stderr,
    )
    return INTERNAL
