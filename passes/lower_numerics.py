"""lower-numerics: before it a program means real numbers, after it bits. Always first.

What each numerics does to each kind of value:
  caches       stored as options.kv_dtype; what is appended is rounded by a cast
  biases       one more sum behind the projection
  projections  int8, int8x2: activations quantized (1 or 2 words) where the weight is in blocks of
               32; those of f32, f16 and bf16 weights stay f32, as all do in f32
  norms        int8, int8x2: where all readers are projections by block weights, x * w is quantized
               and the norm's factor multiplies the projections: scales per 32 make it lose nothing,
               and the norm's reduction is off the first product's way; the factor is taken from
               sums of squares of each 32, which the producer can leave group by group
  all else     f32
"""

from __future__ import annotations

from compiler.graph import Graph, Node, Note, Value, leaf, node, rebuild
from compiler.ops import apply
from compiler.types import BLOCKS
from passes.context import Context
from passes.pattern import Bound
from passes.rewrite import Rule, Site, rewrite

WORDS = {"f32": 0, "int8": 1, "int8x2": 2}  # words of a quantized activation


def run(graph: Graph, context: Context) -> Graph:
    kv, words = context.options.kv_dtype, WORDS[context.options.numerics]
    stored = graph if kv == "f32" else store_caches(graph, kv)
    return rewrite(stored, rules(words), context)


def rules(words: int) -> tuple[Rule, ...]:
    bias = Rule("bias-apart", "linear(x, w, b)", "linear(x, w) + b")
    if not words:
        return (bias,)
    return (
        bias,
        Rule(
            "norm-behind-projection",
            "linear(rmsnorm(x, g, eps=e), w)",
            f"linear(quantize(x * g, words={words}), w) * rms_factor(x, eps=e)",
            when=_norm_is_projected,
            suffixes={"mul": "scaled", "quantize": "q", "rms_factor": "r"},
        ),
        Rule(
            "plain-norm-behind-projection",
            "linear(rmsnorm(x, eps=e), w)",
            f"linear(quantize(x, words={words}), w) * rms_factor(x, eps=e)",
            when=_norm_is_projected,
            suffixes={"quantize": "q", "rms_factor": "r"},
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


def _by_groups(bound: Bound) -> Value:
    x, eps = bound["x"], bound["e"]
    assert isinstance(x, Value) and isinstance(eps, int | float)
    n = x.type.shape[-1]
    assert isinstance(n, int)
    return apply("root_factor", apply("square_sums", x), n=n, eps=eps)


def _meets_blocks(site: Site) -> bool:
    x, w, *_ = site.match.root.operands
    return x.type.dtype == "f32" and w.type.dtype in BLOCKS


def _norm_is_projected(site: Site) -> bool:
    """Whether all readers of the norm are projections of it by block weights."""
    norm = site.match.nodes[1]
    readers = site.readers(norm)
    return readers is not None and all(_projects(n, norm.result()) for n in readers)


def _projects(n: Node, x: Value) -> bool:
    return n.op == "linear" and n.operands[0] == x and n.operands[1].type.dtype in BLOCKS


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
