"""GGUF checkpoints: `open_checkpoint` gives the checked metadata, the tensor table, and weights as
views of the mapped file; nothing is copied.

NOTE: a file that somebody shortens while it is mapped kills the process (SIGBUS), like any mapping.
"""

from __future__ import annotations

import mmap
import os
import stat
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compiler.diagnostics import CHECKPOINT, UserError
from compiler.formats import BY_GGML, FORMATS, Format
from compiler.values import Weight
from runtime.ggml import TENSOR_TYPES
from runtime.gguf_header import ALIGNMENT, Entry, Header, MetaValue


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A tensor type that monocu does not compute with; only reading such a tensor is refused."""

    name: str


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor: shape outermost first, (out, in) for a matrix; offset from the file's start."""

    name: str
    format: Format | Unsupported
    shape: tuple[int, ...]
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An opened, checked GGUF file; `meta` and `tensors` keep the file's order."""

    path: Path
    meta: dict[str, MetaValue]
    tensors: dict[str, TensorInfo]
    data: mmap.mmap | bytes

    @property
    def architecture(self) -> str:
        """The key general.architecture. Raises UserError where the file has none."""
        value = self.meta.get("general.architecture")
        if not isinstance(value, str):
            raise UserError(f"{self.path}: the key general.architecture is needed", CHECKPOINT)
        return value

    @property
    def flags(self) -> list[str]:
        """How a binary is told of it."""
        return ["--weights", str(self.path)]

    def weight(self, name: str) -> Weight:
        """A tensor's bytes as a read-only view. Raises UserError on an absent name or a type that
        monocu does not compute with."""
        info = self.tensors.get(name)
        if info is None:
            raise UserError(f"{self.path}: tensor {name} is needed, the file lacks it", CHECKPOINT)
        if isinstance(info.format, Unsupported):
            needs = f"{self.path}: tensor {name}: one of {', '.join(FORMATS)} is needed"
            raise UserError(f"{needs}, {info.format.name.lower()} was given", CHECKPOINT)
        raw = np.frombuffer(self.data, np.uint8, info.nbytes, info.offset)
        return Weight(info.format, info.shape, raw)


def open_checkpoint(path: str | Path) -> Checkpoint:
    """Map and check a GGUF file (version 2 or 3, little-endian).

    Raises UserError (exit code 3): `path: what is needed, what was given, at byte offset`.
    """
    path = Path(path)
    data = _map(path)
    header = Header(path, data)
    tensor_count, key_count = header.start()
    meta = header.metadata(key_count)
    alignment = meta.get("general.alignment", ALIGNMENT)
    assert isinstance(alignment, int)
    entries = header.tensors(tensor_count, alignment)
    return Checkpoint(path, meta, {name: _info(e) for name, e in entries.items()}, data)


def _info(entry: Entry) -> TensorInfo:
    fmt = BY_GGML.get(entry.type) or Unsupported(TENSOR_TYPES[entry.type].name)
    return TensorInfo(entry.name, fmt, entry.shape, entry.offset, entry.nbytes)


def _map(path: Path) -> mmap.mmap | bytes:
    try:  # without O_NONBLOCK opening a FIFO would wait for its writer
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise UserError(f"{path}: cannot be opened: {error.strerror}", CHECKPOINT) from None
    except ValueError as error:  # a NUL in the name
        raise UserError(f"{str(path)!r}: cannot be opened: {error}", CHECKPOINT) from None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise UserError(f"{path}: a regular file is needed", CHECKPOINT)
        return mmap.mmap(fd, 0, access=mmap.ACCESS_READ) if status.st_size else b""
    finally:
        os.close(fd)
