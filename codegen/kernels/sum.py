"""`sum` over an axis; see reduce.py."""

from codegen.kernels.reduce import plan

__all__ = ["plan"]
