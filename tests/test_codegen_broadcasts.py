"""An operand of every shape that broadcasts, at every place where a fused kernel takes one.

Kernels read such operands by element, by column, by row or once; what a fusion does not take stays
a kernel of its own. The bits are those of the VM with all fusions held back.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from compiler.program import Program
from compiler.target import Options
from runtime import toolchain
from runtime.vm import run_program
from tests.merged import compiled, groups, kinds_of_values, merged, rows_values, run
from tests.op_programs import lowered
from tests.samples import program_of
from tests.test_codegen_ops import differences

PLAIN = "input x: f32[{lead}64]\ninput w: {f}[96, 64]\ninput u: {f}[96, 64]\ninput s: f32{s}\n"
WIDE = "input x: f32[{lead}96]\ninput w: {f}[40, 96]\ninput g: f32[96]\ninput s: f32{s}\n"
OVER_OUTPUTS = (  # s beside f32[lead, 96]
    f"{PLAIN}return linear(x, w) + s\n",
    f"{PLAIN}return linear(x, w) * s\n",
    f"{PLAIN}return s + linear(x, w) * s\n",
    f"{PLAIN}return linear(x, w) * s, linear(x, u) + s\n",
    f"{PLAIN}return silu(linear(x, w) + s) * linear(x, u) * s\n",
    f"{PLAIN}r = linear(x, w)\ny = s * r + r\nreturn y, rmsnorm(y, eps=1e-6)\n",
    f"{WIDE}h = x + s\nreturn linear(rmsnorm(h, g, 1e-6), w), h\n",
    f"{WIDE}return linear(gelu_tanh(x * s) - s, w)\n",
    f"{WIDE}return softmax(s * x) + s\n",
)
ATTENTION = (
    "input q: f32[3, 2, 48]\ninput k: f32[3, 1, 48]\ninput s: f32{s}\ninput w: {f}[40, 96]\n"
    "input r: rows[3]\ncache c {{ k [1, 48] }}\nc.k = append(c.k, k)\n"
    "a = attention(q, c.k, c.k)\nreturn linear(s * a * sigmoid(s), w)\n"
)
EXPERTS = (
    "input x: f32[3, 64]\ninput e: {f}[4, 96, 64]\ninput i: i32[3, 2] = [[0, 3], [3, 1], [2, 3]]\n"
    "input share: f32[3, 2]\ninput w: {f}[40, 96]\ninput s: f32{s}\n"
    "y = s + combine(expert_linear(x, e, i), share) * s\n"
    "return y, linear(rmsnorm(y, eps=1e-6), w)\n"
)
PICKS = (  # s beside f32[3, 2, 96]
    "input x: f32[3, 64]\ninput e: {f}[4, 96, 64]\ninput u: {f}[4, 96, 64]\n"
    "input i: i32[3, 2] = [[0, 3], [3, 1], [2, 3]]\ninput d: {f}[4, 64, 96]\ninput s: f32{s}\n"
    "h = silu(expert_linear(x, e, i) * s) * (expert_linear(x, u, i) + s)\n"
    "return expert_linear(h, d, i)\n"
)
HEADS = (  # s beside f32[3, 4, 24]
    "input x: f32[3, 96]\ninput k: f32[3, 24]\ninput g: f32[24]\ninput s: f32{s}\n"
    "input r: rows[3]\ncache c {{ k [1, 24] }}\n"
    "q = rope(rmsnorm(heads(x, 4) * s, g, 1e-6) + s, 1e4)\n"
    "c.k = append(c.k, heads(k, 1))\nreturn attention(q, c.k, c.k)\n"
)
TWO_AXES = ("", "[1]", "[96]", "[1, 96]", "[1, 1]", "[3, 96]", "[3, 1]")
THREE_AXES = (
    *("", "[96]", "[1, 1]", "[3, 96]", "[3, 1]", "[2, 1, 1]", "[2, 1, 96]", "[1, 3, 1]"),
    *("[2, 3, 1]", "[2, 3, 96]", "[1, 1, 96]"),
)
OF_PICKS = ("", "[96]", "[2, 1]", "[2, 96]", "[3, 1, 1]", "[3, 2, 1]", "[3, 1, 96]", "[3, 2, 96]")
OF_HEADS = ("", "[24]", "[4, 1]", "[4, 24]", "[3, 1, 1]", "[3, 4, 1]", "[3, 1, 24]", "[3, 4, 24]")


def texts(f: str) -> list[str]:
    """`f`: the weights' format."""
    places = [(t, s, "3, ") for t in (*OVER_OUTPUTS, ATTENTION, EXPERTS) for s in TWO_AXES]
    places += [(t, s, "2, 3, ") for t in OVER_OUTPUTS for s in THREE_AXES]
    places += [(t, s, "") for t in OVER_OUTPUTS for s in ("", "[1]", "[96]")]
    places += [(PICKS, s, "") for s in OF_PICKS] + [(HEADS, s, "") for s in OF_HEADS]
    return [t.format(f=f, s=s, lead=lead) for t, s, lead in places]


def units() -> list[object]:
    """f32 throughout, and quantized: every second place each."""
    out: list[object] = []
    for numerics, f, first in (("f32", "f32", 0), ("int8", "q8_0", 1)):
        named = [
            replace(program_of(text), name=f"{numerics}-{at}")
            for at, text in enumerate(texts(f))
            if at % 2 == first
        ]
        out += [pytest.param(numerics, u, id=u[0].name) for u in groups(named, 60)]
    return out


@pytest.mark.parametrize(("numerics", "unit"), units())
def test_bits_with_an_operand_of_any_shape(numerics: str, unit: list[Program]) -> None:
    whole = merged(unit)
    binary = toolchain.build(compiled(whole, Options(numerics)).text, extra=("-O1",))
    reference, found = lowered(whole, numerics), list[str]()
    rows = rows_values(unit)[0]
    read = {n.attr("name") for n in whole.graph.nodes() if n.op == "input"}
    for kind, values in kinds_of_values(whole).items():
        values = {n: v for n, v in {**values, **rows}.items() if n in read}
        found += differences(unit, run_program(reference, values), run(binary, values), kind)
    assert not found, "\n".join(f + "\n" + text_of(numerics, f) for f in found)


def text_of(numerics: str, difference: str) -> str:
    """The program of a difference, to be run alone."""
    number = int(difference.split(",")[0].split("-")[1])
    return texts("f32" if numerics == "f32" else "q8_0")[number]
