"""Bad GGUF files, one row each: a name, the file (bytes, or what to put at the path), and words
that the message must hold. Every reader refuses every row; GOOD is the file that they vary."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

U8, U32, F32, BOOL, STRING, ARRAY, U64 = 0, 4, 6, 7, 8, 9, 10


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def u64(value: int) -> bytes:
    return struct.pack("<Q", value)


def text(value: str | bytes, length: int | None = None) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return u64(len(raw) if length is None else length) + raw


def key(name: str | bytes, kind: int, payload: bytes) -> bytes:
    return text(name) + u32(kind) + payload


def array(kind: int, count: int, payload: bytes) -> bytes:
    return u32(kind) + u64(count) + payload


def tensor(name: str | bytes, dims: tuple[int, ...], kind: int, offset: int) -> bytes:
    return text(name) + u32(len(dims)) + b"".join(map(u64, dims)) + u32(kind) + u64(offset)


@dataclass(frozen=True)
class File:
    """A GGUF file in parts; counts are those of the parts unless given."""

    magic: bytes = b"GGUF"
    version: bytes = field(default_factory=lambda: u32(3))
    keys: tuple[bytes, ...] = ()
    tensors: tuple[bytes, ...] = ()
    data: bytes = b""
    key_count: int | None = None
    tensor_count: int | None = None
    alignment: int = 32

    def bytes(self) -> bytes:
        head = self.magic + self.version
        head += u64(len(self.tensors) if self.tensor_count is None else self.tensor_count)
        head += u64(len(self.keys) if self.key_count is None else self.key_count)
        head += b"".join(self.keys) + b"".join(self.tensors)
        return head + bytes(-len(head) % self.alignment) + self.data


ARCHITECTURE = key("general.architecture", STRING, text("tiny"))
KEYS = (
    ARCHITECTURE,
    key("general.alignment", U32, u32(32)),
    key("tiny.block_count", U32, u32(1)),
    key("tiny.eps", F32, struct.pack("<f", 1e-5)),
    key("tiny.flag", BOOL, b"\1"),
    key("tiny.big", U64, u64(2**64 - 1)),
    key("tiny.words", ARRAY, array(STRING, 3, text("a") + text("") + text("\u00e9"))),
    key("tiny.flags", ARRAY, array(BOOL, 3, b"\1\0\1")),
    key("tiny.bytes", ARRAY, array(U8, 5, b"abcde")),
)
TENSORS = (
    tensor("a.weight", (32, 2), 0, 0),  # F32: 256 bytes
    tensor("b.weight", (64, 3), 8, 256),  # Q8_0: 6 blocks of 34, 204 bytes
    tensor("c/d-1", (2, 3, 1, 2), 1, 480),  # F16: 24 bytes, 20 bytes after b's end
)
GOOD = File(keys=KEYS, tensors=TENSORS, data=bytes(504))


@dataclass(frozen=True)
class Bad:
    """One bad file; `make` puts something at the path where bytes alone cannot say it."""

    name: str
    words: tuple[str, ...]
    content: bytes = b""
    make: Callable[[Path], object] | None = None

    def put(self, path: Path) -> None:
        if self.make:
            self.make(path)
        else:
            path.write_bytes(self.content)


ROWS: list[Bad] = []


def bad(name: str, content: bytes | File, *words: str) -> None:
    raw = content.bytes() if isinstance(content, File) else content
    ROWS.append(Bad(name, (*words, "at byte offset"), raw))


def with_key(raw: bytes) -> File:
    """The good file with one more key, the last."""
    return replace(GOOD, keys=(*KEYS, raw))


def with_tensor(raw: bytes) -> File:
    """A file of one tensor, `raw`, and 4 KiB of data."""
    return File(keys=(ARCHITECTURE,), tensors=(raw,), data=bytes(4096))


def aligned(payload: bytes, kind: int = U32) -> File:
    return File(keys=(ARCHITECTURE, key("general.alignment", kind, payload)), tensors=TENSORS)


def _paths() -> None:
    ROWS.append(Bad("missing", ("cannot be opened: No such file",), make=lambda path: None))
    ROWS.append(Bad("directory", ("a regular file is needed",), make=Path.mkdir))
    ROWS.append(Bad("fifo", ("a regular file is needed",), make=os.mkfifo))
    ROWS.append(
        Bad("device", ("a regular file is needed",), make=lambda p: p.symlink_to("/dev/zero"))
    )
    loop = ("cannot be opened: Too many levels",)
    ROWS.append(Bad("link-loop", loop, make=lambda path: path.symlink_to(path.name)))


def _header() -> None:
    good = GOOD.bytes()
    bad("empty", b"", 'magic: "GGUF" is needed, "" was given')
    bad("three-bytes", b"GGU", 'magic: "GGUF" is needed, "GGU" was given')
    bad("magic", replace(GOOD, magic=b"GGML"), '"GGML" was given', "at byte offset 0")
    bad("html", b'<!DOCTYPE html>\n"', 'magic: "GGUF" is needed, "<!DO" was given')
    bad("ends-at-version", good[:6], "version: 4 bytes are needed, 2 are left")
    bad("version-0", replace(GOOD, version=u32(0)), "version: 2 or 3 is needed, 0 was given")
    bad("version-1", replace(GOOD, version=u32(1)), "version: 2 or 3 is needed, 1 was given")
    bad("version-4", replace(GOOD, version=u32(4)), "version: 2 or 3 is needed, 4 was given")
    bad("big-endian", replace(GOOD, version=u32(3)[::-1]), "a little-endian file is needed")
    bad("ends-at-tensor-count", good[:12], "tensor count: 8 bytes are needed, 4 are left")
    bad("ends-at-key-count", good[:23], "key count: 8 bytes are needed, 7 are left")
    most = "at most 65536 is needed"
    bad("tensor-count-65537", replace(GOOD, tensor_count=65537), "tensor count", most, "65537 was")
    bad("tensor-count-2^64-1", replace(GOOD, tensor_count=2**64 - 1), most, "18446744073709551615")
    bad("key-count-65537", replace(GOOD, key_count=65537), "key count", most)
    bad("key-count-2^63", replace(GOOD, key_count=2**63), "9223372036854775808 was given")
    astray = "tensor 0's name: at most 127 bytes are needed"  # a tensor read as a key, then ...
    bad("one-key-too-many", replace(GOOD, key_count=len(KEYS) + 1), astray)
    more = replace(GOOD, tensor_count=len(TENSORS) + 1)
    bad("one-tensor-too-many", more, "tensor 3's name: letters, digits", '"" was given')


def _keys() -> None:
    bad("key-length-2^64-1", with_key(u64(2**64 - 1)), "key 9: at most 65535 bytes are needed")
    bad("key-length-past-end", with_key(u64(60000)), "key 9: 60000 bytes are needed")
    bad(
        "key-70kB",
        with_key(key(b"k" * 70000, U8, b"\0")),
        "at most 65535 bytes",
        "70000 were given",
    )
    bad("key-empty", with_key(key("", U8, b"\0")), 'key 9: a name is needed, "" was given')
    bad("key-not-utf8", with_key(key(b"\xff\xfe", U8, b"\0")), 'UTF-8 is needed, "\\xff\\xfe" was')
    bad("key-twice", with_key(KEYS[2]), 'key "tiny.block_count": one value is needed')
    hostile = key('"];}\n#include "x"', 99, b"")
    bad("key-hostile", with_key(hostile), 'key "\\x22];}\\x0a#include \\x22x\\x22": a value type')
    bad(
        "value-type-13", with_key(key("k", 13, u64(0))), "a value type of 0 to 12 is needed, 13 was"
    )
    bad("value-type-2^32-1", with_key(key("k", 2**32 - 1, b"")), "4294967295 was given")
    bad("bool-2", with_key(key("k", BOOL, b"\2")), "a bool of 0 or 1 is needed, 2 was given")
    for name, payload, words in (
        ("length-2^63", text("x", 2**63), "at most 16777216 bytes are needed"),
        ("length-2^64-8", text("x", 2**64 - 8), "18446744073709551608 were given"),
        ("length-2^24", text("x", 2**24), "16777216 bytes are needed"),
        ("overlong", text(b"\xc0\xaf"), "UTF-8 is needed"),
        ("surrogate", text(b"\xed\xa0\x80"), "UTF-8 is needed"),
        ("beyond-unicode", text(b"\xf4\x90\x80\x80"), "UTF-8 is needed"),
        ("half-a-character", text(b"ab\xe2\x82"), 'UTF-8 is needed, "ab\\xe2\\x82" was given'),
    ):
        bad(f"string-{name}", with_key(key("k", STRING, payload)), 'key "k"', words)
    number = File(keys=(key("general.architecture", U32, u32(1)),))
    bad("architecture-u32", number, "a string is needed, a u32 was given")


def _arrays() -> None:
    elements = "at most 8388608 array elements in a file are needed"
    deep = array(ARRAY, 1, b"") * 5000
    for name, payload, words in (
        ("nested", array(ARRAY, 1, array(U8, 1, b"\0")), "not 9 (array), is needed, 9 was given"),
        ("nested-5000", deep, "not 9 (array), is needed, 9 was given"),
        (
            "type-77",
            array(77, 1, u64(0)),
            "an element type of 0 to 12, not 9 (array), is needed, 77",
        ),
        ("count-2^40", array(U8, 2**40, b""), elements),
        ("count-2^62", array(U32, 2**62, b""), elements),
        ("count-2^64-1", array(STRING, 2**64 - 1, b""), elements),
        ("count-past-end", array(U64, 2**20, b""), "8388608 bytes are needed"),
        ("strings-past-end", array(STRING, 2**20, b""), "8388608 bytes are needed"),
        ("bool-3", array(BOOL, 3, b"\1\0\3"), "a bool of 0 or 1 is needed, 3 was given"),
        ("element-2^64-1", array(STRING, 2, text("a") + text("b", 2**64 - 1)), "element 1 of key"),
        ("element-past-end", array(STRING, 1, text("b", 2**20)), "element 0 of key"),
        (
            "element-not-utf8",
            array(STRING, 2, text("a") + text(b"\x80")),
            'UTF-8 is needed, "\\x80"',
        ),
    ):
        bad(f"array-{name}", with_key(key("k", ARRAY, payload)), 'key "k"', words)
    many = with_key(key("k", ARRAY, array(U8, 2**23 - 10, b"")))
    bad("arrays-together", many, elements, "11 and 8388598 were given")


def _alignment() -> None:
    power = "a power of two from 8 to 4096 is needed"
    for value in (0, 1, 13, 4, 8192, 2**31, 2**32 - 1):
        bad(f"alignment-{value}", aligned(u32(value)), "general.alignment", power, f"{value} was")
    bad("alignment-u64", aligned(u64(32), U64), "a u32 is needed, a u64 was given")
    bad("alignment-string", aligned(text("32"), STRING), "a u32 is needed, a string was given")


def _tensors() -> None:
    rule = 'letters, digits and "_.-/" without ".." are needed'
    for name, raw in (
        ("empty", b""),
        ("nul", b"a\0b"),
        ("newline", b"a\nb"),
        ("quote", b'w"];}\n#include "/etc/passwd"'),
        ("parent", b"../../../../x"),
        ("dots", b"a..b"),
        ("space", b"a b"),
        ("letter-of-latin-1", "caf\u00e9".encode()),
    ):
        bad(f"name-{name}", with_tensor(tensor(raw, (32,), 0, 0)), "tensor 0's name", rule)
    long = "tensor 0's name: at most 127 bytes are needed"
    bad("name-70kB", with_tensor(tensor(b"n" * 70000, (32,), 0, 0)), long, "70000 were given")
    bad("name-128", with_tensor(tensor(b"n" * 128, (32,), 0, 0)), long, "128 were given")
    bad("name-length-2^64-1", with_tensor(text("n", 2**64 - 1)), long)
    bad("name-not-utf8", with_tensor(tensor(b"\xc3", (32,), 0, 0)), "name: UTF-8 is needed")
    twice = replace(GOOD, tensors=(*TENSORS, tensor("a.weight", (1,), 0, 512)), data=bytes(1024))
    bad("name-twice", twice, 'tensor "a.weight": one entry is needed, a second was given')
    for name, dims, kind, words in (
        ("rank-0", (), 0, "1 to 4 dimensions are needed, 0 were given"),
        ("rank-5", (1,) * 5, 0, "1 to 4 dimensions are needed, 5 were given"),
        ("dim-0", (32, 0), 0, "dimensions of 1 to 2147483648 are needed, 0 was given"),
        ("dim-2^31+1", (2**31 + 1,), 0, "2147483649 was given"),
        ("dim-2^64-1", (2**64 - 1,), 0, "18446744073709551615 was given"),
        ("size-2^124", (2**31,) * 4, 0, "at most 281474976710656 elements are needed"),
        ("size-2^64", (2**31, 2**31, 4), 0, "at most 281474976710656 elements are needed"),
        ("size-2^49", (2**31, 2**18), 0, "at most 281474976710656 elements are needed"),
        ("size-2^48", (2**31, 2**17), 0, "1125899906842624 bytes at data offset 0 are needed"),
        ("type-removed", (32,), 4, "a tensor type of ggml is needed, 4 was given"),
        ("type-q8_1", (32,), 9, "a tensor type of ggml is needed, 9 was given"),
        ("type-2^32-1", (32,), 2**32 - 1, "4294967295 was given"),
        ("ragged-q4_0", (33,), 2, "rows of whole blocks of 32 are needed, rows of 33 were given"),
        ("ragged-rows", (16, 2), 2, "rows of whole blocks of 32 are needed, rows of 16 were given"),
        ("ragged-q6_k", (32, 8), 14, "rows of whole blocks of 256 are needed"),
        ("ragged-q4_k", (288, 2), 12, "rows of whole blocks of 256 are needed, rows of 288 were"),
        ("ragged-q5_k", (255,), 13, "rows of whole blocks of 256 are needed, rows of 255 were"),
        ("short-q4_k", (4096, 2), 12, "4608 bytes at data offset 0 are needed, the file has"),
        ("short-q6_k", (1280, 5), 14, "5250 bytes at data offset 0 are needed, the file has"),
    ):
        bad(name, with_tensor(tensor("t", dims, kind, 0)), 'tensor "t"', words)
    bad("rank-2^32-1", with_tensor(text("t") + u32(2**32 - 1)), "4294967295 were given")


def _data() -> None:
    multiple = "an offset that is a multiple of 32 is needed"
    for name, offset, words in (
        ("unaligned", 13, f"{multiple}, 13 was given"),
        ("2^64-32", 2**64 - 32, "at data offset 18446744073709551584 are needed"),
        ("2^64-1", 2**64 - 1, multiple),
        ("2^63", 2**63, "128 bytes at data offset 9223372036854775808"),
        ("past-end", 4096, "128 bytes at data offset 4096 are needed, the file has"),
        ("end-past-end", 3968 + 32, "128 bytes at data offset 4000 are needed"),
    ):
        bad(f"offset-{name}", with_tensor(tensor("t", (32,), 0, offset)), 'tensor "t"', words)
    a, b = tensor("a", (32,), 0, 0), tensor("b", (32,), 0, 96)
    before = "an offset of at least 128, the end of the tensor before, is needed"
    overlap = File(keys=(ARCHITECTURE,), tensors=(a, b), data=bytes(4096))
    bad("overlap", overlap, 'tensor "b"', before, "96 was given")
    descending = (tensor("a", (8,), 0, 128), tensor("b", (8,), 0, 0))
    bad("descending", replace(overlap, tensors=descending), 'tensor "b"', "at least 160")
    bad("data-short", GOOD.bytes()[:-1], 'tensor "c/d-1": 24 bytes at data offset 480 are needed')
    bad("data-none", replace(GOOD, data=b""), 'tensor "a.weight"', "are needed, the file has")
    for name, at in (("name", 3), ("rank", 14), ("dims", 22), ("type", 42), ("offset", 47)):
        keys_only = replace(GOOD, tensors=(), data=b"", tensor_count=1, alignment=1).bytes()
        bad(f"ends-at-{name}", keys_only + TENSORS[0][:at], "bytes are needed")


for group in (_paths, _header, _keys, _arrays, _alignment, _tensors, _data):
    group()
