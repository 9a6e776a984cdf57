"""The driver's text: the C++ files of lib/driver in the order in which a program ends with them.
Contract: they use only what the generated part above them defines (templates/program.cu.j2).

Lines that begin with `//%` are Jinja's: what a build for measuring has beside the rest.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from compiler.target import Options

FOLDER = Path(__file__).parent / "lib" / "driver"
COMMON = ("system", "fail", "flags", "npy", "values", "info", "memory")
MODEL = (
    *COMMON,
    *("bench_tests", "model_flags", "utf8", "gguf", "gguf_open", "vocabulary", "metadata"),
    *("synthetic", "load", "steps", "session", "output", "report"),
    *("read_rate", "bench", "model_main"),
)
OP_PROGRAM = (*COMMON, "op_flags", "blocks", "op_values", "op_main")
LINE = "//%"
PLAIN = Options()


@cache
def driver_text(is_model: bool, options: Options = PLAIN) -> str:
    """main() and all that it needs, for a model or for an op program."""
    *names, last = MODEL if is_model else OP_PROGRAM
    if is_model and options.timed:
        names.append("times")
    texts = ((FOLDER / f"{name}.h").read_text() for name in (*names, last))
    return "\n".join(_rendered(text, options) for text in texts)


def _rendered(text: str, options: Options) -> str:
    if LINE not in text:
        return text
    env = Environment(
        undefined=StrictUndefined,
        line_statement_prefix=LINE,
        keep_trailing_newline=True,
        autoescape=False,
        # What only lines may say has delimiters that no C++ has.
        block_start_string="\1{%",
        block_end_string="%}\1",
        variable_start_string="\1{{",
        variable_end_string="}}\1",
        comment_start_string="\1{#",
        comment_end_string="#}\1",
    )
    return env.from_string(text).render(options=options)
