"""monocu diff: the compiled program against the VM, value by value, bit by bit."""

from __future__ import annotations

import argparse

from compiler.command.parser import (
    add_inputs,
    add_model,
    add_options,
    add_prompts,
    add_target,
    whole,
)

DOC = """Runs the program on the reference VM and as a binary that stores every value, and compares
all of them in program order; a model's also over the logits of its plain build. Prints
`compared N values: 0 bits differ`, or the first value that differs, its line, index, both numbers
and how far apart they are (exit code 1)."""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser, optional=True)
    add_prompts(parser)
    add_inputs(parser)
    parser.add_argument(
        "-n", type=whole(0), default=4, metavar="COUNT", help="tokens to generate and compare (4)"
    )
    parser.add_argument(
        "--cu", metavar="FILE", help="hold this .cu, edited by hand, in place of what is emitted"
    )
    parser.add_argument("--bisect", action="store_true", help=argparse.SUPPRESS)
    add_target(parser)
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    from pathlib import Path

    from compiler.api.building import archs_of
    from compiler.api.comparing import compare
    from compiler.command import job, show
    from compiler.diagnostics import DIFFERENCES, UserError
    from runtime import toolchain

    if args.bisect:
        raise UserError("--bisect: planned, not there yet; --hold PASS holds a pass back")
    compiled = job.compiled_of(args)
    prompts = job.prompts_of(args, compiled.model)
    edited = None
    if args.cu is not None:
        with show.progress(f"building {args.cu}"):
            target = compiled.target.name
            edited = toolchain.build(Path(args.cu), target, archs_of(args.arch))
    with show.progress("building, running and comparing"):
        found = compare(
            compiled, job.inputs_of(args.input), prompts, args.n, edited, archs_of(args.arch)
        )
    if found.missing and edited:
        show.remark(
            f"{len(found.missing)} values are not stored by {args.cu}, so not compared; "
            "monocu compile --dump stores what can be"
        )
    print(found.report)
    if found.line:
        print(f"  {found.line}")
    return DIFFERENCES if found.report.first else 0
