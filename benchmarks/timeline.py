"""Where a decode step's time goes, launch by launch, in place: within the graph, overlaps included.

    python benchmarks/timeline.py FILE.cu --weights W [-n 128] [--context P]

Builds an emitted file twice: as it is, and with a clock read behind every launch's dependency wait
(one thread of one block). A launch's time is from its own wait to the next launch's, so that the
times add up to the step. Needs nvcc and a GPU (sm_90a).
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

from runtime import toolchain

RECORD = """
struct WaitRecord { unsigned long long began, waited; };
constexpr int MAX_RECORDS = 1 << 20;
__device__ WaitRecord wait_records[MAX_RECORDS];
__device__ int wait_count;
__device__ __forceinline__ unsigned long long nanoseconds() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t) :: "memory");
    return t;
}
__device__ __forceinline__ void grid_dependency_wait() {
    const bool first = blockIdx.x + blockIdx.y + blockIdx.z + threadIdx.x == 0;
    const unsigned long long began = first ? nanoseconds() : 0;
    asm volatile("griddepcontrol.launch_dependents;\\n\\tgriddepcontrol.wait;" ::: "memory");
    if (first) {
        const int at = atomicAdd(&wait_count, 1);
        if (at < MAX_RECORDS) wait_records[at] = {began, nanoseconds()};
    }
}
"""
WRITE = """
    {
        static WaitRecord records[MAX_RECORDS];
        int count = 0;
        check(cudaMemcpyFromSymbol(&count, wait_count, sizeof count), "records");
        check(cudaMemcpyFromSymbol(records, wait_records, sizeof records), "records");
        FILE* out = fopen("timeline.bin", "wb");
        fwrite(records, sizeof(WaitRecord), size_t(count < MAX_RECORDS ? count : MAX_RECORDS), out);
        fclose(out);
    }
"""
WAIT = re.compile(r"__device__ __forceinline__ void grid_dependency_wait\(\) \{.*?\n\}\n", re.S)


def instrumented(text: str) -> str:
    text, waits = WAIT.subn(lambda _: RECORD, text, 1)
    text, ends = re.subn(r"(void close_session\(Session& s\) \{)", lambda m: m[1] + WRITE, text)
    assert waits == ends == 1, (waits, ends)
    return text


def build(text: str) -> Path:
    return toolchain.build(text, "cuda", ("sm_90a",))


def run(binary: Path, words: list[str], folder: str) -> dict[str, object]:
    """What a binary reports; its timeline.bin, where it writes one, is in the folder."""
    command = [str(binary), *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        sys.exit(f"{command}: {done.returncode} {done.stderr[-500:]}")
    return json.loads(done.stderr.strip().splitlines()[-1])


def launches_of(text: str) -> list[str]:
    """The kernels of a one-row step's launches, loops unrolled, from the body of launch_all."""
    body = re.search(r"void launch_all\(.*?\n\}\n", text, re.S)
    assert body is not None
    names: list[str] = []
    loop: list[str] | None = None
    times, others = 0, False
    for line in body[0].splitlines():
        others = line.endswith("} else {") or (others and line.strip() != "}")
        if others:
            continue
        if found := re.match(r"  for \(int \w+ = (\d+); \w+ < (\d+)", line):
            loop, times = [], int(found[2]) - int(found[1])
        elif line == "  }" and loop is not None:
            names += loop * times
            loop = None
        elif found := re.search(r"\brun\(d, (\w+)", line):
            (names if loop is None else loop).append(found[1])
    return names + loop * times if loop else names


def report(records: np.ndarray, names: list[str]) -> None:
    """Times by kernel: the median over steps of the sum over its launches."""
    count = len(names) + 1  # and advance
    waited = records["waited"].astype(np.int64)
    steps = len(waited) // count
    waited = waited[len(waited) - steps * count :]
    spans = np.diff(waited)[: (steps - 1) * count].reshape(steps - 1, count)[2:]
    times: dict[str, list[float]] = defaultdict(list)
    for name in dict.fromkeys([*names, "advance"]):
        at = [i for i, other in enumerate([*names, "advance"]) if other == name]
        per_step = spans[:, at].sum(axis=1) / 1000
        times[name] = [len(at), median(per_step), median(spans[:, at].mean(axis=1)) / 1000]
    for name, (launches, total, each) in times.items():
        print(f"{name:44} {launches:4.0f} x {each:7.2f} us = {total:8.1f} us")
    print(f"{'step, wait to wait':44} {median(spans.sum(axis=1)) / 1000:26.1f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--context", type=int, default=1, help="tokens of the prompt")
    parser.add_argument("-n", type=int, default=128)
    args = parser.parse_args()
    text = args.file.read_text()
    tokens = ",".join(str(1 + i * 7 % 150) for i in range(args.context))
    words = ["--weights", str(args.weights.resolve()), "--tokens", tokens, "-n", str(args.n)]
    with ThreadPoolExecutor() as pool:
        plain, timed = pool.map(build, (text, instrumented(text)))
    with tempfile.TemporaryDirectory() as folder:
        speeds = [run(plain, words, folder) for _ in range(3)]
        run(timed, words, folder)
        record = np.dtype([("began", "<u8"), ("waited", "<u8")])
        records = np.fromfile(Path(folder) / "timeline.bin", record)
    middle = sorted(float(str(s["decode_tokens_per_second"])) for s in speeds)[1]
    said = f"{middle:.1f} tokens/s, {1e6 / middle:.1f} us a token"
    print(f"{args.file.name}: behind {args.context} tokens, decode {said}")
    report(records, launches_of(text))


if __name__ == "__main__":
    main()
