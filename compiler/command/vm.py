"""monocu vm: a program's results by NumPy alone, the bits that every target gives."""

from __future__ import annotations

import argparse
from typing import Any

from compiler.command.parser import add_inputs, add_model, add_prompts, whole

DOC = """Runs a program on the reference VM: no compiler, no GPU. An op program prints its results
as its binary does: `name: type`, then a value a line in the shortest decimal. A model prints the
tokens that it chooses."""


def arguments(parser: argparse.ArgumentParser) -> None:
    from compiler.command.parser import add_options

    add_model(parser, optional=True)
    add_prompts(parser)
    add_inputs(parser)
    parser.add_argument("-n", type=whole(0), default=16, metavar="COUNT", help="tokens (16)")
    parser.add_argument("--text", action="store_true", help="prints text in place of ids")
    parser.add_argument(
        "--float64", action="store_true", help="what the program means, in real numbers"
    )
    parser.add_argument("--out", metavar="FOLDER", help="op programs: writes NAME.npy there")
    parser.add_argument(
        "--logits",
        choices=("all", "last"),
        default="last",
        help="rows that --logits-file holds (last)",
    )
    parser.add_argument(
        "--logits-file", metavar="FILE", help="models: writes logits [rows, vocabulary], .npy"
    )
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    from compiler.command import job

    model = job.model_of(args)
    prompts = job.prompts_of(args, model)
    if prompts is None:
        _program(args, model)
    else:
        _model(args, model, prompts)
    return 0


def _program(args: argparse.Namespace, model: Any) -> None:
    import sys
    from typing import cast

    from numpy.typing import NDArray

    from compiler import api
    from compiler.command import job, show
    from compiler.diagnostics import UserError

    if args.logits_file is not None:
        raise UserError(f"{model.program.name} is an op program: it takes --out, not --logits-file")
    results = api.vm(
        model, job.inputs_of(args.input), numerics=args.numerics, kv=args.kv, float64=args.float64
    )
    results = cast(dict[str, NDArray[Any]], results)
    if args.out is not None:
        _write(results, args.out)
        return
    for name, value in model.program.graph.results:
        real = args.float64 and value.type.is_float
        sys.stdout.write(
            show.result(name, value.type.with_dtype("f64") if real else value.type, results[name])
        )


def _write(results: dict[str, Any], folder: str) -> None:
    from pathlib import Path

    from compiler.diagnostics import UserError

    try:
        Path(folder).mkdir(exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: a folder is needed: {error.strerror}") from None
    for name, array in results.items():
        _write_npy(f"{folder}/{name}.npy", array)


def _write_npy(path: str, array: Any) -> None:
    import io

    import numpy as np

    from compiler.command import job

    out = io.BytesIO()
    np.save(out, array)
    job.write_whole(path, out.getvalue())


def _model(args: argparse.Namespace, model: Any, prompts: list[list[int]]) -> None:
    import numpy as np

    from compiler.api.reference import generate, logits_session
    from compiler.api.values import checked_prompts
    from compiler.command import job, show
    from compiler.command.parser import options_of

    checked = checked_prompts(model, prompts)
    as_text = args.text or args.prompt is not None
    decode = job.tokenizer_of(model).token_bytes if as_text else None
    options, keeps, path = options_of(args), None, args.logits_file
    if path is not None:
        keeps = logits_session(model, options, args.float64, args.logits == "all")
    made = generate(model, checked, args.n, options, args.float64, keeps)
    show.tokens(made, len(checked), decode)
    if keeps is not None and path is not None:
        rows = np.concatenate([keeps.logits(s) for s in range(len(checked))])
        _write_npy(path, rows)
