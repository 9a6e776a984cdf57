"""Checkpoints with random weights, for benchmarks and tests; real ones cut to their first layers.

Needs the package gguf, which monocu itself does not depend on. Names and metadata are llama.cpp's;
there is no vocabulary. As a tool: `python -m runtime.synthetic PRESET TYPE PATH [--layers N]`.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from compiler.diagnostics import UserError
from compiler.formats import FORMATS, Format
from runtime.gguf import Checkpoint, Unsupported, open_checkpoint
from runtime.gguf_header import MetaValue
from runtime.gguf_writer import write_gguf
from runtime.random_weights import Tensor, random_bytes

LOGIT_SPREAD = 3.0  # standard deviation of the logits of a normed activation


@dataclass(frozen=True, slots=True)
class Dims:
    """The sizes of a model; `experts` 0: a dense feed-forward layer of `ffn`."""

    architecture: str  # llama, qwen3 or qwen3moe
    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    context: int = 40960
    theta: float = 1e6
    eps: float = 1e-6
    tied: bool = False
    experts: int = 0
    picks: int = 0
    expert_ffn: int = 0
    divided: bool = False  # rope_freqs.weight: a divisor for each frequency (Llama 3.1 and later)


PRESETS = {
    "smollm2": Dims("llama", 30, 576, 1536, 9, 3, 64, 49152, 8192, 1e5, 1e-5, tied=True),
    "llama-3.2-1b": Dims(
        "llama", 16, 2048, 8192, 32, 8, 64, 128256, 131072, 5e5, 1e-5, tied=True, divided=True
    ),
    "qwen3-0.6b": Dims("qwen3", 28, 1024, 3072, 16, 8, 128, 151936, tied=True),
    "qwen3-1.7b": Dims("qwen3", 28, 2048, 6144, 16, 8, 128, 151936, tied=True),
    "qwen3-8b": Dims("qwen3", 36, 4096, 12288, 32, 8, 128, 151936),
    "qwen3-30b-a3b": Dims(
        "qwen3moe", 48, 2048, 6144, 32, 4, 128, 151936, experts=128, picks=8, expert_ffn=768
    ),
    "tiny-llama": Dims("llama", 2, 64, 96, 4, 2, 16, 160, 256, 1e4, 1e-5, tied=True),
    "tiny-qwen3": Dims("qwen3", 2, 64, 96, 4, 2, 32, 160, 256),
    "tiny-qwen3moe": Dims(
        "qwen3moe", 2, 64, 96, 4, 2, 32, 160, 256, experts=8, picks=2, expert_ffn=32
    ),
    # the least sizes that K-quants can have
    "small-llama": Dims("llama", 8, 256, 768, 4, 2, 64, 160, 256, 1e4, 1e-5, tied=True),
    "small-qwen3": Dims("qwen3", 8, 256, 512, 4, 2, 64, 160, 256),
    "small-qwen3moe": Dims(
        "qwen3moe", 8, 256, 512, 4, 2, 64, 160, 256, experts=8, picks=2, expert_ffn=256
    ),
}
MIXTURES = {"q4_k_m": "q4_k", "q5_k_m": "q5_k"}  # with some tensors and the head in q6_k


def write_synthetic(
    path: str | Path,
    preset: str | Dims | Mapping[str, int | float | str | bool],
    weight_type: str = "q8_0",
    *,
    head_type: str | None = None,
    layers: int | None = None,
    seed: int = 0,
) -> Path:
    """Write a checkpoint: matrices of `weight_type` (a name of compiler.formats), norms in f32.

    `head_type` is token_embd's and output's; by default q8_0 where matrices have 4 bits, q6_k where
    those are K-quants. A type of MIXTURES gives attn_v and ffn_down of some layers q6_k. A tensor's
    bytes depend on seed, name, shape and type only, so that fewer layers are a prefix of more,
    mixtures aside.
    """
    plan = plan_of(preset, weight_type, head_type=head_type, layers=layers)
    content = lambda t: random_bytes(t, _generator(t, seed))  # noqa: E731
    write_gguf(Path(path), plan.meta, plan.tensors, content)
    return Path(path)


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    """A checkpoint's metadata, and its tensors in the file's order."""

    meta: dict[str, MetaValue]
    tensors: tuple[Tensor, ...]


def plan_of(
    preset: str | Dims | Mapping[str, int | float | str | bool],
    weight_type: str,
    *,
    head_type: str | None = None,
    layers: int | None = None,
) -> CheckpointPlan:
    """What `write_synthetic` writes, without the bytes. UserError: what there is."""
    dims = _dims(preset, layers)
    mixed = weight_type.lower() in MIXTURES
    matrix = _format(MIXTURES.get(weight_type.lower(), weight_type))
    more = FORMATS["q6_k" if matrix.scales is not None else "q8_0"]
    head = _format(head_type) if head_type else more if mixed or matrix.bits == 4 else matrix
    types = [_has_more_bits(i, dims.layers) and mixed for i in range(dims.layers)]
    of = [Types(matrix, more if m else matrix) for m in types]
    return CheckpointPlan(_metadata(dims), tuple(_tensors(dims, head, of)))


def cut(
    source: str | Path,
    path: str | Path,
    layers: int,
    *,
    vocabulary: bool = True,
    meta: Mapping[str, MetaValue] | None = None,
) -> Path:
    """Write the first `layers` layers of a checkpoint, without its vocabulary where that is False.

    `meta` replaces keys. Raises UserError where a tensor has a type that monocu does not know.
    """
    checkpoint = open_checkpoint(source)
    have = checkpoint.meta.get(f"{checkpoint.architecture}.block_count")
    if not isinstance(have, int) or not 1 <= layers <= have:
        raise UserError(f"{source}: 1 to {have} layers are needed, {layers} were given")
    kept = {
        k: v for k, v in checkpoint.meta.items() if vocabulary or not k.startswith("tokenizer.")
    }
    if not vocabulary:
        kept["tokenizer.ggml.model"] = "none"
    kept |= {f"{checkpoint.architecture}.block_count": layers, **(meta or {})}
    plan = [_copied(checkpoint, name) for name in checkpoint.tensors if _layer(name) < layers]
    write_gguf(Path(path), kept, plan, lambda t: iter([checkpoint.weight(t.name).data]))
    return Path(path)


def _dims(preset: str | Dims | Mapping[str, int | float | str | bool], layers: int | None) -> Dims:
    if isinstance(preset, str):
        if preset not in PRESETS:
            raise UserError(f"a preset of {', '.join(PRESETS)} is needed, {preset} was given")
        preset = PRESETS[preset]
    dims = preset if isinstance(preset, Dims) else Dims(**preset)  # type: ignore[arg-type]
    return dims if layers is None else replace(dims, layers=layers)


def _format(name: str) -> Format:
    if name.lower() not in FORMATS:
        raise UserError(f"a weight type of {', '.join(FORMATS)} is needed, {name} was given")
    return FORMATS[name.lower()]


def _metadata(dims: Dims) -> dict[str, MetaValue]:
    arch = dims.architecture
    meta: dict[str, MetaValue] = {
        "general.architecture": arch,
        "general.name": f"synthetic {arch}",
        f"{arch}.block_count": dims.layers,
        f"{arch}.context_length": dims.context,
        f"{arch}.embedding_length": dims.hidden,
        f"{arch}.feed_forward_length": dims.ffn,
        f"{arch}.attention.head_count": dims.heads,
        f"{arch}.attention.head_count_kv": dims.kv_heads,
        f"{arch}.attention.key_length": dims.head_dim,
        f"{arch}.attention.value_length": dims.head_dim,
        f"{arch}.attention.layer_norm_rms_epsilon": dims.eps,
        f"{arch}.rope.freq_base": dims.theta,
        f"{arch}.rope.dimension_count": dims.head_dim,
        f"{arch}.vocab_size": dims.vocab,
        "tokenizer.ggml.model": "none",
    }
    if dims.experts:
        meta |= {
            f"{arch}.expert_count": dims.experts,
            f"{arch}.expert_used_count": dims.picks,
            f"{arch}.expert_feed_forward_length": dims.expert_ffn,
        }
    return meta


@dataclass(frozen=True, slots=True)
class Types:
    """The formats of a layer's matrices; `more`: of attn_v and ffn_down."""

    matrix: Format
    more: Format


def _has_more_bits(layer: int, layers: int) -> bool:
    """Which layers llama.cpp gives more bits in its mixtures (`use_more_bits`)."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def _tensors(dims: Dims, head: Format, types: Sequence[Types]) -> Iterator[Tensor]:
    """In llama.cpp's order: the embedding, the layers, the head."""
    d = dims.hidden
    yield _matrix("token_embd", (dims.vocab, d), head, LOGIT_SPREAD)
    for layer, of in enumerate(types):
        block = f"blk.{layer}."
        yield _norm(block + "attn_norm", d)
        yield from _attention(block, dims, of)
        yield _norm(block + "ffn_norm", d)
        yield from _experts(block, dims, of) if dims.experts else _mlp(block, dims, of)
    yield _norm("output_norm", d)
    if dims.divided:
        yield _norm("rope_freqs", dims.head_dim // 2)
    if not dims.tied:
        yield _matrix("output", (dims.vocab, d), head, LOGIT_SPREAD)


def _attention(block: str, dims: Dims, of: Types) -> Iterator[Tensor]:
    q, kv = dims.heads * dims.head_dim, dims.kv_heads * dims.head_dim
    yield _matrix(block + "attn_q", (q, dims.hidden), of.matrix)
    yield _matrix(block + "attn_k", (kv, dims.hidden), of.matrix)
    yield _matrix(block + "attn_v", (kv, dims.hidden), of.more)
    yield _matrix(block + "attn_output", (dims.hidden, q), of.matrix)
    if dims.architecture != "llama":
        yield _norm(block + "attn_q_norm", dims.head_dim)
        yield _norm(block + "attn_k_norm", dims.head_dim)


def _mlp(block: str, dims: Dims, of: Types) -> Iterator[Tensor]:
    yield _matrix(block + "ffn_gate", (dims.ffn, dims.hidden), of.matrix)
    yield _matrix(block + "ffn_up", (dims.ffn, dims.hidden), of.matrix)
    yield _matrix(block + "ffn_down", (dims.hidden, dims.ffn), of.more)


def _experts(block: str, dims: Dims, of: Types) -> Iterator[Tensor]:
    each = (dims.experts, dims.expert_ffn, dims.hidden)
    yield _matrix(block + "ffn_gate_inp", (dims.experts, dims.hidden), FORMATS["f32"])
    yield _matrix(block + "ffn_gate_exps", each, of.matrix)
    yield _matrix(block + "ffn_up_exps", each, of.matrix)
    yield _matrix(block + "ffn_down_exps", (each[0], each[2], each[1]), of.more)


def _matrix(name: str, shape: tuple[int, ...], fmt: Format, gain: float = 1.0) -> Tensor:
    """Outputs of about +- gain for inputs of about +- 1."""
    if shape[-1] % fmt.block:
        needs = f"{name}: rows of whole blocks of {fmt.block} are needed for {fmt.name}"
        raise UserError(f"{needs}, rows of {shape[-1]} were given")
    return Tensor(f"{name}.weight", shape, fmt, gain / math.sqrt(shape[-1]))


def _norm(name: str, length: int) -> Tensor:
    return Tensor(f"{name}.weight", (length,), FORMATS["f32"], spread=0.1, mean=1.0)


def _copied(checkpoint: Checkpoint, name: str) -> Tensor:
    info = checkpoint.tensors[name]
    if isinstance(info.format, Unsupported):
        checkpoint.weight(name)  # refuses it
        raise AssertionError(name)
    return Tensor(name, info.shape, info.format, spread=0.0)


def _layer(name: str) -> int:
    """The N of blk.N.*, -1 outside the layers."""
    parts = name.split(".")
    return int(parts[1]) if parts[0] == "blk" and parts[1].isdecimal() else -1


def _generator(tensor: Tensor, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(tensor.name.encode())])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m runtime.synthetic", description=__doc__)
    parser.add_argument("preset", choices=PRESETS)
    parser.add_argument("type", choices=(*FORMATS, *MIXTURES))
    parser.add_argument("path", type=Path)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    write_synthetic(args.path, args.preset, args.type, layers=args.layers, seed=args.seed)


if __name__ == "__main__":
    main()
