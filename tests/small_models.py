"""Examples with small synthetic checkpoints: loaded whole, or with tensors of other types."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import examples
from compiler import pipeline
from compiler.pipeline import Model
from compiler.program import Program
from compiler.types import Type
from frontend.elaborate import elaborate
from runtime.synthetic import PRESETS, write_synthetic

SMALL = {dims.architecture: dims for name, dims in PRESETS.items() if name.startswith("tiny")}
MODELS = tuple(name for name in examples.names() if name in SMALL)
OP_PROGRAMS = tuple(n for n in examples.names() if "meta(" not in examples.find(n).read_text())


@cache
def folder() -> Path:
    """Where checkpoints are as long as this process lives."""
    kept = TemporaryDirectory(prefix="monocu.")
    atexit.register(kept.cleanup)
    return Path(kept.name)


@cache
def checkpoint(architecture: str, layers: int = 2, weights: str = "q8_0") -> Path:
    path = folder() / f"{architecture}-{layers}-{weights}.gguf"
    return write_synthetic(path, replace(SMALL[architecture], layers=layers), weights)


@cache
def model(name: str, layers: int = 2, weights: str = "q8_0") -> Model:
    """An example of a model's family with its checkpoint; of an op program without."""
    path = examples.find(name)
    return pipeline.load(path, checkpoint(name, layers, weights) if name in SMALL else None)


def program(name: str, layers: int = 2) -> Program:
    return model(name, layers).program


def retyped(name: str, layers: int, dtype: Callable[[str, str], str]) -> Program:
    """A model whose tensors have other types: dtype(name, type as written) -> type."""
    metadata = pipeline.metadata_of(model(name, layers).weights)
    types = {n: t for n, t in metadata.tensors.items() if isinstance(t, Type)}
    changed = {n: t.with_dtype(dtype(n, t.dtype)) for n, t in types.items()}
    text = examples.find(name).read_text()
    return elaborate(text, f"{name}.model", replace(metadata, tensors=changed))
