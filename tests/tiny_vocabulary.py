"""A byte-level vocabulary small enough to read: the 256 bytes, a few merges, special tokens."""

from __future__ import annotations

from pathlib import Path

from runtime.gguf import Checkpoint
from runtime.gguf_header import MetaValue

BYTES = [b for b in range(256) if 32 < b < 127 or (b > 160 and b != 173)]
BYTES += [b for b in range(256) if b not in BYTES]  # token i is the byte BYTES[i]
LETTERS = [chr(b) for b in BYTES[:188]] + [chr(256 + i) for i in range(68)]
MERGES = ["a b", "c d", "ab cd", "1 2", "12 3", "\u0120 a", "\u0120 \u0120"]
WORDS = [merge.replace(" ", "") for merge in MERGES] + ["xyz"]  # xyz: no merge makes it
CONTROL = ["<s>", "<|end|>"]
USER_DEFINED = ["<think>", "\u00e9t\u00e9", "\u4f60"]  # as they are, not byte-level
UNUSED = ["<unused>"]
TOKENS = [*LETTERS, *WORDS, *CONTROL, *USER_DEFINED, *UNUSED]
KINDS = [1] * 264 + [3] * 2 + [4] * 3 + [5]
META: dict[str, MetaValue] = {
    "general.architecture": "llama",
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": list(TOKENS),
    "tokenizer.ggml.token_type": list(KINDS),
    "tokenizer.ggml.merges": list(MERGES),
    "tokenizer.ggml.bos_token_id": TOKENS.index("<s>"),
}


def checkpoint(**changes: MetaValue | None) -> Checkpoint:
    """META with keys of tokenizer.ggml changed, or left out where None."""
    meta = META | {f"tokenizer.ggml.{name}": value for name, value in changes.items()}
    return Checkpoint(Path("tiny.gguf"), {k: v for k, v in meta.items() if v is not None}, {}, b"")
