"""Every figure of decoding at the memory's speed, in parts of under nine minutes of one H200 each.

    python benchmarks/all.py --part decode-small --out benchmarks/results

Each part builds its models by nvcc, all at once, then runs `monocu bench` on synthetic weights of
the real shapes, and writes PART.json (results/schema.json) after every model, so that what was
measured is kept if a later one fails. `python benchmarks/plot.py` then draws what results/ holds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from compiler.api.building import archs_of, build
from compiler.command import bench, bench_table
from compiler.command.job import write_whole
from compiler.command.parser import Parser
from compiler.diagnostics import UserError
from compiler.pipeline import Compiled

RESULTS = Path(__file__).parent / "results"
USUAL = ("-p", "512", "-n", "128", "-r", "3")
DEEP = ("-p", "512", "-n", "128", "-d", "4096,32768", "-r", "2")
PARTS: dict[str, tuple[tuple[str, ...], ...]] = {  # words of `monocu bench --synthetic`, a run each
    "decode-small": (("qwen3-0.6b:q8_0", *USUAL), ("qwen3-1.7b:q8_0", *USUAL)),
    "decode-8b": (("qwen3-8b:q8_0", *USUAL),),
    "moe": (("qwen3-30b-a3b:q8_0", *USUAL),),
    "context": (("qwen3-0.6b:q8_0", *DEEP), ("qwen3-8b:q8_0", *DEEP)),
    "kquants": (("qwen3-8b:q4_k_m", *USUAL), ("qwen3-1.7b:q4_k_m", *USUAL)),
    "bf16": (("llama-3.2-1b:bf16", "-p", "32", "-n", "128", "-r", "5"),),
}


def parsed(words: Sequence[str], target: str) -> argparse.Namespace:
    parser = Parser("monocu bench", bench.DOC)
    bench.arguments(parser)
    return parser.parse(["--synthetic", *words, "--target", target])


def run_part(
    name: str, runs: Sequence[Sequence[str]], out: Path, target: str, commit: str | None = None
) -> dict[str, Any]:
    """The part's document, which is also in out/NAME.json. commit: where the tree does not say."""
    asked = [parsed(words, target) for words in runs]
    found: dict[str, Any] = {"part": name, "runs": [], "failed": []}
    with ThreadPoolExecutor() as pool:  # nothing is timed while compilers run
        building = [pool.submit(built, args) for args in asked]
    for args, ended in zip(asked, building, strict=True):
        try:
            run = bench.measured(args, ended.result())
        except UserError as error:
            found["failed"].append({"command": bench.command(args), "why": str(error)})
            print(f"FAILED {bench.command(args)}: {error}", flush=True)
        else:
            found["runs"].append(run | {"commit": run["commit"] or commit})
            print(bench_table.markdown(found["runs"][-1]), flush=True)
        write_whole(str(out / f"{name}.json"), json.dumps(found, indent=1).encode() + b"\n")
    return found


def built(args: argparse.Namespace) -> Compiled:
    made = bench.compiled(args)
    build(made, archs_of(args.arch))
    return made


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", required=True, choices=PARTS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--only", default="", help="a word of the models' names")
    parser.add_argument("--commit", help="of the tree, where it has no .git")
    args = parser.parse_args()
    start = time.perf_counter()
    args.out.mkdir(parents=True, exist_ok=True)
    runs = [words for words in PARTS[args.part] if args.only in words[0]]
    found = run_part(args.part, runs, args.out, "cuda", args.commit)
    print(f"{args.part}: {time.perf_counter() - start:.0f} s")
    return 1 if found["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
