"""The IR over an emitted kernel: a node's statement, or the body of the fused function that it calls."""

from __future__ import annotations

from collections.abc import Mapping

from compiler.graph import Node, Value


def ir_lines(node: Node, names: Mapping[Value, str]) -> list[str]:
    return [f"{names.get(node.result(), '?')}: {node.types[0]} = {node.op}"]
