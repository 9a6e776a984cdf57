"""What a program has read of its checkpoint's metadata, as text that the driver compares.

lib/driver/metadata.h spells a file's values the same way. A number is spelled by its value alone,
whatever type it is stored as; an array of many elements by their count.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

from compiler.program import MetaValue

MOST = 256  # elements of an array that are spelled


def spelled(value: MetaValue) -> str:
    """A value as the driver spells it: 32, 9.99999975e-06, 'text', [1, 2, 3], [49152 elements]."""
    if isinstance(value, list):
        if len(value) > MOST:
            return f"[{len(value)} elements]"
        return f"[{', '.join(map(spelled, value))}]"
    if isinstance(value, str):
        plain = (chr(b) if _is_plain(b) else f"\\x{b:02x}" for b in value.encode())
        return f"'{''.join(plain)}'"
    return real(value) if isinstance(value, float) else str(int(value))


def _is_plain(byte: int) -> bool:
    return 32 <= byte < 127 and chr(byte) not in "'\\"


def real(value: float) -> str:
    """By 9 digits where that says which f32 it is, else by the 17 that say which f64."""
    if math.isnan(value):
        return "nan"
    try:
        narrow = struct.unpack("<f", struct.pack("<f", value))[0] == value
    except OverflowError:
        narrow = False
    return f"{value:.9g}" if narrow else f"{value:.17g}"


def rows(read: Mapping[str, MetaValue | None]) -> list[tuple[str, str]]:
    """(key, its value) of all that was read; "" of keys that are absent and have defaults."""
    return [(key, "" if value is None else spelled(value)) for key, value in read.items()]
