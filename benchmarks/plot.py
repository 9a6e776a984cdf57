"""Share of the memory's speed over the bytes that a token reads: ours beside peers' figures.

    python benchmarks/plot.py [--results DIR] [--out bandwidth]

Reads results/*.json and peers.json, writes OUT.png and OUT.svg; needs matplotlib (extra `bench`).
Filled marks were measured on the card of ours, as a share of plain reads; open ones are published,
of other cards, mostly as a share of the datasheet's figure.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SCHEMA = "schema.json"
MARKERS = "osD^vPX*<>hp"
TICKS = (0.5, 1, 2, 5, 10, 20)


@dataclass(frozen=True)
class Point:
    """A decode figure. gigabytes: read a token; share: of the memory's speed; here: measured on
    the card of ours."""

    series: str
    label: str
    gigabytes: float
    share: float
    here: bool


def ours(folder: Path) -> tuple[Point, ...]:
    """A point for each decode test at depth 0 on a GPU; of one that several files have the last."""
    points: dict[tuple[str, str], Point] = {}
    for path in sorted(folder.glob("*.json")):
        if path.name == SCHEMA:
            continue
        for run in json.loads(path.read_text())["runs"]:
            for test in run["tests"]:
                known = test["bandwidth_share"] is not None  # only of what decodes
                if known and not test["n_depth"] and run["target"] == "cuda":
                    point = _ours(run, test)
                    points[point.series, point.label] = point
    return tuple(points.values())


def _ours(run: Mapping[str, Any], test: Mapping[str, Any]) -> Point:
    model, _, kind = run["model"].rpartition("-")
    gigabytes = test["bytes_per_token"] / 1e9
    series = f"monocu {kind} on {run['device'].removeprefix('NVIDIA ')}"
    return Point(series, model, gigabytes, test["bandwidth_share"], True)


def peers(path: Path = HERE / "peers.json") -> tuple[Point, ...]:
    return tuple(
        Point(
            f"{p['project']} on {p['device']}",
            f"{p['model']} {p['type']}",
            p["gb_per_token"],
            p["share"],
            p["measured_here"],
        )
        for p in json.loads(path.read_text())
    )


def draw(own: Sequence[Point], others: Sequence[Point], out: Path) -> tuple[Path, Path]:
    """Writes the plot; the paths of PNG and SVG."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "monocu"  # the same points give the same file
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(10, 6), layout="constrained")
    for index, series in enumerate(dict.fromkeys(p.series for p in (*own, *others))):
        some = [p for p in (*own, *others) if p.series == series]
        is_own = series.startswith("monocu")
        axes.plot(
            [p.gigabytes for p in some],
            [100 * p.share for p in some],
            MARKERS[index % len(MARKERS)],
            label=series,
            color=f"C{index % 10}",
            markersize=10 if is_own else 7,
            fillstyle="full" if some[0].here else "none",
        )
        for point in some:
            axes.annotate(
                point.label,
                (point.gigabytes, 100 * point.share),
                xytext=(5, -11 if is_own else 4),  # ours stand where peers' do
                textcoords="offset points",
                fontsize=7,
            )
    axes.set_xscale("log")
    axes.set_xlim(0.5, 30)
    axes.set_xticks(TICKS, [str(tick) for tick in TICKS])
    axes.minorticks_off()
    axes.set_ylim(0, 100)
    axes.set_xlabel("GB read a token (weights and cache)")
    axes.set_ylabel("% of the memory's speed")
    axes.set_title("Decoding, one sequence. Filled: measured on one card; open: published")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1))
    paths = (out.with_suffix(".png"), out.with_suffix(".svg"))
    figure.savefig(paths[0], dpi=150, metadata={"Software": None})
    figure.savefig(paths[1], metadata={"Date": None})
    pyplot.close(figure)
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--out", type=Path, default=HERE / "bandwidth")
    args = parser.parse_args()
    own = ours(args.results)
    for path in draw(own, peers(), args.out):
        print(f"{path}: {len(own)} figures of ours")


if __name__ == "__main__":
    main()
