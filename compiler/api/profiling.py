"""profile: a model's steps run by a build that notes when each launch was let through its wait.

A launch's time is from its own wait to the next launch's, so that the times of a step add up to it,
overlaps included; the last two are `advance`, which ends a step, and the gap to the next one.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.plan import Planned
from compiler import pipeline
from compiler.api.building import build
from compiler.api.running import model_argv
from compiler.api.values import checked_prompts
from compiler.diagnostics import UserError
from compiler.pipeline import Compiled
from runtime.binary import capture

Times = NDArray[np.int64]
WARM = 2  # decode steps, or prompts, that are run before the first that counts
ADVANCE = "advance"  # the launch that ends a step, and is of no statement
ENDS = 2  # records of a step beside its launches': `advance`, and its end


@dataclass(frozen=True)
class Asked:
    """What to run. context: tokens of the prompt; n: tokens to decode behind it, or with prefill
    prompts to take in, one after another; only: a kernel to repeat alone behind the run, on the
    last step's values; flags: more of the binary's."""

    context: int
    n: int
    prefill: bool = False
    only: str = ""
    repeat: int = 100
    flags: tuple[str, ...] = ()

    @property
    def least(self) -> int:
        """The least n of which there is a step to look at: behind the warm ones, before the last,
        behind which nothing follows."""
        return 3 if self.prefill else WARM + 3


@dataclass(frozen=True)
class Step:
    """A step that ran. rows: of it; position: how many its last row has seen, itself included;
    came, waited: when each launch was at its wait and was let through, ns, then `advance` and the
    end; until: when the next step's first launch was let through."""

    rows: int
    position: int
    came: Times
    waited: Times
    until: int

    @property
    def spans(self) -> Times:
        """ns of each launch, of `advance` and of the gap behind it."""
        return np.diff(np.append(self.waited, self.until))


@dataclass(frozen=True)
class Profile:
    """What was found. read_rate: bytes a second that plain reads of the memory get, measured in
    the same run, 0 where it had no room; steps: all but the last, in order; repeated: ns of each
    repeated launch; last: (rows, position) of the last step; said: what the binary wrote on
    standard error."""

    asked: Asked
    made: Compiled
    read_rate: float
    steps: tuple[Step, ...]
    repeated: tuple[int, ...]
    last: tuple[int, int]
    said: str

    @cached_property
    def counted(self) -> tuple[Step, ...]:
        """The steps that figures are of: behind the warm ones, of equal rows, and of these the
        middle half by time."""
        chunks = len(chunks_of(self.made, self.asked))
        cold = chunks if self.asked.prefill else chunks + WARM
        rows = self.steps[cold].rows
        chosen = [s for s in self.steps[cold:] if s.rows == rows]
        chosen.sort(key=lambda s: int(s.spans.sum()))
        cut = len(chosen) // 4
        return tuple(chosen[cut : len(chosen) - cut])

    @property
    def rows(self) -> int:
        """Of a counted step."""
        return self.counted[0].rows

    @property
    def even(self) -> bool:
        """Whether all steps that were asked about have as many rows as a counted one."""
        chunks = chunks_of(self.made, self.asked)
        return not self.asked.prefill or len({rows for rows, _ in chunks}) == 1

    @property
    def position(self) -> int:
        """How many positions a counted step's last row has seen, on average."""
        return round(mean(s.position for s in self.counted))

    @property
    def launches(self) -> tuple[Planned, ...]:
        """Of a counted step."""
        return self.made.plan.step(self.rows)

    @cached_property
    def spans(self) -> NDArray[np.float64]:
        """us of each launch, of `advance` and of the gap, on average over the counted steps."""
        return np.mean([s.spans for s in self.counted], axis=0) / 1000


def timed(made: Compiled, ranges: bool = False) -> Compiled:
    """The same compilation with a clock behind every launch's wait. UserError for an op program."""
    if not made.program.is_model:
        raise UserError(f"profile: a model is needed, {made.program.name} is an op program")
    options = replace(made.options, timed=True, ranges=ranges)
    return pipeline.compile_model(made.model, options, made.target)


def profile(made: Compiled, asked: Asked, binary: Path) -> Profile:
    """Runs the binary of what `timed` gave. UserError: as `check`, and the binary's own."""
    chosen = check(made, asked)
    prompts, shape = prompts_of(made, asked), shape_of(made, asked)
    with tempfile.TemporaryDirectory(prefix="monocu.") as folder:
        path = Path(folder) / "times.json"
        argv = model_argv(made.model, prompts, 0 if asked.prefill else asked.n, Path(folder))
        argv += ["--times", str(path), *asked.flags]
        if chosen:
            argv += ["--only", ",".join(map(str, chosen)), "--repeat", str(asked.repeat)]
        said = capture(binary, argv).err
        found = json.loads(path.read_text())
    times = np.array(found["times"], np.int64).reshape(-1, 2)
    run = len(times) - (asked.repeat + 1 if chosen else 0)
    steps = _steps(made, shape, times[:run])
    repeated = tuple(map(int, np.diff(times[run:, 1])))
    rate = float(found["read_bytes_per_second"])
    return Profile(asked, made, rate, steps, repeated, shape[-1], said)


def plain_rate(made: Compiled, asked: Asked, archs: Sequence[str] | None = None) -> float:
    """Tokens a second of the same run by the build without clocks, the median of three runs.
    UserError: as `check`, and the binary's own."""
    check(made, asked)
    prompts, n = prompts_of(made, asked), 0 if asked.prefill else asked.n
    binary, which = build(made, archs), "prefill" if asked.prefill else "decode"
    with tempfile.TemporaryDirectory(prefix="monocu.") as folder:
        argv = [*model_argv(made.model, prompts, n, Path(folder)), "--json"]
        runs = [capture(binary, argv).report() for _ in range(3)]
    return median(float(run[f"{which}_tokens_per_second"]) for run in runs)


def prompts_of(made: Compiled, asked: Asked) -> list[list[int]]:
    """Tokens that are as good as any."""
    vocabulary = dict(made.program.graph.results)["logits"].type.shape[-1]
    assert isinstance(vocabulary, int)
    prompt = [(1 + 7 * i % 150) % vocabulary for i in range(asked.context)]
    return checked_prompts(made.model, [prompt] * (asked.n if asked.prefill else 1))


def chunks_of(made: Compiled, asked: Asked) -> list[tuple[int, int]]:
    """(rows, position of the last of them) of each step that takes in a prompt."""
    chunk = made.options.max_rows
    ends = [*range(chunk, asked.context, chunk), asked.context]
    return [(end - start, end) for start, end in zip([0, *ends], ends, strict=False)]


def shape_of(made: Compiled, asked: Asked) -> list[tuple[int, int]]:
    """The same of every step of such a run."""
    chunks = chunks_of(made, asked)
    if asked.prefill:
        return chunks * asked.n
    return chunks + [(1, asked.context + i) for i in range(1, asked.n)]


def check(made: Compiled, asked: Asked) -> list[int]:
    """The launches of the last step that are to be repeated. UserError for what cannot be run."""
    if asked.n < asked.least:
        raise UserError(f"-n: {asked.least} or more is needed, {asked.n} was given")
    seqs = made.options.max_seqs
    if asked.prefill and seqs > 1:  # a step would take in the end of a prompt and the next one
        raise UserError(f"prefill: a build for one sequence at once is needed, not for {seqs}")
    rows, _ = shape_of(made, asked)[-1]
    names = [p.kernel for p in made.plan.step(rows)]
    if asked.only and asked.only not in names:
        raise UserError(
            f"--only: a kernel of a step of {rows} row{'s' if rows > 1 else ''} is needed, "
            f"{asked.only!r} was given; there are {', '.join(dict.fromkeys(names))}"
        )
    return [i for i, name in enumerate(names) if name == asked.only]


def _steps(made: Compiled, shape: Sequence[tuple[int, int]], times: Times) -> tuple[Step, ...]:
    """The records cut into steps. UserError where the binary's are not those of the plan, as where
    it is of a file by hand."""
    counts = {rows: len(made.plan.step(rows)) + ENDS for rows in {rows for rows, _ in shape}}
    ends = np.cumsum([counts[rows] for rows, _ in shape])
    if ends[-1] != len(times):
        raise UserError(
            "--cu: a file compiled with the same options (for --prefill with --max-seqs 1), and of "
            f"the same launches, is needed: {ends[-1]} were planned, {len(times)} were made"
        )
    out: list[Step] = []
    for (rows, position), end in zip(shape[:-1], ends, strict=False):
        part: Any = times[end - counts[rows] : end]
        out.append(Step(rows, position, part[:, 0], part[:, 1], int(times[end, 1])))
    return tuple(out)
