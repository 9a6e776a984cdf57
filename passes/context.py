"""What passes and guards may look at besides the graph; they read it and never change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from compiler.graph import Graph
from compiler.target import Options, Target


@dataclass(frozen=True)
class Sweep:
    """One sweep of a table of rules: the graph before it, and by rule what that one alone makes."""

    before: Graph
    alone: Mapping[str, Callable[[], Graph]]


@dataclass(frozen=True)
class Context:
    """A compilation's options and the machine that it plans for.

    on_rule is told a rule's name each time that one fires, on_sweep of each sweep before it is
    made.
    """

    options: Options
    target: Target
    on_rule: Callable[[str], None] = lambda name: None
    on_sweep: Callable[[Sweep], None] = lambda sweep: None
