"""Kernel providers, found by name: `<op>.py`, `<function kind>.py`, else row.py for what works
within rows."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable

from codegen.kernel import Context, Launch, Refusal
from compiler import ops
from compiler.graph import LEAVES, Node

Provider = Callable[[Node, Context], Launch]


def provider(node: Node) -> Provider:
    """The function that plans a node's launch; Refusal where no kernel computes it."""
    name = node.function.kind.replace("-", "_") if node.op == "call" else node.op
    if importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}").plan
    body = node.function.body if node.op == "call" else (node,)
    if all(works_in_rows(member) for member in body):
        return importlib.import_module(f"{__name__}.row").plan
    missing = sorted({m.op for m in body if m.op not in LEAVES and not works_in_rows(m)})
    raise Refusal(f"no kernel computes {' with '.join(missing)}")


def works_in_rows(node: Node) -> bool:
    """Whether row.py can spell this op: elementwise, or within the last axis."""
    if node.op in LEAVES:
        return True
    if node.op == "call":
        return False
    return bool(ops.get(node.op).traits & {"elementwise", "row"})
