"""The small checkpoint that the programs of tests/errors are elaborated with."""

from compiler.program import Metadata
from compiler.types import Type

METADATA = Metadata(
    "toy.gguf",
    {
        "general.architecture": "toy",
        "toy.block_count": 2,
        "toy.embedding_length": 64,
        "toy.context_length": 128,
        "toy.windows": [0, 32],
    },
    {
        "token_embd.weight": Type("q8_0", (96, 64)),
        "blk.0.norm.weight": Type("f32", (64,)),
        "blk.1.norm.weight": Type("f32", (64,)),
        "blk.0.odd.weight": Type("f32", (3,)),
        "blk.1.odd.weight": Type("f32", (3,)),
        "blk.0.big.weight": "Q3_K",
        "blk.1.big.weight": "Q3_K",
    },
)
