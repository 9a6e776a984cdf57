"""monocu compile: a .model as one .cu, for whoever reads, builds or edits it."""

from __future__ import annotations

import argparse

from compiler.command.parser import add_model, add_options, add_target

DOC = "Compiles a .model, with a checkpoint where it needs one, into one .cu file."


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("-o", dest="out", metavar="FILE", help="the .cu (NAME.cu); - prints it")
    parser.add_argument(
        "--dump", action="store_true", help="store every value, so that the binary can dump it"
    )
    parser.add_argument(
        "--timed", action="store_true", help="a clock behind each launch's wait, for profile --cu"
    )
    add_target(parser, arch=False)
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    from compiler.command import job, show
    from compiler.diagnostics import UserError

    with show.progress("compiling"):
        made = job.compiled_of(args, args.dump, args.timed)
    if args.timed and not made.program.is_model:
        raise UserError(f"--timed: a model is needed, {made.program.name} is an op program")
    path = args.out or f"{made.program.name}.cu"
    job.write_whole(path, made.text.encode())
    lines, launches = made.text.count("\n"), len(made.plan.launches)
    took = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in made.seconds.items())
    kernels = f"{len(made.plan.kernels)} kernels, {launches} launches a step"
    show.remark(f"{path}: {lines} lines, {kernels}, for {made.target.name}; {took}")
    return 0
