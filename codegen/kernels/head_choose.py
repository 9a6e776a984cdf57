"""`head-choose`: see projected.py."""

from codegen.kernels.projected import plan

__all__ = ["plan"]
