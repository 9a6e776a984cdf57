"""monocu fmt: .model files in the one layout."""

from __future__ import annotations

import argparse
from pathlib import Path

DOC = "Formats .model files in place; `-` formats standard input to standard output."


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help=".model files, or -")
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit code 1 where a file would change"
    )


def run(args: argparse.Namespace) -> int:
    import sys

    from compiler.command import job, show
    from compiler.diagnostics import DIFFERENCES, UserError, cause
    from frontend.formatter import format_text

    changed: list[str] = []
    for name in args.files:
        try:
            text = sys.stdin.read() if name == "-" else Path(name).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{name}: a .model file is needed: {cause(error)}") from None
        formatted = format_text(text, name)
        if text != formatted:
            changed.append(name)
        if not args.check and (name == "-" or text != formatted):
            job.write_whole(name, formatted.encode())
    for name in changed:
        show.remark(f"{name}: {'would change' if args.check else 'formatted'}")
    return DIFFERENCES if args.check and changed else 0
