"""One run on a GPU machine: models built for GPU and host, logits held together, times, profiles.

    python benchmarks/gpu.py --out DIR [--cases NAMES] [--skip equal,time,sanitize,profile]

Checkpoints are synthetic, of real shapes, made on the spot; equality comes before any time. Needs
nvcc, g++ and a GPU; prints a line a measurement and writes results.json.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

from compiler import pipeline
from compiler.target import CUDA, Options
from runtime import toolchain
from runtime.synthetic import write_synthetic


@dataclass(frozen=True)
class Case:
    """A model to run: a preset of runtime.synthetic or a file, its type, numerics, rows."""

    preset: str
    type: str
    numerics: str
    layers: int | None = None
    rows: int = 256
    weights: str = ""

    @property
    def name(self) -> str:
        cut = f"-{self.layers}l" if self.layers else ""
        return f"{self.preset}{cut}-{self.type}-{self.numerics}"


CASES = (
    Case("tiny-llama", "q4_0", "int8x2", rows=64),
    Case("tiny-qwen3moe", "q8_0", "int8", rows=64),
    Case("smollm2", "q4_1", "int8"),
    Case("smollm2", "q4_1", "f32"),
    Case("smollm2", "q4_1", "int8x2"),
    Case("qwen3-0.6b", "q8_0", "int8", rows=512),
    *(Case("qwen3-0.6b", "q8_0", n, layers=3, rows=64) for n in ("int8", "f32", "int8x2")),
    *(Case("tiny-qwen3moe", "q4_1", n, rows=64) for n in ("f32", "int8x2")),
    Case("qwen3-0.6b", "bf16", "f32", layers=3, rows=64),
    Case("small-llama", "q4_k_m", "int8", rows=64),
    Case("small-qwen3moe", "q5_k_m", "int8x2", rows=64),
    *(Case("qwen3-0.6b", "q4_k_m", n, layers=3, rows=64) for n in ("int8", "f32")),
    Case("qwen3-1.7b", "q8_0", "int8", rows=512),
    Case("qwen3-8b", "q8_0", "int8", rows=512),
    Case("qwen3-30b-a3b", "q8_0", "int8", layers=4, rows=64),
)


def checkpoint(case: Case, folder: Path) -> Path:
    if case.weights:
        return Path(case.weights)
    path = folder / f"{case.preset}-{case.type}-{case.layers}.gguf"
    if not path.exists():
        write_synthetic(path, case.preset, case.type, layers=case.layers)
    return path


def build(
    case: Case, weights: Path, hold: tuple[str, ...] = (), host: bool = True
) -> tuple[Path, Path | None, str]:
    options = Options(numerics=case.numerics, max_rows=case.rows, hold=hold)
    start = time.perf_counter()
    compiled = pipeline.compile_model(pipeline.load(None, weights), options, CUDA)
    python = time.perf_counter() - start
    start = time.perf_counter()
    gpu = toolchain.build(compiled.text, target="cuda", archs=("sm_90a",))
    nvcc = time.perf_counter() - start
    start = time.perf_counter()
    cpu = toolchain.build(compiled.text, target="host") if host else None
    cxx = time.perf_counter() - start
    plan = compiled.plan
    layers = max((loop.period for loop in plan.loops), default=0)
    lines = compiled.text.count("\n")
    said = (
        f"python {python:.1f} s, nvcc {nvcc:.1f} s, g++ {cxx:.1f} s, {lines} lines, "
        f"{len(plan.launches)} launches ({layers} a layer)"
    )
    return gpu, cpu, said


def run(binary: Path, weights: Path, *words: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(binary), "--weights", str(weights), *map(str, words)], capture_output=True, text=True
    )
    if done.returncode:
        print(f"FAILED {binary} {words}: {done.returncode} {done.stderr[-800:]}", flush=True)
    return done


def tokens(case: Case, count: int, seed: int = 1) -> str:
    rng = random.Random(seed)
    return ",".join(
        str(rng.randrange(160 if "tiny" in case.preset else 49000)) for _ in range(count)
    )


def differing(a: Path, b: Path) -> tuple[int, int]:
    x, y = np.load(a).view(np.uint32), np.load(b).view(np.uint32)
    return (int((x != y).sum()) if x.shape == y.shape else -1), x.size


def equal(case: Case, gpu: Path, cpu: Path, weights: Path, work: Path) -> None:
    """GPU = host: one chunk, sevens, token by token, without graphs, beside other sequences."""
    prompt = tokens(case, 40)
    want, got = work / "host.npy", work / "gpu.npy"
    common = ["-n", 6, "--logits", "all", "--logits-file"]
    if run(cpu, weights, "--tokens", prompt, *common, want).returncode:
        return
    for extra in ([], ["--chunk", 7], ["--chunk", 1], ["--no-graph"]):
        if run(gpu, weights, "--tokens", prompt, *common, got, *extra).returncode:
            return
        print(f"equal {case.name} {extra}: {differing(want, got)}", flush=True)
    lists = work / "seqs.txt"
    lists.write_text("\n".join(tokens(case, n, n) for n in (40, 3, 17, 90)) + "\n")
    run(cpu, weights, "--seqs", lists, *common, want)
    run(gpu, weights, "--seqs", lists, *common, got)
    print(f"equal {case.name} four sequences: {differing(want, got)}", flush=True)


LENGTHS = (1, 7, 40, 120, 300)  # of prompts


def matrix(case: Case, gpu: Path, cpu: Path, weights: Path, work: Path) -> None:
    """GPU = host for prompts of many lengths."""
    want, got = work / "host.npy", work / "gpu.npy"
    for length in LENGTHS:
        words = ["--tokens", tokens(case, length, length), "-n", 4, "--logits-file"]
        if run(cpu, weights, *words, want).returncode or run(gpu, weights, *words, got).returncode:
            return
        print(f"equal {case.name} prompt of {length}: {differing(want, got)}", flush=True)


def speed(case: Case, gpu: Path, weights: Path, n: int = 128) -> dict[str, object]:
    keys = (
        "prefill_tokens_per_second",
        "decode_tokens_per_second",
        "load_seconds",
        "capture_seconds",
    )
    runs = []
    for k in range(3):
        done = run(gpu, weights, "--tokens", tokens(case, 512, k), "-n", n, "--json")
        if done.returncode:
            return {}
        runs.append(json.loads(done.stderr.strip().splitlines()[-1]))
    middle = {key: sorted(r[key] for r in runs)[1] for key in keys}
    short = run(gpu, weights, "--tokens", tokens(case, 1), "-n", n, "--json")
    middle["tg128"] = json.loads(short.stderr.strip().splitlines()[-1])["decode_tokens_per_second"]
    print(f"speed {case.name}: {json.dumps(middle)}", flush=True)
    return middle


def profile(case: Case, gpu: Path, weights: Path) -> None:
    """Time of each kernel alone (ncu), summed over one decode step."""
    command = ["ncu", "--clock-control", "none", "--csv", "--launch-skip", "1200"]
    command += ["--launch-count", "460", "--metrics"]
    command += ["gpu__time_duration.sum,dram__bytes_read.sum", str(gpu)]
    command += ["--weights", str(weights), "--tokens", "1,2,3", "-n", "6", "--no-graph"]
    done = subprocess.run(command, capture_output=True, text=True)
    rows = list(csv.DictReader(line for line in done.stdout.splitlines() if line.startswith('"')))
    table: dict[str, list[float]] = {}
    for row in rows:
        value = float(row["Metric Value"].replace(",", ""))
        entry = table.setdefault(row["Kernel Name"].split("(")[0][:70], [0, 0.0, 0.0])
        if "time" in row["Metric Name"]:
            entry[0] += 1
            entry[1] += value / (1000 if row["Metric Unit"] in ("ns", "nsecond") else 1)
        else:
            scale = {"byte": 1e-6, "Kbyte": 1e-3, "Mbyte": 1, "Gbyte": 1e3}[row["Metric Unit"]]
            entry[2] += value * scale
    for name, (count, us, mb) in sorted(table.items(), key=lambda kv: -kv[1][1]):
        print(
            f"profile {case.name} {name}: {count:.0f} x {us / max(count, 1):.2f} us, "
            f"{mb / max(count, 1):.2f} MB"
        )
    if not rows:
        print("profile: nothing", done.stderr[-300:], done.stdout[-300:])


def sanitize(case: Case, gpu: Path, weights: Path) -> None:
    for tool in ("memcheck", "racecheck", "synccheck", "initcheck"):
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", str(gpu)]
        command += ["--weights", str(weights), "--tokens", tokens(case, 9), "-n", "4"]
        done = subprocess.run([*command, "--no-graph"], capture_output=True, text=True)
        summary = [line for line in (done.stdout + done.stderr).splitlines() if "SUMMARY" in line]
        print(f"sanitize {case.name} {tool}: exit {done.returncode} {summary}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "monocu-gpu")
    parser.add_argument(
        "--cases", default="", help="words of case names, comma separated; empty: all"
    )
    parser.add_argument("--skip", default="")
    parser.add_argument("--weights", default="", help="a SmolLM2 checkpoint: adds its cases")
    parser.add_argument("--profile", default="qwen3-0.6b-q8_0-int8")
    parser.add_argument("--hold", default="")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    skip = args.skip.split(",")
    real = [Case("smollm2", "real", n, weights=args.weights) for n in ("int8", "f32", "int8x2")]
    known = (*CASES, *(real if args.weights else ()))
    cases = [c for c in known if not args.cases or any(w in c.name for w in args.cases.split(","))]
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda c: checkpoint(c, args.work), cases))
    hold = tuple(filter(None, args.hold.split(",")))
    with ThreadPoolExecutor(8) as pool:
        built = list(
            pool.map(
                lambda pair: build(*pair, hold, "equal" not in skip), zip(cases, paths, strict=True)
            )
        )
    results = {}
    for case, weights, (gpu, cpu, said) in zip(cases, paths, built, strict=True):
        print(f"build {case.name}: {said}", flush=True)
        if "equal" not in skip and cpu and "8b" not in case.name and "1.7b" not in case.name:
            equal(case, gpu, cpu, weights, args.work)
            matrix(case, gpu, cpu, weights, args.work)
        if "time" not in skip and "tiny" not in case.name and case.layers is None:
            results[case.name] = speed(case, gpu, weights)
        if "profile" not in skip and case.name == args.profile:
            profile(case, gpu, weights)
        if "sanitize" not in skip and "tiny" in case.name:
            sanitize(case, gpu, weights)
    (args.out / "results.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
