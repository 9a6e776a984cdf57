"""Writes tokenizer.json: token ids of varied texts by llama.cpp, for each family of splits.

    python -m tests.golden.make_tokenizer_golden SmolLM2-135M-Instruct.Q4_1.gguf

Needs the package xllamacpp (llama.cpp's server as a module; written with 2026.10.11549); the tests
read the file alone. One vocabulary, SmolLM2's, serves all families: the splits differ. For qwen2
the text is composed (NFC) first, as Qwen's own tokenizer does and llama.cpp does not.

transformers is no oracle here: reading a GGUF file it leaves out smollm's cut at digits.
"""

from __future__ import annotations

import json
import sys
import tempfile
import unicodedata
import urllib.request
from pathlib import Path

from runtime.synthetic import cut

FAMILIES = ("smollm", "llama-bpe", "qwen2")
TEXTS = (
    "",
    "a",
    " ",
    "Hello, world!",
    " leading and trailing ",
    "two  spaces   three    four",
    "a\nb\n\nc\n\n\nd",
    "a\r\nb\r\n\r\nc",
    "tab\tand\t\ttabs",
    " \n \n  x \t\n",
    "trailing newlines\n\n\n",
    "1 12 123 1234 12345 1234567890",
    "3.14159, 1e-5, 0x1F, 1,000,000",
    "x1y22z333   7  88",
    "IPv4 192.168.0.1:8080/24",
    "I'm you're he'll they've it's we'd can't",
    "I'M YOU'RE HE'LL THEY'VE IT'S WE'D CAN'T",
    "don''t 'quoted' \"double\" `code`",
    "\u2019s curly \u201cquotes\u201d \u2014 dash \u2026 dots",
    "!!! ??? ... ,,, --- === ### $$$",
    "(a[b]{c}<d>)",
    "def f(x: int) -> int:\n    return x ** 2 + 1  # square\n",
    "for (int i = 0; i < n; ++i) {\n\tsum += a[i] * b[i];\n}\n",
    '{"key": [1, 2.5, null, true], "s": "\\u00e9\\n"}',
    "SELECT * FROM t WHERE x >= 10 AND y LIKE '%z%';",
    "https://example.com/path?query=1&x=a%20b#frag",
    "<p class='x'>caf\u00e9 &amp; bar</p>",
    "caf\u00e9 na\u00efve \u00fcber \u00c5ngstr\u00f6m \u00df",
    "cafe\u0301 u\u0308ber A\u030angstro\u0308m",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u042d\u0442\u043e "
    "\u0442\u0435\u0441\u0442.",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002",
    "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c \u30c6\u30b9\u30c8",
    "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 \u0661\u0662\u0663",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e \u0967\u0968\u0969",
    "\U0001f600 \U0001f44d\U0001f3fd \U0001f468\u200d\U0001f469\u200d\U0001f467 "
    "\U0001f1eb\U0001f1f7",
    "\u00bd \u00b2 \u2167 \u2460 \u00b5 \u03c0 \u2211 \u221e \u2260",
    "a\u00a0b\u2003c\u3000d\u200be\ufeff",
    "\x00\x01\x1b[31mred\x1b[0m\x7f",
    "ALLCAPS CamelCaseWords snake_case kebab-case",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "text<|endoftext|><|endoftext|> more <|im_start|>",
    "<|im_start|not one|> <|IM_START|> < |im_end|>",
    "The quick brown fox jumps over the lazy dog. " * 3,
)


class LlamaCpp:
    """A server of llama.cpp for one checkpoint."""

    def __init__(self, path: Path) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx, params.n_parallel, params.warmup, params.port = 256, 1, False, 0
        self.server = xllamacpp.Server(params)

    def tokenize(self, text: str) -> list[int]:
        body = {"content": text, "add_special": True, "parse_special": True}
        request = urllib.request.Request(
            f"{self.server.listening_address}/tokenize",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["tokens"]


def main(source: Path) -> None:
    ids: dict[str, list[list[int]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for family in FAMILIES:
            path = cut(source, Path(folder) / "m.gguf", 1, meta={"tokenizer.ggml.pre": family})
            server = LlamaCpp(path)
            forms = {"qwen2": "NFC"}
            texts = [
                unicodedata.normalize(forms[family], t) if family in forms else t for t in TEXTS
            ]
            ids[family] = [server.tokenize(text) for text in texts]
    rows = [
        json.dumps({"text": text} | {family: ids[family][index] for family in FAMILIES})
        for index, text in enumerate(TEXTS)
    ]
    out = Path(__file__).with_name("tokenizer.json")
    out.write_text("[\n" + ",\n".join(rows) + "\n]\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
