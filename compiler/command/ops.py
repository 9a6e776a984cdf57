"""monocu ops: the table of ops that the language knows."""

from __future__ import annotations

import argparse
import textwrap

DOC = "The ops of the language: name, parameters (name:kind=default; ? may be left out), meaning."

ROUNDING = ", with u = 2^-24 and gamma(n) = n u / (1 - n u):"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "op",
        metavar="NAME",
        nargs="?",
        help="one op, with its error bound, truth table and samples",
    )
    parser.add_argument("--all", action="store_true", help="those that only passes make, too")


def run(args: argparse.Namespace) -> int:
    from compiler import ops
    from compiler.command import show
    from compiler.diagnostics import UserError

    if args.op is not None:
        try:
            return one(ops.get(args.op))
        except ops.OpError as error:
            raise UserError(str(error)) from None
    known = [op for _, op in sorted(ops.load().items())]
    shown = [op for op in known if args.all or "internal" not in op.traits]
    print(show.table((op.name, f"({op.signature})", op.doc) for op in shown))
    return 0


def one(op: object) -> int:
    from compiler.ops import Op

    assert isinstance(op, Op)
    print(f"{op.name}({op.signature})\n  {op.doc}")
    if op.traits:
        print(f"  traits: {', '.join(sorted(op.traits))}")
    if op.error:
        print("\n  off its meaning in real numbers at most" + ROUNDING)
        print(textwrap.fill(op.error.text, 98, initial_indent="  ", subsequent_indent="  "))
    if op.truths:
        print("\n".join(("", "  of special values:", *(f"  {line}" for line in op.truths))))
    for sample in op.samples:
        print("\n" + "\n".join(f"  {line}" for line in sample.splitlines()))
    return 0
