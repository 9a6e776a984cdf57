"""What checkpoints of the example families tell elaboration, at any size, without a file."""

from __future__ import annotations

from dataclasses import replace

from compiler.program import Metadata, MetaValue
from compiler.types import Type
from runtime.synthetic import PRESETS, Dims


def metadata(preset: str, layers: int = 0, drop: str = "", **more: Type) -> Metadata:
    """Of a preset of runtime.synthetic, with `more` tensors (`a__b` is a.b) or without `drop`."""
    dims = replace(PRESETS[preset], layers=layers or PRESETS[preset].layers)
    tensors: dict[str, Type | str] = dict(_tensors(dims))
    tensors |= {name.replace("__", "."): kind for name, kind in more.items()}
    tensors.pop(drop, None)
    return Metadata(f"{preset}.gguf", _meta(dims), tensors)


def _meta(d: Dims) -> dict[str, MetaValue]:
    a = d.architecture
    return {
        "general.architecture": a,
        f"{a}.block_count": d.layers,
        f"{a}.context_length": d.context,
        f"{a}.embedding_length": d.hidden,
        f"{a}.feed_forward_length": d.ffn,
        f"{a}.attention.head_count": d.heads,
        f"{a}.attention.head_count_kv": d.kv_heads,
        f"{a}.attention.key_length": d.head_dim,
        f"{a}.attention.layer_norm_rms_epsilon": d.eps,
        f"{a}.rope.freq_base": d.theta,
        f"{a}.expert_count": d.experts,
        f"{a}.expert_used_count": d.picks,
        f"{a}.expert_feed_forward_length": d.expert_ffn,
    }


def _tensors(d: Dims) -> dict[str, Type]:
    q, kv, out = d.heads * d.head_dim, d.kv_heads * d.head_dim, {}
    shapes: dict[str, tuple[int, ...]] = {
        "attn_norm": (d.hidden,), "ffn_norm": (d.hidden,), "attn_output": (d.hidden, q),
        "attn_q": (q, d.hidden), "attn_k": (kv, d.hidden), "attn_v": (kv, d.hidden),
    }  # fmt: skip
    if d.architecture != "llama":
        shapes |= {"attn_q_norm": (d.head_dim,), "attn_k_norm": (d.head_dim,)}
    if d.experts:
        e, f = d.experts, d.expert_ffn
        shapes |= {
            "ffn_gate_inp": (e, d.hidden), "ffn_gate_exps": (e, f, d.hidden),
            "ffn_up_exps": (e, f, d.hidden), "ffn_down_exps": (e, d.hidden, f),
        }  # fmt: skip
    else:
        shapes |= {n: (d.ffn, d.hidden) for n in ("ffn_gate", "ffn_up")}
        shapes["ffn_down"] = (d.hidden, d.ffn)
    for layer in range(d.layers):
        for name, shape in shapes.items():
            kind = "f32" if len(shape) == 1 or name == "ffn_gate_inp" else "q8_0"
            out[f"blk.{layer}.{name}.weight"] = Type(kind, shape)
    out |= {"token_embd.weight": Type("q8_0", (d.vocab, d.hidden))}
    out |= {"output_norm.weight": Type("f32", (d.hidden,))}
    return out if d.tied else out | {"output.weight": Type("q8_0", (d.vocab, d.hidden))}
