"""monocu in Python: load a program, compile it, run it, hold it against the reference VM.

    import monocu

    model = monocu.load("norm_matmul_softmax")  # or a path, a text, or a checkpoint beside it
    y = monocu.vm(model)["softmax"]             # NumPy arrays by result name; no compiler needed
    compiled = monocu.compile(model)
    print(compiled.text)                        # the one .cu
    y = monocu.run(compiled)["softmax"]         # built by g++ (or nvcc) and run
    print(monocu.diff(compiled))                # compared N values: 0 bits differ

Models take prompts, lists of token ids, and give `Generated`: tokens and logits. What is wrong with
a program, a checkpoint or the machine is a `monocu.UserError` whose `code` is the exit code.
"""

from compiler.api.building import build, compile
from compiler.api.comparing import diff
from compiler.api.reference import vm
from compiler.api.running import run
from compiler.api.values import Generated
from compiler.diagnostics import ProgramError, UserError
from compiler.pipeline import Compiled, Model, load
from compiler.target import Options
from runtime.compare import Difference, Report

__all__ = [
    "Compiled",
    "Difference",
    "Generated",
    "Model",
    "Options",
    "ProgramError",
    "Report",
    "UserError",
    "build",
    "compile",
    "diff",
    "load",
    "run",
    "vm",
]
