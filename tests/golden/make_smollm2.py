"""Writes smollm2.json and smollm2_logits.npy: what transformers makes of SmolLM2's own GGUF file.

    python -m tests.golden.make_smollm2 SmolLM2-135M-Instruct.Q4_1.gguf [LOGITS.npy]

LOGITS.npy takes the logits of every position, for benchmarks/accuracy.py --reference (39 MB).
Needs torch and transformers (written with 2.13.0 and 5.24.0, on a CPU) beside numpy and
tokenizers; the tests and benchmarks/accuracy.py read the files alone. transformers takes the
weights from the GGUF, as f32, and computes in f32; that it turned q and k back from llama.cpp's
pairs is checked against the tensor itself.

Token ids are those of runtime.tokenizer: transformers leaves out smollm's cut at digits.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runtime.cache import file_digest
from runtime.gguf import open_checkpoint
from runtime.tokenizer import open_tokenizer

PROMPT, COUNT = "Gravity is", 48
LENGTH = 200  # tokens of TEXT that are kept
TOP = 5
WHOLE = (0, 40, 120, 199)  # positions whose logits are stored whole
HERE = Path(__file__).parent

# Written for this file, so that no model has seen it.
TEXT = """\
The ferry to the island leaves at a quarter past six, when the harbour is still dark and the only
lights belong to the bakery and to the men who sort the night's catch. Anna had taken it every
Monday for eleven years, first as a nurse and later as the only doctor for four villages, and she
knew each of the passengers by their coats. That morning a stranger sat on her bench. He held a
wooden box on his knees, and whenever the boat rolled he bent over it as if it could feel the cold.

"Is it alive?" she asked, because nobody else would.

"It is a clock," he said. "It has not stopped since 1893, and I would rather not be the one who
stops it." He explained that the church on the island had lost its own clock in the winter storms,
and that the parish had voted, by a single voice, to borrow one from the museum until the summer.
Anna laughed. She had been that single voice."""


def load(path: Path) -> Any:
    """The model in f32, its projections as the file's own values in transformers' order."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    ).eval()
    heads, hidden = model.config.num_attention_heads, model.config.hidden_size
    stored = open_checkpoint(path).weight("blk.0.attn_q.weight").values()
    halves = stored.reshape(heads, -1, 2, hidden).swapaxes(1, 2).reshape(stored.shape)
    assert (halves == model.model.layers[0].self_attn.q_proj.weight.detach().numpy()).all()
    return model


def logits(model: Any, ids: list[int]) -> NDArray[np.float32]:
    """f32[rows, V] of every row, in one pass."""
    import torch

    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def greedy(model: Any, ids: list[int], count: int) -> list[int]:
    """`count` more tokens; an end token is one like any other."""
    import torch

    given = torch.tensor([ids])
    out = model.generate(
        given, attention_mask=torch.ones_like(given), max_new_tokens=count, min_new_tokens=count,
        do_sample=False, repetition_penalty=1.0, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    return out[0, len(ids) :].tolist()


def logsumexp(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """Of each row, in float64."""
    wide = rows.astype(np.float64)
    top = wide.max(axis=1)
    return top + np.log(np.exp(wide - top[:, None]).sum(axis=1))


def passage(rows: NDArray[np.float32], ids: list[int], text: str) -> dict[str, Any]:
    """What is kept of each position: logprob is the next token's, so the last has none."""
    total = logsumexp(rows)
    best = np.argsort(-rows, axis=1, kind="stable")[:, :TOP]
    next_ = [float(rows[at, token]) - total[at] for at, token in enumerate(ids[1:])]
    return {
        "text": text,
        "ids": ids,
        "logsumexp": np.round(total, 6).tolist(),
        "logprobs": np.round(next_, 6).tolist(),
        "top_ids": best.tolist(),
        "top_logits": np.round(np.take_along_axis(rows, best, 1).astype(float), 6).tolist(),
        "whole": WHOLE,
    }


def main(path: Path, every: Path | None = None) -> None:
    import torch
    import transformers

    tokenizer = open_tokenizer(open_checkpoint(path))
    model = load(path)
    prompt = tokenizer.encode(PROMPT)
    tokens = greedy(model, prompt, COUNT)
    ids = tokenizer.encode(TEXT)[:LENGTH]
    assert len(ids) == LENGTH
    rows = logits(model, ids)
    found = {
        "checkpoint": {"file": path.name, "sha256": file_digest(path)},
        "made_with": {"torch": torch.__version__, "transformers": transformers.__version__},
        "greedy": {
            "prompt": PROMPT,
            "prompt_ids": prompt,
            "ids": tokens,
            "text": tokenizer.decode(tokens),
        },
        "passage": passage(rows, ids, tokenizer.decode(ids)),
    }
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
    (HERE / "smollm2.json").write_text(f"{{\n{lines}\n}}\n")
    np.save(HERE / "smollm2_logits.npy", rows[list(WHOLE)])
    if every is not None:
        np.save(every, rows)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
