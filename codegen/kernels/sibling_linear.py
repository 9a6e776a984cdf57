"""`sibling-linear`: the fused form of `linear`; see linear.py."""

from codegen.kernels.linear import plan

__all__ = ["plan"]
