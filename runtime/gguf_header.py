"""The walk over a GGUF file's header: every length, count and offset is checked against the file
before it is used, in Python's integers, and every fault is a UserError with exit code 3.

`codegen/lib/driver/gguf.h` is the same walk in C++: same rules, same order, same words.
"""

from __future__ import annotations

import mmap
import re
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import NoReturn

import numpy as np

from compiler.diagnostics import CHECKPOINT, UserError
from runtime.ggml import TENSOR_TYPES

Scalar = int | float | bool | str
MetaValue = Scalar | list[Scalar]

MAX_COUNT = 1 << 16  # of keys, of tensors
MAX_KEY = (1 << 16) - 1  # bytes
MAX_STRING = 1 << 24  # bytes
MAX_ELEMENTS = 1 << 23  # of all arrays together; the largest vocabularies known need 1.3 million
MAX_NAME = 127  # bytes
MAX_DIM = 1 << 31
MAX_SIZE = 1 << 48  # elements of a tensor
ALIGNMENT = 32  # where the file names none
ALIGNMENTS = tuple(1 << bit for bit in range(3, 13))

BOOL, STRING, ARRAY = 7, 8, 9
# Value types by number: name and code of `struct`.
VALUE_TYPES = (
    ("u8", "B"),
    ("i8", "b"),
    ("u16", "H"),
    ("i16", "h"),
    ("u32", "I"),
    ("i32", "i"),
    ("f32", "f"),
    ("bool", "B"),
    ("string", ""),
    ("array", ""),
    ("u64", "Q"),
    ("i64", "q"),
    ("f64", "d"),
)
REQUIRED_TYPES = {"general.alignment": 4, "general.architecture": STRING}

_NAME = re.compile(rb"[A-Za-z0-9_.\-/]+")
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor as the header lists it: ggml's type, shape outermost first, offset in the file."""

    name: str
    type: int
    shape: tuple[int, ...]
    offset: int
    nbytes: int


def shown(text: bytes) -> str:
    """Bytes of a file as an error shows them: quoted, ASCII only, at most 60 of them."""
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in text[:60])
    return '"' + "".join(plain) + '"' + ("..." if len(text) > 60 else "")


class Header:
    """A cursor over the file's header; every read is checked against the file's end first."""

    def __init__(self, path: Path, data: mmap.mmap | bytes) -> None:
        self.path, self.data, self.size, self.at = path, data, len(data), 0
        self.elements = 0

    def fail(self, message: str, at: int) -> NoReturn:
        raise UserError(f"{self.path}: {message}, at byte offset {at}", CHECKPOINT)

    def need(self, count: int, what: str) -> None:
        left = self.size - self.at
        if count > left:
            self.fail(f"{what}: {count} bytes are needed, {left} are left", self.at)

    def number(self, code: str, what: str) -> int | float:
        size = struct.calcsize("<" + code)
        self.need(size, what)
        self.at += size
        return struct.unpack_from("<" + code, self.data, self.at - size)[0]

    def integer(self, code: str, what: str) -> int:
        return int(self.number(code, what))

    def text(self, what: str, limit: int) -> bytes:
        """A length and as many bytes of UTF-8."""
        start, size = self.at, self.integer("Q", what)
        if size > limit:
            self.fail(f"{what}: at most {limit} bytes are needed, {size} were given", start)
        self.need(size, what)
        self.at += size
        raw = self.data[self.at - size : self.at]
        try:
            raw.decode()
        except UnicodeDecodeError:
            self.fail(f"{what}: UTF-8 is needed, {shown(raw)} was given", start)
        return raw

    def start(self) -> tuple[int, int]:
        """Magic, version, and how many tensors and keys follow."""
        if self.data[:4] != b"GGUF":
            self.fail(f'magic: "GGUF" is needed, {shown(self.data[:4])} was given', 0)
        self.at = 4
        version = self.integer("I", "version")
        if version in (2 << 24, 3 << 24):
            self.fail("version: a little-endian file is needed, a big-endian one was given", 4)
        if version not in (2, 3):
            self.fail(f"version: 2 or 3 is needed, {version} was given", 4)
        return self.count("tensor count"), self.count("key count")

    def count(self, what: str) -> int:
        start, count = self.at, self.integer("Q", what)
        if count > MAX_COUNT:
            self.fail(f"{what}: at most {MAX_COUNT} is needed, {count} was given", start)
        return count

    def metadata(self, count: int) -> dict[str, MetaValue]:
        meta: dict[str, MetaValue] = {}
        for index in range(count):
            start = self.at
            raw = self.text(f"key {index}", MAX_KEY)
            if not raw:
                self.fail(f'key {index}: a name is needed, "" was given', start)
            key, what = raw.decode(), f"key {shown(raw)}"
            if key in meta:
                self.fail(f"{what}: one value is needed, a second was given", start)
            meta[key] = self.value(key, what)
        return meta

    def value(self, key: str, what: str) -> MetaValue:
        start, kind = self.at, self.integer("I", what)
        if kind >= len(VALUE_TYPES):
            self.fail(f"{what}: a value type of 0 to 12 is needed, {kind} was given", start)
        needed = REQUIRED_TYPES.get(key, kind)
        if kind != needed:
            given = VALUE_TYPES[kind][0]
            self.fail(f"{what}: a {VALUE_TYPES[needed][0]} is needed, a {given} was given", start)
        if kind == ARRAY:
            return self.array(what)
        if kind == STRING:
            return self.text(what, MAX_STRING).decode()
        start, number = self.at, self.number(VALUE_TYPES[kind][1], what)
        if kind == BOOL:
            self.check_bools(start, 1, what)
            return bool(number)
        if key == "general.alignment" and number not in ALIGNMENTS:
            needs = f"{what}: a power of two from 8 to 4096 is needed"
            self.fail(f"{needs}, {number} was given", start)
        return number

    def array(self, what: str) -> list[Scalar]:
        start, kind = self.at, self.integer("I", what)
        if kind >= len(VALUE_TYPES) or kind == ARRAY:
            needs = f"{what}: an element type of 0 to 12, not 9 (array), is needed"
            self.fail(f"{needs}, {kind} was given", start)
        start, count = self.at, self.integer("Q", what)
        if count > MAX_ELEMENTS - self.elements:
            needs = f"{what}: at most {MAX_ELEMENTS} array elements in a file are needed"
            self.fail(f"{needs}, {self.elements} and {count} were given", start)
        self.elements += count
        if kind == STRING:
            return self.strings(count, what)
        size = count * struct.calcsize("<" + VALUE_TYPES[kind][1])
        self.need(size, what)
        self.at += size
        start = self.at - size
        if kind == BOOL:
            self.check_bools(start, count, what)
            return [byte != 0 for byte in self.data[start : self.at]]
        return np.frombuffer(self.data, "<" + VALUE_TYPES[kind][1], count, start).tolist()

    def check_bools(self, start: int, count: int, what: str) -> None:
        for index, byte in enumerate(self.data[start : start + count]):
            if byte > 1:
                self.fail(f"{what}: a bool of 0 or 1 is needed, {byte} was given", start + index)

    def strings(self, count: int, what: str) -> list[Scalar]:
        """The loop over a vocabulary, 50,000 elements and up: no call and no message in it."""
        data, size, at, out = self.data, self.size, self.at, list[Scalar]()
        self.need(8 * count, what)
        for index in range(count):
            try:
                (length,) = _LENGTH.unpack_from(data, at)
                end = at + 8 + length
                if length > MAX_STRING or end > size:
                    raise ValueError
                out.append(data[at + 8 : end].decode())
            except (struct.error, ValueError):
                self.at = at
                self.text(f"element {index} of {what}", MAX_STRING)
                raise
            at = end
        self.at = at
        return out

    def tensors(self, count: int, alignment: int) -> dict[str, Entry]:
        """The tensor entries, with offsets from the file's start; their data lies in the file."""
        found: dict[str, Entry] = {}
        fields: list[int] = []  # where each entry's offset field is
        end = 0
        for index in range(count):
            name = self.tensor_name(index, found)
            entry = self.tensor(name)
            fields.append(self.at - 8)
            self.check_offset(entry, alignment, end)
            found[name] = entry
            end = entry.offset + entry.nbytes
        start = -(-self.at // alignment) * alignment
        for entry, at in zip(found.values(), fields, strict=True):
            self.check_extent(entry, start, at)
        return {
            e.name: Entry(e.name, e.type, e.shape, start + e.offset, e.nbytes)
            for e in found.values()
        }

    def tensor_name(self, index: int, found: dict[str, Entry]) -> str:
        start, what = self.at, f"tensor {index}'s name"
        raw = self.text(what, MAX_NAME)
        if not _NAME.fullmatch(raw) or b".." in raw:
            needs = f'{what}: letters, digits and "_.-/" without ".." are needed'
            self.fail(f"{needs}, {shown(raw)} was given", start)
        name = raw.decode()
        if name in found:
            self.fail(f"tensor {shown(raw)}: one entry is needed, a second was given", start)
        return name

    def tensor(self, name: str) -> Entry:
        """What follows a tensor's name; the offset counts from the data's start."""
        what = f'tensor "{name}"'
        start, rank = self.at, self.integer("I", what)
        if not 1 <= rank <= 4:
            self.fail(f"{what}: 1 to 4 dimensions are needed, {rank} were given", start)
        dims = [self.dimension(what) for _ in range(rank)]
        size = prod(dims)
        if size > MAX_SIZE:
            self.fail(f"{what}: at most {MAX_SIZE} elements are needed, more were given", start)
        start, kind = self.at, self.integer("I", what)
        if kind not in TENSOR_TYPES:
            self.fail(f"{what}: a tensor type of ggml is needed, {kind} was given", start)
        _, block, block_bytes = TENSOR_TYPES[kind]
        if dims[0] % block:
            needs = f"{what}: rows of whole blocks of {block} are needed"
            self.fail(f"{needs}, rows of {dims[0]} were given", start)
        nbytes = size // block * block_bytes
        return Entry(name, kind, tuple(reversed(dims)), self.integer("Q", what), nbytes)

    def dimension(self, what: str) -> int:
        start, dim = self.at, self.integer("Q", what)
        if not 1 <= dim <= MAX_DIM:
            needs = f"{what}: dimensions of 1 to {MAX_DIM} are needed"
            self.fail(f"{needs}, {dim} was given", start)
        return dim

    def check_offset(self, entry: Entry, alignment: int, end: int) -> None:
        what, at, offset = f'tensor "{entry.name}"', self.at - 8, entry.offset
        if offset % alignment:
            needs = f"{what}: an offset that is a multiple of {alignment} is needed"
            self.fail(f"{needs}, {offset} was given", at)
        self.check_extent(entry, 0, at)
        if offset < end:
            needs = f"{what}: an offset of at least {end}, the end of the tensor before, is needed"
            self.fail(f"{needs}, {offset} was given", at)

    def check_extent(self, entry: Entry, start: int, at: int) -> None:
        if start + entry.offset + entry.nbytes > self.size:
            needs = f'tensor "{entry.name}": {entry.nbytes} bytes at data offset {entry.offset}'
            self.fail(f"{needs} are needed, the file has {self.size} bytes", at)
