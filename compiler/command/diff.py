"""monocu diff: the compiled program against the VM, value by value, bit by bit."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compiler.command.parser import (
    add_inputs,
    add_model,
    add_options,
    add_prompts,
    add_target,
    whole,
)

if TYPE_CHECKING:
    from compiler.api.bisect_passes import Guilty

DOC = """Runs the program on the reference VM and as a binary that stores every value, and compares
all of them in program order; a model's also over the logits of its plain build. Prints
`compared N values: 0 bits differ`, or the first value that differs, its line, index, both numbers
and how far apart they are (exit code 1).

With --bisect it says who is to blame: first runs the graph behind each pass on the VM (what a pass
or, in a table, a rule changes is its fault), then seeks the kernel that makes wrong values of right
ones, and builds once more without its pass. Exit code 1 where something is found."""


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
    parser.add_argument(
        "--bisect", action="store_true", help="name the pass, rule or kernel that is to blame"
    )
    add_target(parser)
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    return _bisect(args) if args.bisect else _compare(args)


def _compare(args: argparse.Namespace) -> int:
    from compiler.api.building import archs_of
    from compiler.api.comparing import compare
    from compiler.command import job, show
    from compiler.diagnostics import DIFFERENCES
    from runtime import toolchain

    cu = None if args.cu is None else job.own_cu(args.cu)
    compiled = job.compiled_of(args)
    prompts = job.prompts_of(args, compiled.model)
    edited = None
    if cu is not None:
        with show.progress(f"building {cu}"):
            edited = toolchain.build(cu, compiled.target.name, archs_of(args.arch))
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
    _blame(found.guilty)
    return DIFFERENCES if found.differs else 0


def _bisect(args: argparse.Namespace) -> int:
    from compiler.api.bisecting import bisect
    from compiler.command import show
    from compiler.diagnostics import DIFFERENCES

    search = _search(args)
    with show.progress("trying passes, building, running and comparing"):
        found = bisect(search, lambda line: print(line, flush=True))
    _blame(found.guilty)
    if not found.guilty:
        print("nothing is found: passes and binary compute what the VM does")
    return DIFFERENCES if found.guilty else 0


def _blame(found: Sequence[Guilty]) -> None:
    for guilty in found:
        print(f"guilty: {guilty.who}\n  {guilty.why}")
        for line in (*filter(None, [guilty.line]), *guilty.shown):
            print(f"  {line}")


def _search(args: argparse.Namespace) -> Any:
    from compiler.api.bisecting import Bisection
    from compiler.api.building import archs_of, target_of
    from compiler.api.values import checked_prompts, need_op_program
    from compiler.command import job
    from compiler.command.parser import options_of

    model = job.model_of(args)
    prompts = job.prompts_of(args, model)
    if model.program.is_model:
        prompts = checked_prompts(model, prompts or ())
    else:
        need_op_program(model, prompts)
    return Bisection(
        model, options_of(args), target_of(args.target), job.inputs_of(args.input), prompts,
        args.n, None if args.cu is None else job.own_cu(args.cu), archs_of(args.arch),
    )  # fmt: skip
