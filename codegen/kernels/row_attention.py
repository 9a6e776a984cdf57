"""Heads and attention of a step of one row, one launch in the place of two.

A block makes its head's query, and the row's own key and value, from their projections: keys and
values of earlier positions are in the cache before the step, so that they are read before the wait
for the projections. With more rows a row attends to keys that other blocks make: two launches.
"""

from __future__ import annotations

from codegen.elements import fixed, integer
from codegen.expr import ctype
from codegen.forms import FEW_PAGES
from codegen.kernel import Arg, Context, Grid, Kernel, Launch, Param
from codegen.kernels.arguments import Arguments
from codegen.kernels.attention import MOST_SPLITS, WIDEST, epilogue_lines, score_text
from codegen.kernels.heads import Branch, Ends, angles_of, branches, each, subject, write_lines
from codegen.memory_of import root
from compiler.graph import Node, Value
from compiler.types import ROWS

PAGE = 64  # positions
TEAMS = FEW_PAGES // 2  # pages at once: a block alone takes few pages in two rounds
TEMPLATES = ("int H", "int KV", "int HD", "int WINDOW", "int TEAMS", "int SPLITS")
BYTES = {"float": 4, "uint16_t": 2}  # of a cache's element
PARTS = ("q", "own_key", "own_value")  # where a block has them
NAMED = ("query", "key", "value")
NAMES = {  # the template's own
    *("s", "at", "head", "kv", "warp", "team", "thread", "stored", "pos", "end", "first", "pages"),
    *("page", "blocks", "copies", "stage", "stage_two", "share", "score", "round", "result"),
    *("part", "part_of", "apart", "from", "stride", "until", "own", "mine", "staged", "there"),
    *("row", "d", "keys", "values", "key", "value", "all", "p", "entry", "query", "i", "dot"),
}


def plan(heads: Node, attention: Node, context: Context) -> Launch | None:
    """The launch that computes both nodes in a step of one row; None where two are needed.

    heads: a `head-epilogue` call whose values attention alone reads.
    """
    params, args, taken = list[Param](), list[Arg](), set(NAMES)
    made, to = (Arguments(node, context, taken, params, args) for node in (heads, attention))
    inner = next(m for m in to.members if m.op == "attention")
    q, k, v, *sinks, rows = inner.operands
    width, element = fixed(q.type.shape[-1], "attention"), ctype(k.type)
    runs = width * BYTES[element] % 16 == 0
    if context.options.dump or q.type.shape[0] != ROWS or width > WIDEST or not runs:
        return None  # a dump has what is between them
    to.step(rows)
    angles = angles_of(made, list(made.members))
    parts = _parts(made, to, (q, k, v))
    if not angles or not parts:
        return None
    if _shared_bytes(width, BYTES[element], angles.pairs) > context.target.shared_bytes:
        return None
    _write(made, parts)
    for name, cache in (("keys", k), ("values", v)):
        args.append(Arg("cache", to.actual(cache), writes=True))
        params.append(Param(f"{element}*", name))
    near = _near(params, args, parts)
    texts = [(b.name, _held_lines(b, near)) for b in parts]
    fields = (
        ("element", element),
        ("angles", angles),
        ("heads", tuple((n, *text) for n, text in zip(NAMED, texts, strict=True))),
        ("near", near),
        ("score", score_text(inner, width)),
        ("sinks", to.read(sinks[0], "sinks") if sinks else ""),
        ("epilogue", epilogue_lines(to, inner)),
    )
    sizes = (
        *(parts[0].heads, parts[1].heads, width, integer(inner, "window"), TEAMS),
        _splits(parts[0].heads, context.target.sms),
    )
    shared = f"RowAttentionShared<{element}, {width}, {angles.pairs}, {TEAMS}>"
    return Launch(
        Kernel("row_attention.cu.j2", "row_attention", TEMPLATES, tuple(params), fields),
        tuple(map(str, sizes)),
        tuple(args),
        Grid("1", str(parts[0].heads), _blocks(sizes[-1])),
        str(TEAMS * _team(width)),
        f"sizeof({shared})",
    )


def _splits(heads: int, sms: int) -> int:
    """Blocks of a head: as many as an SM each leaves; their pages take most of one."""
    splits = 1
    while splits < MOST_SPLITS and 2 * splits * heads <= sms:
        splits *= 2
    return splits


def _blocks(splits: int) -> str:
    """Blocks of a head: one where two rounds of its teams take all pages."""
    return f"1 + {splits - 1} * (pages > {FEW_PAGES})" if splits > 1 else "1"


def _parts(
    made: Arguments, to: Arguments, operands: tuple[Value, Value, Value]
) -> list[Branch] | None:
    """The branches that make attention's query, key and value; None where they are others."""
    of: dict[Value, Branch] = {}
    found = branches(made, list(made.members))
    for branch in found:
        of[made.actual(branch.members[-1].result())] = branch
    parts = [of.get(root(to.actual(v))) for v in operands]
    if len(found) != len(PARTS) or None in parts:
        return None
    return [p for p in parts if p is not None]


def _write(made: Arguments, parts: list[Branch]) -> None:
    """The text of each part: from its projection to where the block has it."""
    for number, (branch, held) in enumerate(zip(parts, PARTS, strict=True)):
        source = subject(branch.members[0])
        name = made.read(source, made.called(source))
        branch.lines.append(each(f"{branch.name}[i] = {name}[at + d];"))
        ends = _held(held)
        write_lines(made, branch, f"s.exchange[{number}]", ends)


def _near(params: list[Param], args: list[Arg], parts: list[Branch]) -> tuple[str, ...]:
    """The vectors of weights, such as a norm's, of which a thread reads its own columns."""
    lines = [line for branch in parts for line in branch.lines]
    return tuple(
        p.name
        for p, a in zip(params, args, strict=True)
        if a.value.node.op == "weight" and any(f" {p.name}[d]" in line for line in lines)
    )


def _held_lines(branch: Branch, near: tuple[str, ...]) -> tuple[str, ...]:
    """A branch's lines, where vectors of weights are in registers: `name_near[i]` for `name[d]`."""
    out: list[str] = []
    for line in branch.lines:
        for name in near:
            line = line.replace(f" {name}[d]", f" {name}_near[i]")
        out.append(line if "d]" in line else line.replace("(int i, int d)", "(int i, int)"))
    return tuple(out)


def _held(place: str) -> Ends:
    """Ends in the block's shared memory; what else would be stored nobody reads."""

    def store(_: str, value: Value, element: str) -> list[str]:
        return [each(f"s.{place}[d] = {element};")]

    return Ends(store, store)


def _team(width: int) -> int:
    """RowAttentionShared::TEAM."""
    return max(PAGE, -(-width // 32) * 32)


def _shared_bytes(width: int, element: int, pairs: int) -> int:
    """What RowAttentionShared takes, at most."""
    pages = 2 * TEAMS * PAGE * (2 * width * element + 16)
    team, folders = _team(width), -(-width // 32)
    rows = 4 * 32 * folders + 2 * width * element + 8 * pairs + 12 * width
    scores = TEAMS * PAGE * 4 + TEAMS * team // 32 * (PAGE + 4) * 4
    return pages + rows + scores + 2 * TEAMS * (4 * width + 8) + 256 * folders + 256
