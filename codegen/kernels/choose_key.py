"""`choose_key`: the index that a row's greatest key has."""

from __future__ import annotations

from codegen.kernel import Context, Launch
from codegen.kernels import choose
from compiler.graph import Node


def plan(node: Node, context: Context) -> Launch:
    return choose.search(node, context, "index_of_key(best.value)")
