"""What passes and guards may look at besides the graph; they read it and never change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compiler.target import Options, Target


@dataclass(frozen=True)
class Context:
    """A compilation's options and the machine that it plans for.

    on_rule is told a rule's name each time that one fires.
    """

    options: Options
    target: Target
    on_rule: Callable[[str], None] = lambda name: None
