"""What passes and guards may look at besides the graph; they read it and never change it."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.target import Options, Target


@dataclass(frozen=True)
class Context:
    """A compilation's options and the machine that it plans for."""

    options: Options
    target: Target
