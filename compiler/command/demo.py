"""monocu demo: from nothing to text, and every bit of it checked."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from compiler.command.parser import TARGETS
from compiler.target import NUMERICS

DOC = """Fetches SmolLM2-135M-Instruct, compiles examples/llama.model with it, builds the result
(for the GPU if there is one and nvcc, else for the host), generates 48 tokens, and holds every
value of the prompt's pass against the reference VM."""

PROMPT, COUNT = "Gravity is", 48


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", choices=TARGETS, default="auto", help="host, cuda or auto")
    parser.add_argument("--prompt", metavar="TEXT", default=PROMPT, help=f'("{PROMPT}")')
    parser.add_argument("--numerics", choices=NUMERICS, default="int8", help="(int8)")
    parser.add_argument("--weights", metavar="FILE", help="another checkpoint")


def run(args: argparse.Namespace) -> int:
    from compiler import api, pipeline
    from compiler.api.comparing import compare
    from compiler.command import job, show
    from compiler.command.fetch import fetched
    from compiler.diagnostics import DIFFERENCES

    seconds: dict[str, float] = {}
    weights = job.stored(args.weights)
    if weights is None:
        show.remark("fetching SmolLM2-135M-Instruct (98 MB, once)")
        with pipeline.timed(seconds, "fetch"):
            weights = fetched("smollm2")
    with show.progress("compiling"), pipeline.timed(seconds, "compile"):
        model = pipeline.load(None, weights)
        made = api.compile(model, numerics=args.numerics, target=args.target)
    lines = made.text.count("\n")
    show.remark(f"compiled {made.program.name}.model: one .cu of {lines} lines, {made.target.name}")
    with show.progress(f"building for {made.target.name}"), pipeline.timed(seconds, "build"):
        binary = api.build(made)
    show.remark(f"built {binary}")
    tokenizer = job.tokenizer_of(model)
    ids = job.ids_of(tokenizer, args.prompt)
    print(args.prompt, end="", flush=True)
    with pipeline.timed(seconds, "generate"):
        report = generate(binary, weights, ids)
    with show.progress("comparing with the VM"), pipeline.timed(seconds, "diff"):
        found = compare(made, {}, [ids], 2)
    print(found.report)
    if found.line:
        print(f"  {found.line}")
    took = ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items())
    rates = ", ".join(
        f"{kind} {report[f'{kind}_tokens_per_second']:.1f} tokens/s"
        for kind in ("prefill", "decode")
    )
    print(f"{took}; {rates}")
    return DIFFERENCES if found.differs else 0


def generate(binary: Path, weights: str, ids: list[int]) -> dict[str, Any]:
    """Streams the text to standard output; returns the binary's report."""
    from runtime.binary import capture

    argv = ["--weights", weights, "--tokens", ",".join(map(str, ids)), "-n", str(COUNT)]
    return capture(binary, [*argv, "--text", "--json"], streaming=True).report()
