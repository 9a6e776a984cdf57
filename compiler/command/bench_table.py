"""A document of `monocu bench` as llama-bench's table, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HEAD = ("model", "size", "params", "backend", "numerics", "test", "t/s", "GB/token", "of reads")
RIGHT = (1, 2, 5, 6, 7, 8)


def markdown(found: Mapping[str, Any]) -> str:
    """The table, then a line on the machine and one on what else was measured."""
    same = (
        found["model"],
        size(found["model_size"]),
        parameters(found["model_n_params"]),
        found["target"].upper() if found["target"] == "cuda" else found["target"],
        found["numerics"],
    )
    rows = [(*same, *_figures(test)) for test in found["tests"]]
    return "\n".join((*_table(rows), "", *_remarks(found)))


def size(count: int) -> str:
    """As llama-bench says it."""
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.2f} MiB"


def parameters(count: int) -> str:
    """As llama-bench says it."""
    return f"{count / 1e9:.2f} B" if count >= 1e9 else f"{count / 1e6:.2f} M"


def _figures(test: Mapping[str, Any]) -> tuple[str, ...]:
    read, share = test["bytes_per_token"], test["bandwidth_share"]
    return (
        test["test"],
        f"{test['median_ts']:.2f} ± {test['stddev_ts']:.2f}",
        "" if read is None else f"{read / 1e9:.3f}",
        "" if share is None else f"{100 * share:.1f} %",
    )


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    wide = [max(len(row[c]) for row in (HEAD, *rows)) for c in range(len(HEAD))]

    def line(row: Sequence[str]) -> str:
        cells = [
            cell.rjust(w) if c in RIGHT else cell.ljust(w)
            for c, (cell, w) in enumerate(zip(row, wide, strict=True))
        ]
        return f"| {' | '.join(cells)} |"

    rule = ["-" * (w - 1) + ":" if c in RIGHT else "-" * w for c, w in enumerate(wide)]
    return [line(HEAD), line(rule), *map(line, rows)]


def _remarks(found: Mapping[str, Any]) -> tuple[str, ...]:
    device = f"{found['device']}, driver {found['driver']}" if found["driver"] else found["device"]
    times = ", ".join(
        f"{name} {found[f'{name}_seconds']:.2f} s"
        for name in ("compile", "build", "load", "capture")
    )
    rate = found["read_bytes_per_second"]
    reads = f"{rate / 1e9:,.1f} GB/s" if rate else "not measured, for want of memory"
    return (
        f"{device}; plain reads {reads}; "
        f"memory {found['peak_bytes'] / 2**30:.2f} GiB at most; {times}",
        f"commit {found['commit'] or 'unknown'}; {found['command']}",
    )
