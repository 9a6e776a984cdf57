"""benchmarks/plot.py: which figures it takes, and that it draws where matplotlib is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.plot import Point, draw, ours, peers


def run(model: str, target: str = "cuda", share: float = 0.7) -> dict[str, Any]:
    tests = [
        {"n_gen": 0, "n_depth": 0, "bytes_per_token": None, "bandwidth_share": None},
        {"n_gen": 128, "n_depth": 0, "bytes_per_token": 8_100_000_000, "bandwidth_share": share},
        {"n_gen": 128, "n_depth": 4096, "bytes_per_token": 9_000_000_000, "bandwidth_share": 0.6},
    ]
    return {"model": model, "target": target, "device": "NVIDIA H200", "tests": tests}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schema.json").write_text("{}")
    for name, runs in (
        ("a", [run("qwen3-8b-q8_0"), run("tiny-q8_0", "host")]),
        ("b", [run("qwen3-8b-q8_0", share=0.8), run("qwen3-8b-q4_k_m")]),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps({"runs": runs}))
    return tmp_path


def test_ours_are_decode_figures_of_gpus_the_last_of_each(folder: Path) -> None:
    assert ours(folder) == (
        Point("monocu q8_0 on H200", "qwen3-8b", 8.1, 0.8, True),
        Point("monocu q4_k_m on H200", "qwen3-8b", 8.1, 0.7, True),
    )


def test_peers_name_their_sources_and_are_no_faster_than_memory() -> None:
    kept = json.loads((Path(__file__).parents[1] / "benchmarks/peers.json").read_text())
    assert len(peers()) == len(kept) >= 10
    rates = {"H200": 4800, "H100": 3350, "RTX 4090": 1008, "RTX 5090": 1792, "RTX 3090": 936}
    rates["A100"] = 2039
    for entry in kept:
        assert entry["source"] and 0 < entry["share"] < 1
        moved = entry["gb_per_token"] * entry["tokens_per_second"] / rates[entry["device"]]
        assert moved == pytest.approx(entry["share"], abs=0.1), entry


def test_it_draws(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `bench` is not installed")
    png, svg = draw(ours(folder), peers(), tmp_path / "plot")
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert "<svg" in svg.read_text()
