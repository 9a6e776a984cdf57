"""The exact arithmetic in NumPy: which operations, in which order, which of them fused.

Every float32 operation is one IEEE operation. Nothing depends on rows, tiles or threads.
"""

from compiler.exact.fma import fma, fma_full
from compiler.exact.functions import erf, exp, log, tanh
from compiler.exact.quantize import quantize, quantize2
from compiler.exact.rotary import rope_table, sincos
from compiler.exact.rounding import bf16_bits, rint, round_bf16, round_f16, to_f16
from compiler.exact.sums import maximum, minimum, row_max, tree_sum

__all__ = [
    "bf16_bits",
    "erf",
    "exp",
    "fma",
    "fma_full",
    "log",
    "maximum",
    "minimum",
    "quantize",
    "quantize2",
    "rint",
    "rope_table",
    "round_bf16",
    "round_f16",
    "row_max",
    "sincos",
    "tanh",
    "to_f16",
    "tree_sum",
]
