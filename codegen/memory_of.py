"""Whose memory a value is: views look through to what they show, cache versions to their cache."""

from __future__ import annotations

from compiler import ops
from compiler.graph import LEAVES, Node, Value


def cache_leaf(value: Value) -> Value:
    """The cache that a version belongs to; through fused calls too."""
    while value.node.op != "cache":
        node = value.node
        if node.op == "call":
            inner = node.function.results[value.index]
            while inner.node.op != "param":
                inner = inner.node.operands[0]
            index = inner.node.attr("index")
            assert isinstance(index, int)
            value = node.operands[index]
        else:
            value = node.operands[0]
    return value


def is_view(node: Node) -> bool:
    return node.op != "call" and node.op not in LEAVES and "view" in ops.get(node.op).traits


def root(value: Value) -> Value:
    """The value whose memory this one is: views look through to it."""
    while is_view(value.node):
        value = value.node.operands[0]
    return value
