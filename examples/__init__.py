"""The examples, `.model` files found by name."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from compiler.diagnostics import UserError

FOLDER = Path(__file__).parent


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.model"))


def find(name: str) -> Path:
    """The path of an example, with or without `.model`; UserError with the nearest names."""
    stem = name.removesuffix(".model")
    if stem not in names():
        near = get_close_matches(stem, names(), 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UserError(f"there is no example {name}{hint}")
    return FOLDER / f"{stem}.model"
