"""Text to token ids and back, from a checkpoint's own vocabulary: byte-level BPE (`gpt2` in GGUF).

How text is cut before BPE is a table of llama.cpp's patterns (llama-vocab.cpp); tokenizers outside
it are refused by name. `codegen/lib/driver/vocabulary.h` turns ids into text by the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Encoder

from compiler.diagnostics import CHECKPOINT, UserError
from runtime.gguf import Checkpoint
from runtime.gguf_header import shown

ADVICE = "give token ids with --tokens"
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4  # kinds of tokenizer.ggml.token_type


@dataclass(frozen=True, slots=True)
class Family:
    """A value of tokenizer.ggml.pre: text is cut by one pattern after the other, then BPE runs."""

    patterns: tuple[str, ...]
    bos: bool = False  # what add_bos_token is where the file lacks it
    whole: bool = False  # a piece that is itself a token is taken before its merges are tried
    nfc: bool = False  # composed first, as the family's own tokenizer does (llama.cpp does not)


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
FAMILIES = {
    "smollm": Family((r"\p{N}", GPT2)),
    "llama-bpe": Family((rf"{WORDS}|\p{{N}}{{1,3}}|{REST}",), bos=True, whole=True),
    "qwen2": Family((rf"{WORDS}|\p{{N}}|{REST}",), nfc=True),
}


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A checkpoint's tokenizer; ids are those of its token_embd rows."""

    encoder: Encoder
    tokens: tuple[str, ...]
    kinds: tuple[int, ...]
    bos: int | None  # put before every text

    def encode(self, text: str) -> list[int]:
        """Control and user-defined tokens in the text become their ids."""
        ids = self.encoder.encode(text, add_special_tokens=False).ids
        return ids if self.bos is None else [self.bos, *ids]

    def decode(self, ids: Iterable[int]) -> str:
        """Control tokens and ids beyond the vocabulary are nothing, broken UTF-8 is U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode(errors="replace")

    def token_bytes(self, index: int) -> bytes:
        """What one token adds to the text; not always whole characters."""
        if not 0 <= index < len(self.tokens):
            return b""
        token, kind = self.tokens[index], self.kinds[index]
        if kind == NORMAL and all(char in _BYTES for char in token):
            return bytes(_BYTES[char] for char in token)
        return token.encode() if kind in (NORMAL, USER_DEFINED) else b""


def open_tokenizer(checkpoint: Checkpoint) -> Tokenizer:
    """Raises UserError (exit code 3) where the checkpoint has no tokenizer that monocu knows."""
    path, meta = checkpoint.path, checkpoint.meta
    family = _family(checkpoint)
    tokens = tuple(_strings(checkpoint, "tokens"))
    given = meta.get("tokenizer.ggml.token_type", [NORMAL] * len(tokens))
    if not isinstance(given, list) or len(given) != len(tokens):
        raise _fault(path, "as many tokenizer.ggml.token_type as tokens are needed")
    kinds = tuple(kind if isinstance(kind, int) else NORMAL for kind in given)
    encoder = _encoder(path, family, tokens, _strings(checkpoint, "merges"))
    for kind, special in ((CONTROL, True), (USER_DEFINED, False)):
        texts = [text for text, k in zip(tokens, kinds, strict=True) if k == kind and text]
        encoder.add_tokens([AddedToken(t, special=special, normalized=False) for t in texts])
    bos = meta.get("tokenizer.ggml.bos_token_id")
    if not meta.get("tokenizer.ggml.add_bos_token", family.bos):
        bos = None
    elif not isinstance(bos, int):
        raise _fault(path, "the key tokenizer.ggml.bos_token_id is needed, it should be added")
    return Tokenizer(encoder, tokens, kinds, bos)


def _fault(path: Path, message: str) -> UserError:
    return UserError(f"{path}: {message}; {ADVICE}", CHECKPOINT)


def _shown(value: object) -> str:
    return "none" if value is None else shown(str(value).encode())


def _family(checkpoint: Checkpoint) -> Family:
    for key, known in (("model", ["gpt2"]), ("pre", list(FAMILIES))):
        given = checkpoint.meta.get(f"tokenizer.ggml.{key}")
        if given not in known:
            needs = f"a tokenizer.ggml.{key} of {', '.join(known)} is needed"
            raise _fault(checkpoint.path, f"{needs}, {_shown(given)} was given")
    return FAMILIES[str(checkpoint.meta["tokenizer.ggml.pre"])]


def _strings(checkpoint: Checkpoint, name: str) -> list[str]:
    values = checkpoint.meta.get(f"tokenizer.ggml.{name}")
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        raise _fault(checkpoint.path, f"an array of strings tokenizer.ggml.{name} is needed")
    return [str(value) for value in values]


def _encoder(path: Path, family: Family, tokens: Sequence[str], merges: Sequence[str]) -> Encoder:
    vocabulary = {token: index for index, token in enumerate(tokens)}
    pairs: list[tuple[str, str]] = []
    for index, merge in enumerate(merges):
        left, _, right = merge.partition(" ")
        if not {left, right, left + right} <= vocabulary.keys():
            needs = f"merge {index}: two tokens that make a token are needed"
            raise _fault(path, f"{needs}, {_shown(merge)} was given")
        pairs.append((left, right))
    encoder = Encoder(models.BPE(vocab=vocabulary, merges=pairs, ignore_merges=family.whole))
    if family.nfc:
        encoder.normalizer = normalizers.NFC()
    cuts = [pre_tokenizers.Split(Regex(p), "isolated") for p in family.patterns]
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    encoder.pre_tokenizer = pre_tokenizers.Sequence([*cuts, as_bytes])
    return encoder


def _byte_table() -> dict[str, int]:
    """GPT-2's: printable Latin-1 characters are themselves, the 68 other bytes U+0100 and on."""
    plain = [b for b in range(256) if 32 < b < 127 or (b > 160 and b != 173)]
    others = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(others)}


_BYTES = _byte_table()
