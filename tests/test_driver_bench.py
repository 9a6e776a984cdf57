"""--bench and --synthetic of a binary, on the toy model."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import driver_toy as toy
import numpy as np
import pytest

from runtime.binary import capture


def test_bench_times_each_test_and_fills_a_depth_once() -> None:
    words = ("--synthetic", 0, "--bench", "pp20,tg4,tg4@30", "--repeat", 1, "--json")
    ran = toy.run("model", *words)
    assert ran.code == 0, ran.err
    lines = [json.loads(line) for line in ran.out.splitlines()]
    names = [("pp20", 20), ("tg4", 4), ("tg4 @ d30", 4)]
    expected = [(name, run, tokens) for name, tokens in names for run in (0, 1)]
    assert [(x["test"], x["run"], x["tokens"]) for x in lines] == expected
    assert all(x["ns"] > 0 for x in lines)
    # Twice 16 and 4 rows; one token, then twice it again and four; 29 more, then as before.
    assert ran.report["steps"] == 2 * 2 + 1 + 2 * 5 + 2 + 2 * 5
    assert ran.report["prefill_steps"] == 2 * 2 + 1 + 2 + 2 + 2
    assert ran.report["prompt_tokens"] == 2 * 20 + 1 + 2 + 29 + 2
    assert ran.report["context"] == 34
    assert ran.report["peak_bytes"] > 0 and ran.report["read_bytes_per_second"] > 0


FULL = {
    "little is free": """
cudaError_t later_little(size_t* room, size_t* all) {
    static int calls = 0;
    *all = size_t(1) << 30;
    *room = calls++ ? *all >> 8 : *all;
    return cudaSuccess;
}
#define cudaMemGetInfo later_little
""",
    "none is given": """
template <class T>
cudaError_t given(T** at, size_t bytes) {
    return sizeof(T) == sizeof(int4) ? cudaErrorMemoryAllocation : cudaMalloc(at, bytes);
}
#define cudaMalloc given
""",
}


@pytest.mark.parametrize("scarce", FULL)
def test_a_full_memory_costs_the_rate_of_reads_and_no_sample(scarce: str) -> None:
    words = ("--synthetic", "0", "--bench", "tg4", "--repeat", "1", "--json")
    ran = capture(toy.binary("model", scarce=FULL[scarce]), words)
    assert len(ran.out.splitlines()) == 2
    assert "read_bytes_per_second" not in ran.report()


def test_the_host_s_peak_is_the_process_s_own() -> None:
    words = ("--synthetic", "0", "--tokens", "1", "-n", "1", "--json")
    process = subprocess.Popen(
        [toy.binary("model"), *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr
    report = json.loads(process.stderr.read().splitlines()[-1])
    process.stderr.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    assert 0 < report["peak_bytes"] <= used.ru_maxrss << 10


def test_synthetic_weights_are_their_seed_s(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.npy", "again.npy", "b.npy")]
    for seed, path in zip((0, 0, 1), files, strict=True):
        words = ("--tokens", "1,2,3", "-n", 3, "--logits", "all", "--logits-file", path)
        assert toy.run("model", "--synthetic", seed, *words).code == 0
    a, again, b = map(np.load, files)
    assert a.shape == (5, toy.VOCAB) and (a == again).all() and (a != b).any()
