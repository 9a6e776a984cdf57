"""`attention-quant`: the fused form of `attention`; see attention.py."""

from codegen.kernels.attention import plan

__all__ = ["plan"]
