"""monocu doctor: what is installed here, for a bug report and for finding what lacks."""

from __future__ import annotations

import argparse

DOC = "Versions, compilers, GPUs, caches, and every environment variable that monocu reads."

PACKAGES = ("numpy", "lark", "jinja2", "rich", "tokenizers", "gguf", "cuda-python")


def arguments(parser: argparse.ArgumentParser) -> None:
    del parser


def run(args: argparse.Namespace) -> int:
    import platform
    import sys

    from compiler.command import show
    from compiler.command.main import version
    from compiler.knobs import KNOBS
    from runtime import toolchain
    from runtime.gpu import gpus

    del args
    machine = f"{platform.system()} {platform.machine()}"
    rows = [("monocu", version()), ("Python", f"{sys.version.split()[0]} on {machine}")]
    rows += [(name, package(name)) for name in PACKAGES]
    rows += list(toolchain.report().items())
    rows += [("GPU", str(gpu)) for gpu in gpus()] or [("GPU", "none: the host target runs")]
    rows += caches()
    print(show.table(rows))
    print("\nenvironment variables (value, default, meaning):")
    print(show.table((k.name, k.value or "-", k.default or "-", k.doc) for k in KNOBS))
    return 0


def package(name: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def caches() -> list[tuple[str, str]]:
    """The build cache and what is fetched."""
    from compiler.command import show
    from compiler.diagnostics import UserError
    from runtime import cache, fetch

    try:
        folder = cache.root()
        used = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
        rows = [("builds", f"{show.size(used)} in {folder}")]
    except UserError as error:
        rows = [("builds", str(error))]
    models = [(n, fetch.cached(n)) for n in fetch.MODELS]
    return [*rows, *((n, str(p or f"not fetched: monocu fetch {n}")) for n, p in models)]
