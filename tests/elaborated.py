"""Elaborated texts, for tests of the frontend."""

from compiler.graph import Graph, Node
from compiler.program import Metadata, Program
from compiler.types import Type
from compiler.verify import verify
from frontend.elaborate import elaborate

X = "input x: f32[4, 8]\n"
ROWS = "input r: rows[4]\ninput q: f32[4, 2, 8]\n"
META = Metadata(
    "toy.gguf",
    {
        "general.architecture": "toy",
        "toy.windows": [0, 32, 0],
        "toy.flag": True,
        "toy.kind": "neox",
    },
    {
        "token_embd.weight": Type("q8_0", (96, 64)),
        **{f"blk.{i}.norm.weight": Type("f32", (64,)) for i in range(3)},
        **{f"blk.{i}.up.bias": Type("f32", (64,)) for i in range(3)},
    },
)
HEAD = """\
weight token_embd [96, 64]
weight blk[3] { norm [64], up_bias [64] as "blk.{}.up.bias", down [64] optional }
"""


def graph(text: str, held: Metadata | None = None) -> Graph:
    return verify(elaborate(text, "p.model", held).graph)


def body(text: str, inputs: str = X) -> Graph:
    return graph(f"{inputs}{text}\n")


def model(forward: str, declared: str = HEAD, held: Metadata = META) -> Program:
    return elaborate(f'{declared}ignore "blk.{{}}.up.bias", "blk.{{}}.norm.weight"\n{forward}',
                     "p.model", held)  # fmt: skip


def same(a: str, b: str, inputs: str = X) -> None:
    """Two texts are one graph, as far as nodes go."""
    assert body(a, inputs).roots == body(b, inputs).roots


def find(g: Graph, name: str) -> Node:
    (found,) = [n for n in g.nodes() if name in g.note(n).names]
    return found
