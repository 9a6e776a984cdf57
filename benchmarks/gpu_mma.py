"""Projections of many rows on one GPU (sm_90a): equal bits first, then times.

    python benchmarks/gpu_mma.py [--only equal,time,group] [--keep FILE.cu] [--compile]

Times are of tiles, of forms over row counts, and of builds with a part taken out. The text: helpers
of codegen/lib, tests/cxx/linear_mma.cu (the comparison) and gpu_mma.cu (the times). A line a case;
exit 1 if bits differ. Needs nvcc and a GPU (--compile: nvcc alone).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from codegen import library
from codegen.expr import STRUCTS
from codegen.render import environment
from compiler.formats import FORMATS

ROOT = Path(__file__).parents[1]
HARNESS = (ROOT / "tests/cxx/linear_mma.cu").read_text()
KERNEL, TIMES = (ROOT / "benchmarks/gpu_mma.cu").read_text().split("// ---- times\n")
TILES = "".join(
    (ROOT / f"codegen/lib/{name}.cuh").read_text() for name in ("tile_stages", "linear_mma")
)
COMMAND = (
    *("nvcc", "-std=c++17", "-O3", "-fmad=false", "--split-compile=0", "-diag-suppress", "177"),
    "-gencode=arch=compute_90a,code=sm_90a",
)

# Builds of linear_mma.cuh: what is replaced in it. Only `plain`, `no_hold` and `late_loads` compute
# dots; the others tell what its time is made of.
BUILDS: dict[str, dict[str, str]] = {
    "plain": {},
    "no_hold": {"if (EARLY && j % 2 == 1) hold_loads();": ""},
    "late_loads": {"EARLY = W::OFFSET < 0 && X::WORDS == 1": "EARLY = false"},
    "no_copies": {"    fetch(segment + DEPTH - 1);\n": ""},
    "no_barrier": {"__syncthreads();  // this segment": "// this segment"},
    "no_scale_loads": {
        "d[half] = four_at(s.scales[row + half * 8], at_lane.rows);": """
          for (int b = 0; b < 4; b++) d[half].value[b] = float_of(words[0][b][half]);""",
        "d[side] = four_at(wide.d[tile * 8 + side], at_lane.outputs);": """
          for (int b = 0; b < 4; b++) d[side].value[b] = float_of(levels[b][side]);""",
    },
    "no_floats": {
        "b < 4; b++) {\n      const float scale": "b < 0; b++) {\n      const float scale",
        "t[e] = t[e] + p;": """
          t[e] = t[e] + float_of(unsigned(dot[0][e] ^ dot[1][e] ^ dot[2][e] ^ dot[3][e]));""",
    },
}

WIDE, HALF = "128, 128, 32, 64, 4", "64, 128, 32, 64, 4"
SMALL, THIN, DEEP2 = "64, 64, 16, 32, 4", "128, 64, 32, 32, 3", "128, 128, 32, 64, 3"
# (weights, activations, outputs, inputs, tile, weights side by side, row counts)
EQUAL = (
    ("Q8_0", "Q8", 576, 576, WIDE, 1, (9, 17, 63, 65, 513)),
    ("Q8_0", "Q8", 200, 1184, HALF, 1, (17, 129)),
    ("Q8_0", "Q8", 72, 4096, SMALL, 2, (63, 65)),
    ("Q8_0", "Q8x2", 576, 576, DEEP2, 1, (9, 65)),
    ("Q8_0", "Q8x2", 136, 1536, THIN, 1, (17, 513)),
    ("Q4_1", "Q8", 576, 1536, WIDE, 2, (63, 513)),
    ("Q4_1", "Q8x2", 72, 544, THIN, 1, (9, 65)),
    ("Q4_0", "Q8", 1000, 512, WIDE, 1, (17, 65)),
    ("Q4_0", "Q8x2", 33, 32, SMALL, 1, (64,)),
    ("Q4_1", "Q8", 49152, 576, WIDE, 1, (17,)),
)
BIG = "8192, 4096"
# (tile, blocks an SM that the registers must leave room for)
TIMED_TILES = (
    *(f"{WIDE}, 1", f"{DEEP2}, 1", "128, 128, 64, 32, 4, 1", "128, 128, 32, 32, 4, 1"),
    *("128, 192, 32, 64, 3, 1", f"{HALF}, 2", "64, 128, 32, 32, 4, 2", "128, 64, 32, 32, 4, 2"),
    *(f"{SMALL}, 2", "64, 64, 32, 32, 4, 3"),
)
TWO_WORDS = (f"{DEEP2}, 1", f"{THIN}, 2", f"{THIN}, 1", "64, 64, 16, 32, 3, 2")
FORMS = (f"{SMALL}, 2", "64, 128, 32, 32, 4, 2", f"{WIDE}, 1")


def equal_cases() -> list[str]:
    out = []
    for w, x, n, k, tile, weights, counts in EQUAL:
        for i, rows in enumerate(counts):
            name = f'"{w} {x} {n}x{k} tile {tile}, {weights} weights"'
            plain = str(n * k * rows < 1e9).lower()
            for awkward in ("true", "false")[: 2 if i == 0 else 1]:
                types = f"{w}, {x}, {n}, {k}, DotTile<{tile}, {weights}>"
                out.append(f"bad += compare<{types}>({name}, {rows}, {awkward}, {plain});")
    return out


def timed_cases() -> list[str]:
    """Tiles and builds at 2,048 rows; then which form from how many rows on, at the shapes of an 8B
    model (back to the stream, to the feed-forward's width, back) and of a small one."""
    out = [f"MANY(plain, Q8_0, Q8, {BIG}, {tile}, 2048)" for tile in TIMED_TILES]
    out += [f"MANY({b}, Q8_0, Q8, {BIG}, {WIDE}, 1, 2048)" for b in list(BUILDS)[1:]]
    for w in ("Q4_0", "Q4_1"):
        out += [f"MANY(plain, {w}, Q8, {BIG}, {tile}, 2048)" for tile in (f"{WIDE}, 1", FORMS[1])]
    out.append(f"MANY(late_loads, Q4_0, Q8, {BIG}, {WIDE}, 1, 2048)")
    out += [f"MANY(plain, Q8_0, Q8x2, {BIG}, {tile}, 2048)" for tile in TWO_WORDS]
    out.append(f"MANY(plain, Q4_1, Q8x2, {BIG}, {THIN}, 1, 2048)")
    for shape, warps in (("4096, 4096", 8), ("24576, 4096", 8), ("4096, 12288", 12)):
        for rows in (16, 32, 64, 128, 256, 512):
            if rows <= 64:
                out.append(f"FEW(Q8_0, Q8, {shape}, 1, {warps}, 8, {rows})")
            out += [f"MANY(plain, Q8_0, Q8, {shape}, {form}, {rows})" for form in FORMS]
    for rows in (64, 256, 512, 2048):
        out += [f"MANY(plain, Q4_1, Q8, 1536, 576, {f}, {rows})" for f in (FORMS[0], FORMS[2])]
    return out


def group_cases() -> list[str]:
    """The same by wgmma; last, in case it faults."""
    out = [
        f'bad += compare_group<Q8_0, Q8, {n}, {k}>("wgmma {n}x{k}", {rows});'
        for n, k, rows in ((256, 4096, 128), (384, 576, 200))
    ]
    return out + [f"GROUP(Q8_0, Q8, {BIG}, {depth}, 2048)" for depth in (4, 3)]


def build(name: str, changes: dict[str, str]) -> str:
    """linear_mma.cuh and its kernel, all their names ending in the build's."""
    text = TILES + KERNEL
    for old, new in changes.items():
        assert old in text, f"{name}: linear_mma.cuh has no {old!r}"
        text = text.replace(old, new)
    own = {n for item in library.items() if item.text in TILES for n in item.names} | {"many"}
    return re.sub(r"\b[A-Za-z_]\w*", lambda m: f"{m[0]}_{name}" if m[0] in own else m[0], text)


def program(phases: list[str]) -> str:
    kinds = {"equal": equal_cases, "time": timed_cases, "group": group_cases}
    calls = [case for phase in phases for case in kinds[phase]()]
    body = "\n  ".join(["size_t bad = 0;", *calls, 'printf("%zu results differ\\n", bad);'])
    main = f"int main() {{\n  {body}\n  return bad ? 1 : 0;\n}}\n"
    formats = [FORMATS[name] for name in STRUCTS]
    head = environment().get_template("formats.cu.j2").render(formats=formats, struct=STRUCTS)
    builds = "\n".join(build(name, changes) for name, changes in BUILDS.items())
    lib = "\n\n".join(library.needed(HARNESS + TIMES + builds + main))
    return "\n".join(["#include <cstdint>", head, lib, HARNESS, TIMES, builds, main])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="equal,time,group")
    parser.add_argument("--keep")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    text = program(options.only.split(","))
    if options.keep:
        Path(options.keep).write_text(text)
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "mma.cu"), Path(folder, "mma")
        source.write_text(text)
        start = time.time()
        subprocess.run([*COMMAND, str(source), "-o", str(binary)], check=True)
        print(f"built in {time.time() - start:.0f} s", flush=True)
        return 0 if options.compile else subprocess.run([str(binary)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
