"""What is compiled for: the target machine, the numerics and the limits that the plan checks."""

from __future__ import annotations

from dataclasses import dataclass

NUMERICS = ("f32", "int8", "int8x2")
KV_STORAGE = {"f32": "f32", "int8": "f16", "int8x2": "f32"}  # the default of --kv by numerics


@dataclass(frozen=True)
class Target:
    """A machine to plan for; `shared_bytes` is what one block may use, in bytes."""

    name: str  # "host" or "cuda"
    sms: int
    shared_bytes: int
    max_threads: int = 1024


HOST = Target("host", sms=2, shared_bytes=227 * 1024)
CUDA = Target("cuda", sms=132, shared_bytes=227 * 1024)
SM_80 = Target("cuda", sms=108, shared_bytes=163 * 1024)


@dataclass(frozen=True)
class Options:
    """What a compilation is asked for; every field is in the emitted header comment."""

    numerics: str = "int8"
    kv: str = ""  # "" : the default of the numerics
    max_rows: int = 64  # rows of one step, at most
    max_seqs: int = 8  # sequences at once, at most
    hold: tuple[str, ...] = ()  # passes and rules held back by name
    dump: bool = False  # regions store their members too; no buffer is used twice
    timed: bool = False  # each launch of a model's step notes when it is let through its wait
    ranges: bool = False  # NVTX ranges around a model's steps and launches
    guard: bool = False  # host: buffers apart, bytes around them that sanitizers watch

    @property
    def kv_dtype(self) -> str:
        return self.kv or KV_STORAGE[self.numerics]
