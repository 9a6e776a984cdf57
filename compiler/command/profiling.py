"""The parts of `monocu profile`: its tables, and the trace that Perfetto and Chrome show."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median

from codegen.plan import Planned
from codegen.source_lines import program_lines
from compiler.api.costs import Statements, bytes_of, operations_of
from compiler.api.profiling import ADVANCE, Profile, Step

GAP = "to the next step"
HEAD = ("kernel", "launches", "us each", "us", "%", "MB", "GB/s", "floor us", "TOP/s")
TRACKS = ("steps", "launches", "waits of even launches", "waits of odd ones")  # they overlap
RIGHT = tuple(range(1, len(HEAD)))
Row = Sequence[object]


@dataclass(frozen=True)
class Cost:
    """Of some launches: how many, us, bytes and operations, all of them together."""

    launches: int
    us: float
    bytes: int
    operations: int

    def row(self, name: str, of: Profile, each: bool = True) -> Row:
        """A line of the table; the floor is what plain reads of its bytes would take."""
        total = float(of.spans.sum())
        one = f"{self.us / self.launches:.2f}" if each and self.launches else ""
        known = self.bytes > 0 and self.us > 0
        return (
            name, self.launches or "", one, f"{self.us:.1f}", f"{100 * self.us / total:.1f}",
            _amount(self.bytes / 1e6) if known else "",
            _amount(self.bytes / self.us / 1e3) if known else "",
            floor(of, self.bytes) if known else "",
            _amount(self.operations / self.us / 1e6) if known else "",
        )  # fmt: skip


def _amount(number: float) -> str:
    return (
        f"{number:,.0f}" if number >= 1000 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"
    )


def floor(of: Profile, bytes_: float) -> str:
    """us that plain reads of so many bytes take; "" where they were not measured."""
    return _amount(1e6 * bytes_ / of.read_rate) if of.read_rate else ""


def kernels(of: Profile) -> list[Row]:
    """A line for each kernel of the step in order of its first launch, then what ends the step."""
    costs: dict[str, Cost] = {}
    for p, us in zip(of.launches, of.spans, strict=False):
        costs[p.kernel] = _sum(costs.get(p.kernel), cost_of(p, of.rows, of.position, float(us)))
    advance, gap = map(float, of.spans[-2:])
    all_ = Cost(0, float(of.spans.sum()), 0, 0)
    for cost in costs.values():
        all_ = _sum(all_, Cost(cost.launches, 0, cost.bytes, cost.operations))
    return [
        *(cost.row(name, of) for name, cost in costs.items()),
        Cost(1, advance, 0, 0).row(ADVANCE, of),
        Cost(0, gap, 0, 0).row(GAP, of),
        _sum(all_, Cost(1, 0, 0, 0)).row("step", of, each=False),
    ]


def cost_of(p: Planned, rows: int, position: int, us: float) -> Cost:
    return Cost(1, us, bytes_of(p, rows, position), operations_of(p, rows, position))


def _sum(a: Cost | None, b: Cost) -> Cost:
    if a is None:
        return b
    return Cost(
        a.launches + b.launches, a.us + b.us, a.bytes + b.bytes, a.operations + b.operations
    )


def statements(of: Profile) -> list[Row]:
    """A line for each statement of the program, in its order, and what belongs to none."""
    known = Statements(of.made)
    times: dict[tuple[int, int], float] = {}
    texts: dict[tuple[int, int], str] = {}
    for p, us in zip(of.launches, of.spans, strict=False):
        for at, (text, share) in known.shares(p, of.rows, of.position).items():
            times[at] = times.get(at, 0.0) + share * float(us)
            texts[at] = text
    total = float(of.spans.sum())
    lines = [(times[at], texts[at]) for at in sorted(times)]
    lines.append((float(of.spans[-2:].sum()), f"({ADVANCE}, and the way {GAP})"))
    return [(f"{us:.1f}", f"{100 * us / total:.1f}", text) for us, text in lines]


def title(of: Profile) -> str:
    rows = f"{of.rows} row{'s' if of.rows > 1 else ''}"
    steps = f"mean of the middle {len(of.counted)} of {len(of.steps)} steps"
    return f"a step of {rows}, {of.position} positions of its sequence seen; {steps}"


def reading(of: Profile) -> str:
    rate = f"{_amount(of.read_rate / 1e9)} GB/s" if of.read_rate else "too little was free"
    return f"plain reads of the memory, in the same run: {rate}"


def repeated(of: Profile) -> str:
    """What was found of a kernel alone."""
    rows, position = of.last
    launches = [p for p in of.made.plan.step(rows) if p.kernel == of.asked.only]
    bytes_ = sum(bytes_of(p, rows, position) for p in launches) / len(launches)
    times = [ns / 1000 for ns in of.repeated]
    middle = median(times)
    return (
        f"{of.asked.only}: {len(times)} launches, {len(launches)} of a step in turn: "
        f"median {middle:.2f} us, mean {mean(times):.2f}, least {min(times):.2f}, "
        f"most {max(times):.2f}; "
        f"{_amount(bytes_ / 1e6)} MB, {_amount(bytes_ / middle / 1e3)} GB/s, "
        f"floor {floor(of, bytes_) or '?'} us"
    )


def trace(of: Profile) -> bytes:
    """Every step as Chrome's trace events (ui.perfetto.dev opens them): us since the first."""
    names = [("process_name", 0, of.made.program.name)]
    names += [("thread_name", tid, name) for tid, name in enumerate(TRACKS)]
    events: list[dict[str, object]] = [
        {"name": what, "ph": "M", "pid": 0, "tid": tid, "args": {"name": name}}
        for what, tid, name in names
    ]
    for number, step in enumerate(of.steps):
        events += _events(of, number, step)
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}).encode()


def _events(of: Profile, number: int, step: Step) -> Iterator[dict[str, object]]:
    """A step, its launches, and of each launch how long it was there before it was let through."""
    start, end = int(step.waited[0]), int(step.waited[-1])
    rows = f"{step.rows} row{'s' if step.rows > 1 else ''}"
    yield _event(f"step {number}: {rows}", 0, start, end, {"position": step.position})
    launches = of.made.plan.step(step.rows)
    names = [*(p.kernel for p in launches), ADVANCE]
    for i, name in enumerate(names):
        came, begin, until = (int(t) for t in (step.came[i], step.waited[i], step.waited[i + 1]))
        args: dict[str, object] = {"launch": i}
        if i < len(launches):
            p = launches[i]
            args |= {
                "lines": program_lines(of.made.plan.graph, p.nodes),
                "bytes": bytes_of(p, step.rows, step.position),
            }
        yield _event(name, 1, begin, until, args)
        yield _event(name, 2 + i % 2, came, begin, {"launch": i})


def _event(name: str, tid: int, start: int, end: int, args: dict[str, object]) -> dict[str, object]:
    times = {"ts": start / 1000, "dur": (end - start) / 1000}
    return {"name": name, "cat": "monocu", "ph": "X", **times, "pid": 0, "tid": tid, "args": args}
