"""The tokenizer: llama.cpp's ids on SmolLM2's vocabulary, and its rules on a vocabulary of 270."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.diagnostics import CHECKPOINT, UserError
from runtime.fetch import cached
from runtime.gguf import Checkpoint, open_checkpoint
from runtime.gguf_header import MetaValue
from runtime.tokenizer import FAMILIES, open_tokenizer
from tests.tiny_vocabulary import CONTROL, TOKENS, checkpoint

GOLDEN = json.loads(Path(__file__).with_name("golden").joinpath("tokenizer.json").read_text())
BOS, END = map(TOKENS.index, CONTROL)
FAMILY = pytest.mark.parametrize("family", FAMILIES)


@pytest.fixture(scope="module")
def smollm2() -> Checkpoint:
    path = cached("smollm2")
    if path is None:
        pytest.skip("SmolLM2 is not in the cache: monocu fetch smollm2")
    return open_checkpoint(path)


@pytest.mark.model
@FAMILY
def test_ids_are_those_of_llama_cpp(smollm2: Checkpoint, family: str) -> None:
    tokenizer = open_tokenizer(replace(smollm2, meta=smollm2.meta | {"tokenizer.ggml.pre": family}))
    for row in GOLDEN:
        assert tokenizer.encode(row["text"]) == row[family], repr(row["text"])
        plain = "<|" not in row["text"] and family != "qwen2"
        assert not plain or tokenizer.decode(row[family]) == row["text"]


def test_the_golden_file_tells_smollm_from_the_others() -> None:
    assert len(GOLDEN) >= 40
    assert sum(row["smollm"] != row["qwen2"] for row in GOLDEN) >= 4


@pytest.mark.parametrize(
    ("family", "text", "pieces"),
    [
        ("smollm", "ab  1234", ["ab", "  ", "1", "2", "3", "4"]),
        ("smollm", "I'll go\n\n x", ["I", "'ll", " go", "\n\n", " x"]),
        ("smollm", "I'LL", ["I", "'", "LL"]),
        ("llama-bpe", "ab  1234", ["ab", " ", " ", "123", "4"]),
        ("llama-bpe", "I'LL (go)!!\n\n x", ["I", "'LL", " (", "go", ")!!\n\n", " x"]),
        ("qwen2", "ab  1234", ["ab", " ", " ", "1", "2", "3", "4"]),
        ("qwen2", "$x=\ty\r\n", ["$x", "=", "\ty", "\r\n"]),
    ],
)
def test_how_text_is_cut(family: str, text: str, pieces: list[str]) -> None:
    tokenizer = open_tokenizer(checkpoint(pre=family))
    cut = tokenizer.encoder.pre_tokenizer.pre_tokenize_str(text)
    assert [text[start:end] for _, (start, end) in cut] == pieces


def words(family: str, text: str) -> list[str]:
    tokenizer = open_tokenizer(checkpoint(pre=family, add_bos_token=False))
    return [TOKENS[index] for index in tokenizer.encode(text)]


def test_merges_in_order_of_rank() -> None:
    assert words("smollm", "abcdab c") == ["abcd", "ab", "\u0120", "c"]
    assert words("smollm", "123") == ["1", "2", "3"]
    assert words("llama-bpe", "1234") == ["123", "4"]


def test_only_llama_bpe_takes_a_whole_piece_that_no_merge_makes() -> None:
    assert words("llama-bpe", "xyz") == ["xyz"]
    assert words("qwen2", "xyz") == ["x", "y", "z"]


def test_only_qwen2_composes_characters() -> None:
    assert words("qwen2", "e\u0301") == ["\u00c3", "\u00a9"]
    assert words("smollm", "e\u0301") == ["e", "\u00cc", "\u0123"]


def test_special_tokens_in_the_text_are_tokens() -> None:
    text = "a<s>b<think>\u4f60<|end|><unused>"
    tokens = ["a", "<s>", "b", "<think>", "\u4f60", "<|end|>", *"<unused>"]
    assert words("smollm", text) == tokens
    tokenizer = open_tokenizer(checkpoint())
    assert tokenizer.decode(tokenizer.encode(text)) == "ab<think>\u4f60<unused>"


def test_bos_by_key_and_by_family() -> None:
    assert open_tokenizer(checkpoint()).encode("") == []
    assert open_tokenizer(checkpoint(add_bos_token=True)).encode("a")[0] == BOS
    assert open_tokenizer(checkpoint(pre="llama-bpe")).encode("") == [BOS]
    assert open_tokenizer(checkpoint(pre="llama-bpe", add_bos_token=False)).encode("") == []


def test_decode_of_odd_ids() -> None:
    tokenizer = open_tokenizer(checkpoint())
    half = TOKENS.index("\u00c3")  # the byte C3, half of a character
    assert tokenizer.decode([half]) == "\ufffd"
    assert tokenizer.decode([half, END, TOKENS.index("\u00a9")]) == "\u00e9"
    assert tokenizer.decode([TOKENS.index("\u00e9t\u00e9"), TOKENS.index("<unused>")]) == "été"
    assert tokenizer.decode([-1, len(TOKENS), 10**9]) == ""


TINY = {family: open_tokenizer(checkpoint(pre=family, add_bos_token=False)) for family in FAMILIES}


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="<"), max_size=60))
def test_text_comes_back(text: str) -> None:
    for family in ("smollm", "llama-bpe"):
        assert TINY[family].decode(TINY[family].encode(text)) == text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "llama"}, 'a tokenizer.ggml.model of gpt2 is needed, "llama" was given'),
        ({"model": None}, "a tokenizer.ggml.model of gpt2 is needed, none was given"),
        ({"model": 'x"\n'}, '"x\\x22\\x0a" was given'),
        ({"pre": "tekken"}, "tokenizer.ggml.pre of smollm, llama-bpe, qwen2 is needed"),
        ({"pre": ["smollm"]}, "tokenizer.ggml.pre of smollm"),
        ({"tokens": None}, "an array of strings tokenizer.ggml.tokens is needed"),
        ({"tokens": [1, 2]}, "an array of strings tokenizer.ggml.tokens is needed"),
        ({"merges": None}, "an array of strings tokenizer.ggml.merges is needed"),
        ({"merges": ["a b", "ab"]}, 'merge 1: two tokens that make a token are needed, "ab"'),
        ({"merges": ["a z"]}, 'merge 0: two tokens that make a token are needed, "a z" was'),
        ({"token_type": [1]}, "as many tokenizer.ggml.token_type as tokens are needed"),
        ({"add_bos_token": True, "bos_token_id": None}, "tokenizer.ggml.bos_token_id is needed"),
    ],
)
def test_refuses(changes: dict[str, MetaValue | None], words: str) -> None:
    with pytest.raises(UserError) as caught:
        open_tokenizer(checkpoint(**changes))
    message = str(caught.value)
    assert caught.value.code == CHECKPOINT
    assert words in message and message.startswith("tiny.gguf: ") and "--tokens" in message
