"""lower-numerics: before it a program means real numbers, after it bits. Always first.

What each numerics does to each kind of value:
  caches       stored as options.kv_dtype; what is appended is rounded by a cast
  biases       one more sum behind the projection
  projections  int8, int8x2: activations quantized (1 or 2 words) where the weight is in blocks of
               32; those of f32, f16 and bf16 weights stay f32, as all do in f32
  norms        int8, int8x2: where all readers are projections, some of them by block weights, they
               project x * w (quantized: scales per 32 make it lose nothing) and the norm's factor
               multiplies what they give, so that the norm's reduction is off their way; it is
               taken from sums of squares of each 32, which the producer can leave group by group
  choices      of a projection's outputs: by keys that its kernel can leave for each 32
  all else     f32
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler.graph import Graph, Node, Note, Value, leaf, node, rebuild
from compiler.ops import apply
from compiler.types import BLOCKS
from passes.context import Context
from passes.pattern import Bound
from passes.rewrite import Rule, Site, rewrite
from passes.rows import projection_of

WORDS = {"f32": 0, "int8": 1, "int8x2": 2}  # words of a quantized activation


def run(graph: Graph, context: Context) -> Graph:
    kv, words = context.options.kv_dtype, WORDS[context.options.numerics]
    graph = graph if kv == "f32" else store_caches(graph, kv)
    for table in tables(words):
        graph = rewrite(graph, table, context)
    return graph


def tables(words: int) -> tuple[tuple[Rule, ...], ...]:
    """The rules, one table after another: biases first, so that a norm's readers change at once."""
    biases = (Rule("bias-apart", "linear(x, w, b)", "linear(x, w) + b"),)
    return (biases, _quantizing(words), CHOICES) if words else (biases, CHOICES)


def _quantizing(words: int) -> tuple[Rule, ...]:
    return (
        *_norm_rules(words),
        Rule(
            "factor-of-heads-by-groups",
            "rms_factor(heads(x, count=1), eps=e)",
            _by_groups_of_heads,
            suffixes={"square_sums": "s"},
        ),
        Rule("factor-by-groups", "rms_factor(x, eps=e)", _by_groups, suffixes={"square_sums": "s"}),
        Rule(
            "quantize-input",
            "linear(x, w)",
            f"linear(quantize(x, words={words}), w)",
            when=_meets_blocks,
            suffixes={"quantize": "q"},
        ),
        Rule(
            "quantize-expert-input",
            "expert_linear(x, w, index)",
            f"expert_linear(quantize(x, words={words}), w, index)",
            when=_meets_blocks,
            suffixes={"quantize": "q"},
        ),
    )


def _chooses_of_a_projection(site: Site) -> bool:
    x = site.match.root.operands[0]
    return bool(projection_of(x)) and site.match.bound.get("a", -1) in (-1, x.type.rank - 1)


CHOICES = tuple(
    Rule(name, op, "choose_key(choice_keys(x))", _chooses_of_a_projection, {"choice_keys": "keys"})
    for name, op in (("choose-by-keys", "choose(x)"), ("argmax-by-keys", "argmax(x, axis=a)"))
)


def _norm_rules(words: int) -> Iterator[Rule]:
    """Projections of a norm, with and without a weight: of rows, and by picked experts.

    linear(rmsnorm(x, g), w) -> linear(quantize(x * g), w) * rms_factor(x), quantized for weights in
    blocks. Of experts the factor is [T, 1, 1], one for all of a row's picks.
    """
    for norm, value, name in (("rmsnorm(x, g, eps=e)", "x * g", "norm"),
                              ("rmsnorm(x, eps=e)", "x", "plain-norm")):  # fmt: skip
        for by, call, factor in (
            ("projection", "linear({}, w)", "rms_factor(x, eps=e)"),
            ("experts", "expert_linear({}, w, index)", "rms_factor(heads(x, count=1), eps=e)"),
        ):
            for weights, when, given in (
                ("", _norm_meets_blocks, f"quantize({value}, words={words})"),
                ("float-", _norm_is_projected, value),
            ):
                yield Rule(
                    f"{name}-behind-{weights}{by}",
                    call.format(norm),
                    f"{call.format(given)} * {factor}",
                    when,
                    {"mul": "scaled", "quantize": "q", "rms_factor": "r"},
                )


def _by_groups(bound: Bound) -> Value:
    return _root(apply("square_sums", _value(bound)), bound)


def _by_groups_of_heads(bound: Bound) -> Value:
    """The view is of the sums, so that they are those of `x` itself."""
    return _root(apply("heads", apply("square_sums", _value(bound)), count=1), bound)


def _root(sums: Value, bound: Bound) -> Value:
    n, eps = _value(bound).type.shape[-1], bound["e"]
    assert isinstance(n, int) and isinstance(eps, int | float)
    return apply("root_factor", sums, n=n, eps=eps)


def _value(bound: Bound) -> Value:
    x = bound["x"]
    assert isinstance(x, Value)
    return x


def _meets_blocks(site: Site) -> bool:
    x, w, *_ = site.match.root.operands
    return x.type.dtype == "f32" and w.type.dtype in BLOCKS


def _norm_meets_blocks(site: Site) -> bool:
    return site.match.root.operands[1].type.dtype in BLOCKS and _norm_is_projected(site)


def _norm_is_projected(site: Site) -> bool:
    """Whether all readers of the norm are projections of it, one at least by block weights."""
    norm = site.match.nodes[1]
    readers = site.readers(norm) or []
    by_blocks = any(n.operands[1].type.dtype in BLOCKS for n in readers if len(n.operands) > 1)
    return by_blocks and all(_projects(n, norm.result()) for n in readers)


def _projects(n: Node, x: Value) -> bool:
    """Whether `n` is a projection of x and no more of it; experts take rows [T, K] here."""
    is_one = n.op == "linear" or (n.op == "expert_linear" and x.type.rank == 2)
    return is_one and n.operands[0] == x and x not in n.operands[1:]


def store_caches(graph: Graph, dtype: str) -> Graph:
    """The graph whose caches hold `dtype`; what is appended is rounded by a cast of its own."""
    casts: dict[Node, Note] = {}

    def change(old: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        if old.op == "cache" and old.types[0].dtype == "cache_f32":
            stored = old.types[0].with_dtype(f"cache_{dtype}")
            return (leaf("cache", str(old.attr("name")), stored),)
        if old.op == "append" and old.operands[1].type.dtype != dtype:
            cache, x, rows = operands
            rounded = apply("cast", x, dtype=dtype)
            casts.setdefault(rounded.node, _cast_note(graph, old, dtype))
            return (apply("append", cache, rounded, rows),)
        made = node(old.op, operands, dict(old.attrs), old.types)
        return tuple(made.result(i) for i in range(len(old.types)))

    made = rebuild(graph, change)
    return made.with_notes({**casts, **made.notes})


def _cast_note(graph: Graph, append: Node, dtype: str) -> Note:
    name, note = graph.name(append.operands[1]), graph.note(append)
    return Note((f"{name}.{dtype}" if name else None,), note.origins, note.rank)
