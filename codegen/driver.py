"""The driver's text: the C++ files of lib/driver in the order in which a program ends with them.
Contract: they use only what the generated part above them defines (templates/program.cu.j2)."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "lib" / "driver"
COMMON = ("system", "fail", "flags", "npy", "values", "info", "memory")
MODEL = (
    *COMMON,
    *("model_flags", "utf8", "gguf", "gguf_open", "vocabulary", "metadata", "load"),
    *("steps", "session", "output", "report", "model_main"),
)
OP_PROGRAM = (*COMMON, "op_flags", "blocks", "op_values", "op_main")


def driver_text(is_model: bool) -> str:
    """main() and all that it needs, for a model or for an op program."""
    names = MODEL if is_model else OP_PROGRAM
    return "\n".join((FOLDER / f"{name}.h").read_text() for name in names)
