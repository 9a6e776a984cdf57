"""What a user is told when something is wrong: exit codes, spans, diagnostics, their printer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

OK, DIFFERENCES, USAGE, CHECKPOINT, TOOLCHAIN, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 4, 70, 130

FEW = 3  # errors that are shown of a checkpoint that is another one
NOTES = 6  # of one error

EXIT_CODES = {
    OK: "success",
    DIFFERENCES: "differences found",
    USAGE: "usage or program",
    CHECKPOINT: "checkpoint",
    TOOLCHAIN: "toolchain or device",
    INTERNAL: "internal error: a bug of monocu",
    INTERRUPTED: "interrupted",
}


class UserError(Exception):
    """A fault of the input, the machine or the command line; `code` is one of EXIT_CODES."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of one line of a source file; line and columns count from 1, `end` is exclusive."""

    file: str
    line: int
    col: int
    end: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error: what is needed and what was given, where; notes say where operands came from."""

    span: Span
    message: str
    notes: tuple[tuple[Span | None, str], ...] = field(default=())


class ProgramError(UserError):
    """All errors of a program at once; `str` is the text that people read.

    Where only the checkpoint is to blame it says the first few: the others are of the same kind.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], source: str, code: int = USAGE) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda d: d.span))
        most = FEW if code == CHECKPOINT else len(self.diagnostics)
        shown = [render(d, source) for d in self.diagnostics[:most]]
        more = len(self.diagnostics) - len(shown)
        shown += [f"and {more} more error{'s' if more > 1 else ''}"] if more else []
        super().__init__("\n".join(shown), code)


def render(diagnostic: Diagnostic, source: str) -> str:
    """`file:line:col: error: ...`, the source line, carets, then a line a note."""
    span, lines = diagnostic.span, source.splitlines()
    out = [f"{span}: error: {diagnostic.message}"]
    if 0 < span.line <= len(lines):
        text = lines[span.line - 1].replace("\t", " ")
        out += [f"    {text}", "    " + " " * (span.col - 1) + "^" * max(1, span.end - span.col)]
    for where, note in diagnostic.notes[:NOTES]:
        out.append(f"  {where}: note: {note}" if where else f"  note: {note}")
    more = len(diagnostic.notes) - NOTES
    return "\n".join([*out, f"  note: and {more} more"] if more > 0 else out)


def cause(error: OSError | UnicodeDecodeError) -> str:
    """Why a file cannot be read, in words."""
    if isinstance(error, UnicodeDecodeError):
        return "it is no text (UTF-8)"
    return error.strerror or str(error)
