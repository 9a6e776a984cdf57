"""Every environment variable that monocu reads, in one table that `monocu doctor` prints.

"0" and "" mean off.
"""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Knob:
    """One environment variable: its name, its default and what it does."""

    name: str
    default: str
    doc: str

    @property
    def value(self) -> str:
        """The text of the variable; the default where it is unset or empty."""
        return os.environ.get(self.name) or self.default

    @property
    def on(self) -> bool:
        return self.value not in ("", "0")


CXX = Knob("MONOCU_CXX", "g++", "the C++ compiler of the host target")
NVCC = Knob(
    "MONOCU_NVCC", "", "nvcc; empty: from PATH, then from the PyPI packages of the extra `cuda`"
)
CACHE = Knob("XDG_CACHE_HOME", "~/.cache", "where builds and fetched models are kept (monocu/)")
VERIFY = Knob("MONOCU_VERIFY", "0", "verify the graph after every pass, not only at the end")
NO_COLOR = Knob("NO_COLOR", "", "plain text on the terminal")

KNOBS = (CXX, NVCC, CACHE, VERIFY, NO_COLOR)
