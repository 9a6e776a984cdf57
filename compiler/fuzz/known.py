"""Programs that are known as cases: the samples of every op, the example op programs, and programs
that meet special values.

Each in all numerics, once with every fusion held back and once with all of them, where that makes
another graph.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import examples
import passes
from compiler.fuzz import spell
from compiler.fuzz.generate import UNIT, Case
from compiler.fuzz.special_cases import special_cases
from compiler.fuzz.truths import truth_cases
from compiler.ops import load
from compiler.target import HOST, NUMERICS


@cache
def known_units() -> list[list[Case]]:
    """All of them, cut into units: cases of the same rows, with equal options together."""
    groups: dict[object, list[Case]] = {}
    seen: set[object] = set()
    programs = [*known_programs(), *special_cases(), *truth_cases()]
    for numerics in NUMERICS:
        for hold in ((), passes.names()):
            for case in programs:
                options = replace(case.options, numerics=numerics, hold=hold)
                name = f"{case.name}-{numerics}{'-held' if hold else ''}"
                graph = passes.run(case.program.graph, options, HOST)
                if (case.name, graph.roots) in seen:
                    continue
                seen.add((case.name, graph.roots))
                key = (case.places.tobytes(), numerics, hold)
                groups.setdefault(key, []).append(replace(case, name=name, options=options))
    return [g[at : at + UNIT] for g in groups.values() for at in range(0, len(g), UNIT)]


def known_programs() -> list[Case]:
    """Each called after its op and number, or after the example."""
    texts = {
        f"{name}-{at}": text
        for name, op in sorted(load().items())
        for at, text in enumerate(op.samples)
    }
    for name in examples.names():
        text = examples.find(name).read_text()
        if "def forward" not in text:
            texts[name] = text
    return [spell.case_of_text(text, name) for name, text in texts.items()]
