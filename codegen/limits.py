"""Limits of a launch that hold for every kernel: blocks, threads and shared memory of the target.

A provider checks what it knows of its op; here a launch's own expressions are worked out at the
greatest counts, so that no launch that a GPU refuses gets into a `.cu`.
"""

from __future__ import annotations

import re

from codegen.forms import MANY_PAGES, row_forms
from codegen.kernel import Context, Launch, Refusal
from compiler.graph import Node

BLOCKS_X, BLOCKS_Y = 2**31 - 1, 65535


def check(node: Node, launch: Launch, context: Context) -> None:
    """Refusal, naming op and limit, where some form of a node's launch needs more than there is."""
    grid, target = launch.grid, context.target
    name = node.function.kind if node.op == "call" else node.op
    for what, text, most in (
        ("blocks", grid.x, BLOCKS_X),
        ("blocks side by side", grid.y, BLOCKS_Y),
        ("blocks one behind another", grid.z, BLOCKS_Y),
        ("threads a block", launch.threads, target.max_threads),
        ("bytes of shared memory", launch.shared, target.shared_bytes),
    ):
        need = greatest(text, context, launch.many)
        if need is not None and need > most:
            raise Refusal(f"{name} takes at most {most} {what}, got {need}")


def greatest(text: str, context: Context, many: bool = False) -> int | None:
    """An expression's greatest value over all forms and counts; None where only the compiler knows.

    The expressions are Python as well as C++; they are ours, no name of a file is in them. many:
    whether the launch has forms of many rows.
    """
    if not re.fullmatch(r"(?:\d+|rows|wanted|pages|ROWS|FEW|WANTED|ceil_div|[ ()+*,=<>-])*", text):
        return None
    limits = context.options
    most = {"rows": limits.max_rows, "wanted": min(limits.max_rows, limits.max_seqs)}
    return max(_value(text, *form, most) for form in row_forms(many, limits.max_rows))


def _value(text: str, rows: int, group: int, most: dict[str, int]) -> int:
    """Its value in the form of a row group that serves so many rows."""
    counts = {name: min(count, rows) for name, count in most.items()}
    groups = {"ROWS": group, "FEW": min(group, 8), "WANTED": min(group, 8)}
    names = {**counts, **groups, "pages": MANY_PAGES, "ceil_div": ceil_div}
    return int(eval(text, {"__builtins__": {}}, names))


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)
