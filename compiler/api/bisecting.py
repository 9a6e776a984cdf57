"""bisect: which pass, rule or kernel is to blame for wrong values, by name.

First the passes, by the VM alone. If they are right, the binary: of each value that differs from
the VM's the kernel is sought whose inputs were right, and built once more with its pass held back;
where only the plain build is wrong, passes are held back until it is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path

import passes
from compiler import pipeline
from compiler.api.bisect_passes import Guilty, Reference, try_passes
from compiler.api.comparing import LOGITS, Observed, observe
from compiler.api.suspects import Suspect, kernel_text, suspects
from compiler.api.values import Array
from compiler.diagnostics import ProgramError
from compiler.pipeline import Compiled, Model
from compiler.target import Options, Target
from runtime import toolchain

EDITS = 12  # lines of a file's changes that are shown


@dataclass(frozen=True)
class Bisected:
    """What was tried, a line each, and who is to blame."""

    tried: tuple[str, ...]
    guilty: tuple[Guilty, ...]


@dataclass(frozen=True)
class Bisection:
    """What is searched: a program with its options, what it runs on, and the user's own `.cu`."""

    model: Model
    options: Options
    target: Target
    inputs: Mapping[str, Array]
    prompts: Sequence[Sequence[int]] | None
    count: int
    edited: Path | None = None
    archs: Sequence[str] | None = None

    def compiled(self, *hold: str) -> Compiled:
        options = replace(self.options, hold=tuple(dict.fromkeys((*self.options.hold, *hold))))
        return pipeline.compile_model(self.model, options, self.target)

    def observed(self, compiled: Compiled) -> Observed:
        binary = None
        if self.edited is not None:
            binary = toolchain.build(self.edited, self.target.name, self.archs or ())
        return observe(compiled, self.inputs, self.prompts, self.count, binary, self.archs)


def bisect(search: Bisection, tell: Callable[[str], None] = lambda line: None) -> Bisected:
    """Searches; tell: is told what was tried, line by line, as it goes. Errors: UserError."""
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        tell(line)

    reference = Reference(
        search.model, search.options, search.inputs, search.prompts, search.count
    )  # fmt: skip
    tried = try_passes(reference, search.options, search.target)
    same = "all compute the same" if not tried.guilty else f"{len(tried.guilty)} wrong"
    say(f"passes, each run on the VM: {tried.changed} changed the graph, {same}")
    guilty = tried.guilty or _of_binary(search, say)
    return Bisected(tuple(lines), tuple(guilty))


def _of_binary(search: Bisection, say: Callable[[str], None]) -> list[Guilty]:
    try:
        compiled = search.compiled()
    except Exception as error:
        return [_refused(search, error)]
    seen = search.observed(compiled)
    say(f"binary: {seen.report}")
    if seen.report.first is None:
        return []
    if seen.report.first.name == LOGITS:
        return [_plain(search, compiled, seen, say)]
    found = suspects(seen.dumping, seen.expected, seen.given)
    held: dict[str, bool] = {}
    for made_by in dict.fromkeys(s.made_by for group in found for s in group if s.made_by):
        if search.edited is None:
            held[made_by] = _is_right_without(search, made_by, say)
    return [_kernel(search, seen, group, held) for group in found]


def _kernel(
    search: Bisection, seen: Observed, group: Sequence[Suspect], held: Mapping[str, bool]
) -> Guilty:
    """A kernel that made wrong values of right ones; held: which passes it is right without."""
    first = seen.report.first
    assert first is not None
    edits: tuple[str, ...] = ()
    text = seen.dumping.text
    if search.edited is not None:
        text = toolchain.read_source(search.edited)
        edits = _edits(seen.dumping.text, text, str(search.edited))
    sure = [s for s in group if held.get(s.made_by)]
    blamed = sure if len(sure) == 1 else group
    shown = [line for s in blamed for line in kernel_text(text, s.kernel)]
    who = ", or ".join(map(str, blamed))
    return Guilty(who, str(first), seen.line_of(first.name), (*shown, *edits))


def _is_right_without(search: Bisection, name: str, say: Callable[[str], None]) -> bool:
    """Whether all values are right with one more pass held back."""
    try:
        report = search.observed(search.compiled(name)).report
    except ProgramError:
        say(f"with --hold {name} the rest cannot be compiled")
        return False
    say(f"with --hold {name}: {report}")
    return report.first is None


def _edits(ours: str, theirs: str, name: str) -> tuple[str, ...]:
    """The lines that a file has changed."""
    changed = unified_diff(ours.splitlines(), theirs.splitlines(), n=0, lineterm="")
    lines = [line for line in changed if line[:2] not in ("--", "++", "@@")]
    more = (f"... {len(lines) - EDITS} more lines",) if len(lines) > EDITS else ()
    return (f"{name} changes of what monocu emits:", *lines[:EDITS], *more) if lines else ()


def _refused(search: Bisection, error: Exception) -> Guilty:
    """The first pass with which the plan does not go through; the error itself if none."""

    def goes(hold: Sequence[str]) -> bool:
        try:
            search.compiled(*hold)
        except Exception:
            return False
        return True

    guilty = _first_wrong(search, goes)
    if guilty is None:
        raise error
    return Guilty(f"the pass {guilty}", f"what it makes cannot be planned: {error}")


def _plain(
    search: Bisection, compiled: Compiled, seen: Observed, say: Callable[[str], None]
) -> Guilty:
    """Every stored value is right and the plain build's logits are not."""
    first = seen.report.first
    assert first is not None

    def agrees(hold: Sequence[str]) -> bool:
        report = search.observed(search.compiled(*hold)).report
        say(f"with --hold {','.join(hold)}: {report}")
        return report.first is None

    guilty = _first_wrong(search, agrees)
    if guilty is None:
        why = f"{first}; it does so with all passes held back: a plain kernel, or buffers' reuse"
        return Guilty("the plain build", why)
    kernels = [n.kernel for n in compiled.plan.launches if _is_of(n.node, guilty)]
    named = ", ".join(dict.fromkeys(kernels)) or "no kernel of its own"
    return Guilty(f"the pass {guilty} ({named})", str(first))


def _is_of(node: object, kind: str) -> bool:
    function = getattr(node, "function", None) if getattr(node, "op", "") == "call" else None
    return getattr(function, "kind", None) == kind


def _first_wrong(search: Bisection, is_right: Callable[[Sequence[str]], bool]) -> str | None:
    """The pass with which it goes wrong where those behind it are held back; None: without any."""
    names = [p.name for p in passes.chosen(search.options) if p.kind == "fusion"]
    if not is_right(names):
        return None
    low, high = 0, len(names)  # right with the first `low` passes, wrong with the first `high`
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_right(names[middle:]) else (low, middle)
    return names[high - 1]
