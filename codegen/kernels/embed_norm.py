"""`embed-norm`: see row.py."""

from codegen.kernels.row import plan

__all__ = ["plan"]
