"""The exact arithmetic in NumPy: which operations, in which order, which of them fused.

Every float32 operation is one IEEE operation. Nothing depends on rows, tiles or threads.
"""

from compiler.exact.attention import attention
from compiler.exact.fma import fma, fma_full
from compiler.exact.frame import frame_dot, matmul
from compiler.exact.functions import erf, exp, log, tanh
from compiler.exact.quantize import quantize, quantize2
from compiler.exact.rotary import rope_table, sincos
from compiler.exact.rounding import bf16_bits, rint, round_bf16, round_f16, to_f16
from compiler.exact.sums import maximum, minimum, row_max, tree_sum
from compiler.exact.weights import quantized_dot, weight_dot

__all__ = [
    "attention",
    "bf16_bits",
    "erf",
    "exp",
    "fma",
    "fma_full",
    "frame_dot",
    "log",
    "matmul",
    "maximum",
    "minimum",
    "quantize",
    "quantize2",
    "quantized_dot",
    "rint",
    "rope_table",
    "round_bf16",
    "round_f16",
    "row_max",
    "sincos",
    "tanh",
    "to_f16",
    "tree_sum",
    "weight_dot",
]
