"""The passes, in one list that is read top to bottom, and the one function that runs them.

run(graph, options, target) is the graph that is planned: lower-numerics always, then every fusion
that options.hold does not name. A fusion changes no bit of any value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from compiler.diagnostics import UserError
from compiler.graph import Graph
from compiler.target import Options, Target
from passes import (
    add_norm,
    add_norm_quant,
    attention_quant,
    combine_residual,
    elementwise_chain,
    elementwise_region,
    embed_norm,
    expert_glu,
    glu,
    head_choose,
    head_epilogue,
    linear_residual,
    lower_numerics,
    moe_route,
    norm_quant,
    sibling_linear,
)
from passes.context import Context


@dataclass(frozen=True)
class Pass:
    """One pass: `kind` is "lowering" (always runs) or "fusion" (can be held back by name).

    saves: one line, what a fusion saves against its ops run apart; passes.saving has the figures.
    """

    name: str
    doc: str
    kind: str
    run: Callable[[Graph, Context], Graph]
    saves: str = ""


PASSES = (
    Pass("lower-numerics", "from real numbers to bits: quantizes, casts, biases apart",
         "lowering", lower_numerics.run),
    Pass("glu", "gate and up projections and what joins them, quantized",
         "fusion", glu.run, "1 or 2 launches, and both projections' ways through memory"),
    Pass("expert-glu", "picked experts' gate and up projections and what joins them, quantized",
         "fusion", expert_glu.run, "2 to 5 launches, and both projections' ways through memory"),
    Pass("head-choose", "the output projection and what the choice of a token needs of it",
         "fusion", head_choose.run, "the choice's way through all logits, and their storing"),
    Pass("linear-residual", "a projection, its residual sum, and the next norm by groups of 32",
         "fusion", linear_residual.run, "1 or 2 launches, and the projection's way through memory"),
    Pass("head-epilogue", "heads of q, k and v: norms, rope and the writes into the caches",
         "fusion", head_epilogue.run, "all launches but one, and the heads' ways through memory"),
    Pass("combine-residual", "the sum of a row's experts, its residual sum, the next norm by 32",
         "fusion", combine_residual.run, "1 or 2 launches, and the sum's way through memory"),
    Pass("moe-route", "the choice of experts, and their shares",
         "fusion", moe_route.run, "1 to 8 launches, and the scores read once"),
    Pass("attention-quant", "attention, its gate and the quantizing of that",
         "fusion", attention_quant.run, "1 to 3 launches, and attention's way through memory"),
    Pass("embed-norm", "gathered rows, a table's or the wanted ones, and their norm, quantized",
         "fusion", embed_norm.run, "1 to 4 launches, and the rows read once"),
    Pass("add-norm-quant", "a sum, its norm and the quantizing of that",
         "fusion", add_norm_quant.run, "2 to 4 launches, and the sum and the norm read once"),
    Pass("norm-quant", "a norm and the quantizing of it",
         "fusion", norm_quant.run, "1 or 2 launches, and the norm's input read once"),
    Pass("add-norm", "a sum and the norms of it and of what is added",
         "fusion", add_norm.run, "1 launch or more, and the sum's way through memory"),
    Pass("sibling-linear", "projections of one activation, with their factors and biases",
         "fusion", sibling_linear.run, "all launches but one, and the epilogues' reads and writes"),
    Pass("elementwise-region", "a graph of elementwise ops over the same rows",
         "fusion", elementwise_region.run, "all launches but one, and the inner values"),
    Pass("elementwise-chain", "a run of elementwise ops over the same rows",
         "fusion", elementwise_chain.run, "all launches but one, and the inner values"),
)  # fmt: skip

OnPass = Callable[[str, Graph, Graph], None]  # name, graph before, graph after


def names() -> tuple[str, ...]:
    """The passes that can be held back, in order."""
    return tuple(p.name for p in PASSES if p.kind == "fusion")


def run(
    graph: Graph,
    options: Options,
    target: Target,
    on_pass: OnPass | None = None,
    on_rule: Callable[[str], None] = lambda name: None,
) -> Graph:
    """All passes but those held back.

    on_pass is told of each pass that ran, changed or not; on_rule of each rewrite by its rule.
    """
    context = Context(options, target, on_rule)
    for p in chosen(options):
        before, graph = graph, p.run(graph, context)
        if on_pass:
            on_pass(p.name, before, graph)
    return graph


def chosen(options: Options) -> tuple[Pass, ...]:
    """The passes that are not held back."""
    check_hold(options.hold)
    return tuple(p for p in PASSES if p.name not in options.hold)


def check_hold(hold: tuple[str, ...]) -> None:
    """UserError where a name is none of a pass that can be held back."""
    for name in hold:
        if name in names():
            continue
        if name in [p.name for p in PASSES]:
            raise UserError(f"{name} always runs; what can be held back: {', '.join(names())}")
        near = get_close_matches(name, names(), 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UserError(f"there is no pass {name}{hint}; there are {', '.join(names())}")
