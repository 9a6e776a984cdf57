"""Builds for tests under AddressSanitizer and UBSan; programs whose buffers lie between guards."""

from __future__ import annotations

from pathlib import Path

from runtime import toolchain

# g++ takes half the time of -O1; null pointers and small objects are ASan's too.
QUICK = ("-O0", "-fno-sanitize=null,object-size")


def sanitized(text: str) -> Path:
    """The binary of a `.cu` that `Options.guard` was set for."""
    return toolchain.build(text, sanitize=True, extra=QUICK)
