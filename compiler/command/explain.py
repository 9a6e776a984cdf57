"""monocu explain: what the compiler makes of a program, stage by stage."""

from __future__ import annotations

import argparse

from compiler.command.parser import add_model, add_options, add_target, whole

DOC = """Shows the graph before and after each pass, what each fusion saves, the kernels with their
launches, bytes and flops (registers and spills where nvcc has built them), and the memory. Layers
behind the first are left out of graphs unless --all-layers is given."""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser, optional=True)
    parser.add_argument("--passes", action="store_true", help="whole graphs in place of diffs")
    parser.add_argument("--all-layers", action="store_true", help="every layer of every graph")
    parser.add_argument(
        "--rows", type=whole(1), default=1, metavar="COUNT", help="rows of the step to count (1)"
    )
    parser.add_argument(
        "--build", action="store_true", help="build it by nvcc, for registers and spills"
    )
    add_target(parser)
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    from compiler.api.building import archs_of
    from compiler.command import explaining, job, show
    from compiler.target import CUDA
    from runtime import toolchain

    with show.progress("compiling"):
        made = job.compiled_of(args)
    usage: list[toolchain.Resources] = []
    if args.build:
        with show.progress("building for cuda"):
            binary = toolchain.build(made.text, CUDA.name, archs_of(args.arch))
        usage = toolchain.resource_usage(binary)
    shown = explaining.graphs(made, whole=args.passes, all_layers=args.all_layers)
    parts = (
        explaining.kernels(made, args.rows, usage),
        explaining.savings(made, args.rows),
        explaining.memory(made),
    )
    print("\n\n".join((*shown, *parts)))
    return 0
