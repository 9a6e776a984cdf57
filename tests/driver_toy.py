"""The driver under two toys that play the generated part (driver_fixture_*.cu), run and checked.
All numbers of the toy model are whole, so NumPy's sums are the same whatever their order."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from codegen.driver import driver_text
from runtime import toolchain

ROOT = Path(__file__).parent.parent
VOCAB, WIDTH, LAYERS, MAX_ROWS, MAX_WANTED, MAX_SEQS = 17, 32, 2, 16, 4, 4
TABLE = np.random.default_rng(3).integers(-3, 4, (VOCAB, WIDTH)).astype(np.float32)
BIASES = np.random.default_rng(4).integers(-2, 3, (LAYERS, WIDTH)).astype(np.float32)
# Characters of the vocabulary: token 3 is a byte that is no character alone, 4 and 5 make one.
WORDS = ["a", "b", "\u0120c", "\u00bf", "\u00c3", "\u00a9", *(f"w{i}" for i in range(11))]


@cache
def binary(kind: str, sanitize: bool = False, scarce: str = "") -> Path:
    """The toy "model" or "op" for the host target; scarce: C++ that stands before the driver."""
    device, reads = ((ROOT / f"codegen/lib/{name}.cuh").read_text() for name in ("device", "reads"))
    toy = (ROOT / f"tests/driver_fixture_{kind}.cu").read_text()
    helpers = (device, reads) if kind == "model" else (device,)
    text = "\n".join((*helpers, toy, scarce, driver_text(kind == "model")))
    return toolchain.build(text, sanitize=sanitize)


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, object]:
        """--json: the last line of standard error."""
        return json.loads(self.err.splitlines()[-1])


def run(kind: str, *words: object, sanitize: bool = False) -> Ran:
    command = [str(binary(kind, sanitize)), *map(str, words)]
    got = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return Ran(got.returncode, got.stdout, got.stderr)


META: dict[str, Any] = {"layers": 2, "eps": 1e-5, "kind": "mixed", "windows": [4, 0]}


def write_checkpoint(
    path: Path, meta: Mapping[str, Any] = META, **changes: np.ndarray | None
) -> Path:
    """The toy's checkpoint; `changes`: other tensors by name (dots as __), None leaves one out."""
    tensors = {"table.weight": TABLE} | {f"blk.{i}.bias": b for i, b in enumerate(BIASES)}
    for name, tensor in changes.items():
        tensors.pop(name.replace("__", "."), None)
        if tensor is not None:
            tensors[name.replace("__", ".")] = tensor
    writer = gguf.GGUFWriter(path, "toy")
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(WORDS)
    for key, value in meta.items():
        kind = gguf.GGUFValueType
        types = {int: kind.UINT32, float: kind.FLOAT32, str: kind.STRING, list: kind.ARRAY}
        writer.add_key_value(f"toy.{key}", value, types[type(value)], kind.INT32)
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def hidden(tokens: list[int]) -> np.ndarray:
    """f32[len(tokens), WIDTH]: h behind the last layer, a row a position."""
    x = TABLE[tokens]
    rows = [
        sum((1 + (t - p) % 3) * x[p] for p in range(t + 1)) + BIASES.sum(0)
        for t in range(len(tokens))
    ]
    return np.array(rows, np.float32)


def generated(prompt: list[int], count: int) -> list[int]:
    """The tokens that the toy chooses behind a prompt."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(np.argmax(hidden(tokens)[-1] @ TABLE.T)))
    return tokens[len(prompt) :]


def line(tokens: list[int]) -> str:
    return ",".join(map(str, tokens))
