"""What `exact.py` runs: models and op programs, how rows reach them, and their references.

A case emits its `.cu` for any passes held back, writes what the VM gives (`references`), and holds
one run of a binary against that (`check`). Cases are plain data, so that processes can share them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compiler import pipeline
from compiler.api.building import target_of
from compiler.api.reference import bits, session
from compiler.api.running import generated, model_argv
from compiler.pipeline import Model
from compiler.program import Program
from compiler.target import Options
from passes import names as fusions
from runtime import toolchain
from runtime.compare import different
from runtime.synthetic import PRESETS, write_synthetic
from runtime.vm import run_program
from tests.merged import compiled, groups, merged, rows_values
from tests.merged import run as run_ops
from tests.small_models import OP_PROGRAMS, program

Array = NDArray[np.generic]

ROWS = 320  # of a step: more than the longest prompt has, and than a form of 256 takes
COUNT = 3  # tokens behind each prompt
LENGTHS = (1, 5, 18, 40, 300)  # of the batch's prompts
SHORT, LONG = 3, 4  # which of them chunks are cut from
REPEATS = 20


@dataclass(frozen=True)
class Way:
    """One run: its flags, and for models which prompts it takes."""

    name: str
    flags: tuple[str, ...] = ()
    prompts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How many values a run gave, how many of them differ, and why there were none."""

    values: int
    differing: int
    said: str = ""


@dataclass(frozen=True)
class Limits:
    """The longest prompt that the VM takes; longer ones are the host binary's, kernels apart."""

    vm_tokens: int


@dataclass(frozen=True)
class ModelCase:
    """A model of a checkpoint."""

    name: str
    weights: Path

    def emit(self, numerics: str, hold: tuple[str, ...], target: str) -> str:
        options = replace(self.options(numerics), hold=hold)
        return pipeline.compile_model(self.model, options, target_of(target)).text

    def options(self, numerics: str) -> Options:
        return Options(numerics, max_rows=ROWS, max_seqs=ROWS)

    @property
    def model(self) -> Model:
        return loaded(self.weights)

    def prompts(self) -> list[list[int]]:
        last = dict(self.model.program.graph.results)["logits"].type.shape[-1]
        assert isinstance(last, int)
        draws = (np.random.default_rng([n, 7]).integers(last, size=n) for n in LENGTHS)
        return [draw.tolist() for draw in draws]

    def ways(self, target: str, full: bool) -> list[Way]:
        def chunk(rows: int, which: int) -> Way:
            return Way(f"chunks of {rows}", ("--chunk", str(rows)), (which,))

        everyone = tuple(range(len(LENGTHS)))
        out = [chunk(n, SHORT) for n in (range(1, 18) if full else (1, 5, 17))]
        out += [chunk(n, LONG) for n in ((64, 65, 200, ROWS) if full else (64, 200))]
        out += [Way(f"alone, {n} tokens", (), (i,)) for i, n in enumerate(LENGTHS[:SHORT])]
        out += [Way("batch of 5", (), everyone), Way("no graphs", ("--no-graph",), (SHORT, 0))]
        out += [Way("batch of 5, chunks of 7", ("--chunk", "7"), everyone)] if full else []
        repeated = everyone if target == "cuda" else everyone[:LONG]
        return out + [
            Way(f"run {k}", seed(target, k), repeated) for k in range(REPEATS if full else 2)
        ]

    def references(self, numerics: str, limits: Limits) -> list[Callable[[Path], None]]:
        parts: list[Callable[[Path], None]] = []
        for which, length in sorted(enumerate(LENGTHS), key=lambda pair: -pair[1]):
            make = write_by_vm if length <= limits.vm_tokens else write_by_host
            parts.append(Reference(make, self, numerics, which))
        return parts

    def check(self, binary: Path, numerics: str, way: Way, folder: Path) -> Outcome:
        prompts = self.prompts()
        want = [np.load(self.kept(numerics, folder, which)) for which in way.prompts]
        tokens, logits = ran(self, binary, [prompts[which] for which in way.prompts], way.flags)
        values = differing = 0
        for expected, chosen, given in zip(want, tokens, logits, strict=True):
            best = expected[-COUNT:].argmax(axis=1)
            wrong = different(expected, given)
            differing += int(wrong.sum()) + int((best != np.array(chosen)).sum())
            values += wrong.size + COUNT
        return Outcome(values, differing)

    def kept(self, numerics: str, folder: Path, which: int) -> Path:
        return folder / f"{self.name}-{numerics}-{LENGTHS[which]}.npy"


@dataclass(frozen=True)
class Reference:
    """A reference to be made, by a process of the pool."""

    make: Callable[[ModelCase, str, list[int]], Array]
    case: ModelCase
    numerics: str
    which: int

    def __call__(self, folder: Path) -> None:
        logits = self.make(self.case, self.numerics, self.case.prompts()[self.which])
        np.save(self.case.kept(self.numerics, folder, self.which), logits)


@cache
def loaded(weights: Path) -> Model:
    return pipeline.load(weights)


def seed(target: str, number: int) -> tuple[str, ...]:
    """Another order of threads; a GPU has its own."""
    return ("--host-seed", str(number)) if target == "host" else ()


def write_by_vm(case: ModelCase, numerics: str, prompt: list[int]) -> Array:
    """f32[rows, V]: of the prompt and of all tokens behind it but the last."""
    run = session(case.model, bits(case.model, case.options(numerics)))
    parts: list[Array] = []
    tokens, at = prompt, 0
    while at < len(prompt) + COUNT - 1:
        fed = tokens[:64] if at < len(prompt) else [int(parts[-1][-1].argmax())]
        places = range(at, at + len(fed))
        parts.append(run.step(fed, [0] * len(fed), places, range(len(fed)))[0])
        at, tokens = at + len(fed), tokens[len(fed) :]
    return np.concatenate(parts)


def write_by_host(case: ModelCase, numerics: str, prompt: list[int]) -> Array:
    """The same by the host binary whose kernels are apart, which shorter prompts hold to the VM."""
    binary = toolchain.build(case.emit(numerics, fusions(), "host"))
    return ran(case, binary, [prompt], ("--chunk", "64"))[1][0]


def ran(
    case: ModelCase, binary: Path, prompts: Sequence[list[int]], flags: Sequence[str]
) -> tuple[Sequence[Sequence[int]], Sequence[Array]]:
    """Tokens and logits of each prompt."""
    with tempfile.TemporaryDirectory(prefix="monocu.") as folder:
        argv = [*model_argv(case.model, prompts, COUNT, Path(folder)), *flags]
        out = generated(binary, argv, [len(p) for p in prompts], Path(folder), logits=True)
    return out.tokens, out.logits


@dataclass(frozen=True)
class OpsCase:
    """Op programs of the examples, in one binary."""

    name: str
    examples: tuple[str, ...]

    @property
    def programs(self) -> list[Program]:
        return [replace(program(name), name=name) for name in self.examples]

    def emit(self, numerics: str, hold: tuple[str, ...], target: str) -> str:
        whole = merged(self.programs, "ops")
        return compiled(whole, Options(numerics, hold=hold), target_of(target)).text

    def ways(self, target: str, full: bool) -> list[Way]:
        return [Way(f"run {k}", seed(target, k)) for k in range(REPEATS if full else 3)]

    def references(self, numerics: str, limits: Limits) -> list[Callable[[Path], None]]:
        return []  # they take no time

    def check(self, binary: Path, numerics: str, way: Way, folder: Path) -> Outcome:
        whole = merged(self.programs, "ops")
        lowered = pipeline.lower(whole, Options(numerics, hold=fusions()), target_of("host"))[0]
        values = differing = 0
        for inputs in rows_values(self.programs):
            got = run_ops(binary, inputs, *way.flags)
            for name, expected in run_program(lowered, inputs).items():
                assert isinstance(expected, np.ndarray)
                differing += int(different(expected, got[name]).sum())
                values += expected.size
        return Outcome(values, differing)


Case = ModelCase | OpsCase


def op_cases() -> Iterator[OpsCase]:
    """The examples that are op programs, those with rows of one type together."""
    for unit in groups([replace(program(name), name=name) for name in OP_PROGRAMS]):
        yield OpsCase(f"ops-{unit[0].name}", tuple(p.name for p in unit))


# Each family, mixtures of K-quants; of SmolLM2's shapes three layers, a small head; one so wide
# that an H200's blocks work in clusters.
SYNTHETIC = {
    "llama": (replace(PRESETS["smollm2"], layers=3, vocab=512), "q4_1"),
    "qwen3": (replace(PRESETS["tiny-qwen3"], context=1024), "q8_0"),
    "qwen3-wide": (replace(PRESETS["tiny-qwen3"], hidden=2048, ffn=1056, context=1024), "q8_0"),
    "qwen3moe": (replace(PRESETS["tiny-qwen3moe"], context=1024), "q4_0"),
    "llama-k": (replace(PRESETS["small-llama"], layers=4, context=1024), "q4_k_m"),
    "qwen3moe-k": (replace(PRESETS["small-qwen3moe"], layers=4, context=1024), "q5_k_m"),
}


def synthetic_cases(folder: Path) -> Iterator[ModelCase]:
    for name, (dims, weights) in SYNTHETIC.items():
        path = folder / f"{name}.gguf"
        yield ModelCase(name, path if path.exists() else write_synthetic(path, dims, weights))
