"""monocu profile: where a model's step spends its time, kernel by kernel and line by line."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from compiler.command.parser import add_model, add_options, add_target, whole

if TYPE_CHECKING:
    from compiler.api.profiling import Asked, Profile

DOC = """Runs a model with a clock behind each launch's wait for the launches before it, within the
graph, overlaps included: a launch's time is from its own wait to the next one's, so that times add
up to the step. Prints each kernel's time, its bytes (by its ops' records, not measured), GB/s and
the floor, which is what plain reads of so many bytes take, measured in the same run; then the time
of each line of the program, where lines that share a kernel share its time by their ops' bytes.

Looks at decode steps behind a prompt of --context tokens, or with --prefill at those that take in
the prompt. With --only KERNEL it launches one kernel again and again, on the last step's values and
its layers in turn, so that caches do not hold their weights where a model has several; what it adds
to a sum or a cache in place it then adds each time, which changes values, not times."""

USUAL = {"cuda": (128, 9), "host": (16, 3)}  # -n, without and with --prefill


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser, optional=True)
    more = {
        "--context": ("TOKENS", whole(1), "of the prompt (1; with --prefill as --max-rows)"),
        "-n": ("COUNT", whole(1), "tokens to decode (128; host: 16) or prompts (9; host: 3)"),
        "--trace": ("FILE", str, "write every launch, for ui.perfetto.dev or Chrome"),
        "--only": ("KERNEL", str, "repeat this kernel alone"),
        "--repeat": ("COUNT", whole(1, 100_000), "how often (100)"),
        "--cu": ("FILE", str, "profile this .cu of `monocu compile --timed`, edited by hand"),
    }
    for flag, (value, kind, doc) in more.items():
        parser.add_argument(flag, metavar=value, type=kind, help=doc)
    parser.add_argument("--prefill", action="store_true", help="look at steps that take in prompts")
    parser.add_argument(
        "--nvtx", action="store_true", help="NVTX ranges of steps and kernels (for nsys); no graphs"
    )
    add_target(parser)
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    from compiler.command import job, profiling, show

    found, rate = measured(args)
    for line in found.said.splitlines():
        if "NVTX" in line:
            show.remark(line)
    if args.trace:
        job.write_whole(args.trace, profiling.trace(found))
    if args.only:
        print(profiling.repeated(found), profiling.reading(found), sep="\n")
        return 0
    show.print_table(
        profiling.title(found), profiling.HEAD, profiling.kernels(found), profiling.RIGHT
    )
    print(profiling.reading(found))
    if rate:
        step = f", {1e6 * found.rows / rate:,.1f} us a step" if found.even else ""
        print(f"without clocks: {rate:,.1f} tokens/s{step}")
    print()
    head = ("us", "%", "line")
    show.print_table("statements", head, profiling.statements(found), right=(0, 1))
    return 0


def measured(args: argparse.Namespace) -> tuple[Profile, float]:
    """The profile, and tokens a second of the plain build on a GPU (0 elsewhere)."""
    from concurrent.futures import ThreadPoolExecutor

    from compiler.api.building import archs_of, build
    from compiler.api.profiling import check, plain_rate, profile, timed
    from compiler.command import job, show
    from runtime import toolchain

    check_flags(args)
    cu = job.own_cu(args.cu, timed=True) if args.cu else None
    if args.prefill:
        args.max_seqs = 1  # prompts are taken in one behind another
    with show.progress("compiling"):
        plain = job.compiled_of(args)
        made = timed(plain, args.nvtx)
    asked, archs = asked_of(args, made.target.name), archs_of(args.arch)
    check(made, asked)
    compare = made.target.name == "cuda" and not (args.only or args.cu)
    with show.progress("building"), ThreadPoolExecutor() as pool:
        clean = pool.submit(build, plain, archs) if compare else None
        binary = toolchain.build(cu, made.target.name, archs) if cu else build(made, archs)
        if clean:
            clean.result()
    with show.progress("running"):
        rate = plain_rate(plain, asked, archs) if compare else 0.0
        return profile(made, asked, binary), rate


def check_flags(args: argparse.Namespace) -> None:
    from compiler.diagnostics import UserError

    if args.nvtx and args.cu:
        raise UserError(
            "one of --nvtx and --cu is needed, both were given: ranges are of what is compiled "
            f"here, not of {args.cu}"
        )
    if args.repeat and not args.only:
        raise UserError("--repeat: --only KERNEL is needed beside it, which was not given")


def asked_of(args: argparse.Namespace, target: str) -> Asked:
    from compiler.api.profiling import Asked

    context = args.context or (args.max_rows if args.prefill else 1)
    n = args.n or USUAL[target][args.prefill]
    flags = ("--no-graph",) if args.nvtx else ()
    return Asked(context, n, args.prefill, args.only or "", args.repeat or 100, flags)
