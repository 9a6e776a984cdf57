"""What a program asks of a checkpoint: metadata, shapes, weights; and what it leaves unread."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from compiler.diagnostics import CHECKPOINT
from compiler.formats import FORMATS
from compiler.graph import Value, leaf
from compiler.program import Metadata, MetaValue
from frontend.things import Fault, Static, nearest


def meta(metadata: Metadata, key: str) -> Static | None:
    """A key's value; None where the checkpoint lacks it."""
    value = metadata.meta.get(key)
    return None if value is None else _static(value)


def _static(value: MetaValue) -> Static:
    if isinstance(value, list):
        return tuple(_static(v) for v in value)
    return int(value) if isinstance(value, bool) else value


def lacking_key(metadata: Metadata, key: str) -> Fault:
    kind = metadata.meta.get("general.architecture")
    notes = [(None, f'the checkpoint\'s general.architecture is "{kind}"')] if kind else []
    hint = nearest(key, list(metadata.meta))
    return Fault(f'the checkpoint lacks the key "{key}"{hint}', None, notes, CHECKPOINT)


def axis(metadata: Metadata, name: str, index: int) -> int:
    """The size of one axis of a tensor, `shape("token_embd.weight", 0)`."""
    given = metadata.tensors.get(name)
    if given is None:
        raise lacking_tensor(metadata, name)
    if isinstance(given, str):
        raise unsupported(name, given)
    if not -given.rank <= index < given.rank:
        raise Fault(f"{name} is {given}, axis {index} was asked for")
    size = given.shape[index]
    assert isinstance(size, int)
    return size


def weight(metadata: Metadata, name: str, shape: Sequence[int | str]) -> Value | None:
    """A tensor of a declared shape as a leaf; None where the checkpoint lacks it. Raises Fault."""
    given = metadata.tensors.get(name)
    if given is None:
        return None
    if isinstance(given, str):
        raise unsupported(name, given)
    if given.shape != tuple(shape):
        declared = f"[{', '.join(map(str, shape))}]"
        raise Fault(f"{name} is declared {declared}, the checkpoint has {given}", code=CHECKPOINT)
    return leaf("weight", name, given)


def unsupported(name: str, given: str) -> Fault:
    needs = f"a supported tensor type ({', '.join(FORMATS)})"
    return Fault(f"{name} needs {needs}, the checkpoint has {given}", code=CHECKPOINT)


def lacking_tensor(metadata: Metadata, name: str) -> Fault:
    hint = nearest(name, list(metadata.tensors))
    return Fault(f"the checkpoint lacks the tensor {name}{hint}", code=CHECKPOINT)


def ignored(name: str, patterns: Iterable[str]) -> bool:
    """Whether an `ignore` covers a tensor; `{}` stands for a number."""
    return any(re.fullmatch(re.escape(p).replace(r"\{\}", r"\d+"), name) for p in patterns)


def unread(metadata: Metadata, read: set[str], patterns: Sequence[str]) -> list[tuple[str, str]]:
    """(name, message) for the tensors that a program never reads, one a family of layers."""
    families: dict[str, list[str]] = {}
    for name in metadata.tensors:
        if name not in read and not ignored(name, patterns):
            families.setdefault(re.sub(r"\.\d+\.", ".{}.", name), []).append(name)
    return [(names[0], _unread(metadata, key, names)) for key, names in families.items()]


def _unread(metadata: Metadata, family: str, names: list[str]) -> str:
    shown = f"{names[0]} ({metadata.tensors[names[0]]})"
    more = f" and {len(names) - 1} more like it" if len(names) > 1 else ""
    key = family if len(names) > 1 else names[0]
    lost = f"the program never reads the checkpoint's {shown}{more}"
    return f'{lost}; to leave that out: ignore "{key}"'
