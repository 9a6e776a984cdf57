"""Files of expected text: comparing them and, when people ask for it, renewing them."""

from __future__ import annotations

from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path

Golden = Callable[[Path, str], None]


def difference(path: Path, text: str) -> str:
    """What `text` would change in the file, as a diff; "" where it holds just that."""
    have = path.read_text() if path.exists() else ""
    lines = unified_diff(
        have.splitlines(), text.splitlines(), f"{path.name} as it is", "as computed", lineterm=""
    )
    return "\n".join(lines) if have != text else ""


def hold(path: Path, text: str, renewed: Callable[[str], None] | None = None) -> None:
    """Fail with the diff unless the file holds `text`; with `renewed` write it and hand that on."""
    diff = difference(path, text)
    if not diff:
        return
    if renewed is None:
        raise AssertionError(f"{diff}\n(renew it with --bless -k {path.stem} if that is right)")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    renewed(diff)
