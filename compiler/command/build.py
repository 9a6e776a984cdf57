"""monocu build: a .model, or a .cu by hand, as a binary that needs no Python."""

from __future__ import annotations

import argparse
from pathlib import Path

from compiler.command.parser import add_model, add_options, add_target

DOC = """Builds a binary from a .model (or a .cu). It reads its checkpoint itself; `BINARY --help`
lists its flags. Builds are cached by source, flags and compiler."""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser, optional=True)
    parser.add_argument("--cu", metavar="FILE", help="build this .cu in place of a .model's")
    parser.add_argument("-o", dest="out", metavar="FILE", help="the binary (NAME)")
    parser.add_argument("--dump", action="store_true", help="store every value")
    parser.add_argument(
        "--sanitize",
        action="store_true",
        help="host: AddressSanitizer and UBSan, every buffer between guard bytes",
    )
    add_target(parser)
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    from compiler.command import job, show

    binary, name = built(args, dump=args.dump, sanitize=args.sanitize)
    path = args.out or name
    job.write_whole(path, binary.read_bytes(), executable=True)
    show.remark(f"{path}: {show.size(binary.stat().st_size)}; its .cu: {binary.parent}/program.cu")
    return 0


def built(args: argparse.Namespace, dump: bool, sanitize: bool = False) -> tuple[Path, str]:
    """The binary that MODEL or --cu asks for, and the program's name."""
    from compiler.api.building import archs_of, target_of
    from compiler.command import job, show
    from compiler.diagnostics import UserError
    from runtime import toolchain

    target = target_of(args.target).name
    if args.cu is None:
        with show.progress("compiling"):
            made = job.compiled_of(args, dump, guard=sanitize)
        source, name = made.text, made.program.name
    elif job.sources_of(args)[0] is not None:
        raise UserError(f"one program is needed, {args.model} and --cu {args.cu} were given")
    else:
        source, name = job.own_cu(args.cu), Path(args.cu).stem
    with show.progress(f"building for {target}"):
        binary = toolchain.build(source, target, archs_of(args.arch), sanitize)
    return binary, name
