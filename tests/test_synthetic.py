"""Synthetic checkpoints: what they hold is what was asked for, by our reader and by gguf-py's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader

from compiler.diagnostics import UserError
from compiler.formats import FORMATS
from runtime.gguf import Checkpoint, open_checkpoint
from runtime.synthetic import PRESETS, cut, write_synthetic

TINY = [name for name in PRESETS if name.startswith("tiny")]


def sized(presets: list[str]) -> list[tuple[str, str]]:
    """Each preset with each type; K-quants need rows of 256."""
    return [
        (name.replace("tiny", "small") if fmt.block == 256 else name, kind)
        for name in presets
        for kind, fmt in FORMATS.items()
    ]


def made(folder: Path, *args: str, name: str = "m", **options: object) -> Checkpoint:
    return open_checkpoint(write_synthetic(folder / f"{name}.gguf", *args, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(("preset", "kind"), sized(TINY))
def test_every_preset_in_every_type(tmp_path: Path, preset: str, kind: str) -> None:
    checkpoint, dims = made(tmp_path, preset, kind), PRESETS[preset]
    assert checkpoint.architecture == dims.architecture
    assert checkpoint.meta[f"{dims.architecture}.block_count"] == dims.layers
    assert checkpoint.weight("blk.0.attn_q.weight").format.name == kind
    assert checkpoint.weight("blk.1.attn_norm.weight").format.name == "f32"
    assert ("output.weight" in checkpoint.tensors) != dims.tied
    assert [t.name for t in GGUFReader(checkpoint.path).tensors] == list(checkpoint.tensors)


@pytest.mark.parametrize(("preset", "kind"), sized(["tiny-llama"]))
def test_outputs_keep_the_size_of_inputs(tmp_path: Path, preset: str, kind: str) -> None:
    checkpoint = made(tmp_path, preset, kind)
    x = np.random.default_rng(0).standard_normal((PRESETS[preset].hidden, 200))
    for name in ("blk.0.ffn_up.weight", "blk.0.ffn_gate.weight", "blk.1.attn_q.weight"):
        values = checkpoint.weight(name).values()
        assert np.isfinite(values).all() and len(np.unique(values)) > 100
        assert 0.8 < np.std(values @ x) < 1.25, name
    assert 2.4 < np.std(checkpoint.weight("token_embd.weight").values() @ x) < 3.6


def test_experts(tmp_path: Path) -> None:
    checkpoint = made(tmp_path, "tiny-qwen3moe", "q4_1")
    assert checkpoint.weight("blk.0.ffn_gate_inp.weight").format.name == "f32"
    assert checkpoint.weight("blk.0.ffn_up_exps.weight").shape == (8, 32, 64)
    assert checkpoint.weight("blk.0.ffn_down_exps.weight").shape == (8, 64, 32)
    assert checkpoint.meta["qwen3moe.expert_used_count"] == 2


def test_four_bit_models_have_a_head_of_eight(tmp_path: Path) -> None:
    assert made(tmp_path, "tiny-qwen3", "q4_0").weight("output.weight").format.name == "q8_0"
    other = made(tmp_path, "tiny-qwen3", "q4_0", name="other", head_type="f16")
    assert other.weight("token_embd.weight").format.name == "f16"


def test_a_mixture_has_llama_cpps_layers_of_more_bits(tmp_path: Path) -> None:
    checkpoint = made(tmp_path, "small-qwen3", "q4_k_m", layers=28)
    kinds = {name: info.format.name for name, info in checkpoint.tensors.items()}  # type: ignore[union-attr]
    for name in ("attn_v", "ffn_down"):
        more = [i for i in range(28) if kinds[f"blk.{i}.{name}.weight"] == "q6_k"]
        assert more == [0, 1, 2, 5, 8, 11, 14, 17, 20, 23, 24, 25, 26, 27]
        assert kinds[f"blk.3.{name}.weight"] == "q4_k"
    assert kinds["blk.0.attn_q.weight"] == "q4_k"
    assert kinds["output.weight"] == kinds["token_embd.weight"] == "q6_k"


def test_fewer_layers_are_a_prefix_and_seeds_differ(tmp_path: Path) -> None:
    one = made(tmp_path, "tiny-qwen3", "q8_0", name="one", layers=1)
    two = made(tmp_path, "tiny-qwen3", "q8_0", name="two")
    other = made(tmp_path, "tiny-qwen3", "q8_0", name="other", seed=1)
    assert set(one.tensors) < set(two.tensors)
    for name in one.tensors:
        assert (one.weight(name).data == two.weight(name).data).all()
        assert (one.weight(name).data != other.weight(name).data).any()


def test_a_dict_of_sizes(tmp_path: Path) -> None:
    sizes = {"architecture": "llama", "layers": 1, "hidden": 32, "ffn": 64, "heads": 1}
    sizes |= {"kv_heads": 1, "head_dim": 32, "vocab": 40}
    path = write_synthetic(tmp_path / "m.gguf", sizes, "f16")
    assert open_checkpoint(path).tensors["token_embd.weight"].shape == (40, 32)


def test_refuses_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a preset of smollm2, .* is needed, gpt5 was given"):
        write_synthetic(tmp_path / "m.gguf", "gpt5")
    with pytest.raises(UserError, match=r"a weight type of f32, .* is needed, q9 was given"):
        write_synthetic(tmp_path / "m.gguf", "tiny-llama", "q9")
    ragged = {"architecture": "llama", "layers": 1, "hidden": 48, "ffn": 64, "heads": 1}
    ragged |= {"kv_heads": 1, "head_dim": 32, "vocab": 40}
    with pytest.raises(UserError, match="rows of whole blocks of 32 are needed for q8_0"):
        write_synthetic(tmp_path / "m.gguf", ragged, "q8_0")


def test_cut_keeps_bytes_and_drops_layers(tmp_path: Path) -> None:
    whole = made(tmp_path, "tiny-qwen3", "q4_1", name="whole")
    part = open_checkpoint(cut(whole.path, tmp_path / "part.gguf", 1))
    assert set(part.tensors) == {name for name in whole.tensors if "blk.1." not in name}
    for name in part.tensors:
        assert (part.weight(name).data == whole.weight(name).data).all()
    assert part.meta == whole.meta | {"qwen3.block_count": 1}
    with pytest.raises(UserError, match="1 to 2 layers are needed, 3 were given"):
        cut(whole.path, tmp_path / "more.gguf", 3)
