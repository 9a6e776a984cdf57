"""The one layout of programs. Works on tokens, so that comments stay, and never changes meaning.

Two spaces a block, four for a line that goes on inside brackets; one space around operators, but
keyword arguments and products in shapes are tight. Columns are made where lines of a kind follow
each other: the `=` of dims and reals, the shapes of weights, the entries of a group's lines, the
comments behind text. At most one blank line. Formatting twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from frontend.syntax import parse
from frontend.tokens import Token, scan

WIDTH = 100
OPERATORS = frozenset(["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "="])
WORDS = frozenset(["return", "in", "if", "and", "or", "not", "as", "else"])
GROUPS = ("weight", "cache", "state")
GROUP = "group"  # the { of a weight, cache or state, on the stack of open brackets


def format_text(text: str, file: str = "<text>") -> str:
    """The text in the one layout. Raises ProgramError where it is no program."""
    lines = _read(scan(parse(text, file).text))
    lines = _in_runs(lines, lambda line: line.kind, _align_parts)
    lines = _in_runs(lines, lambda line: bool(line.parts and line.comment), _align_comments)
    texts = [line.text for line in lines]
    kept = [t for i, t in enumerate(texts) if t or (i and texts[i - 1])]
    body = "\n".join(kept).strip("\n")
    return body + "\n" if body else ""


@dataclass(frozen=True)
class Line:
    """One line. Lines of one kind ("" has no columns) share the columns of their parts."""

    indent: int
    parts: tuple[str, ...]
    kind: str
    comment: str

    @property
    def code(self) -> str:
        return " " * self.indent + " ".join(self.parts) if self.parts else ""

    @property
    def text(self) -> str:
        if not self.parts:
            return " " * self.indent + self.comment if self.comment else ""
        return f"{self.code}  {self.comment}" if self.comment else self.code


# columns


def _in_runs(
    lines: Sequence[Line],
    key: Callable[[Line], object],
    align: Callable[[list[Line]], list[Line]],
) -> list[Line]:
    """`align` of each run of lines that follow each other with the same key that is not empty."""
    runs = [(k, list(run)) for k, run in groupby(lines, key)]
    return [line for k, run in runs for line in (align(run) if k else run)]


def _align_parts(run: list[Line]) -> list[Line]:
    """Every part but a line's last as wide as its column; left alone where a line gets too long."""
    widths: dict[int, int] = {}
    for line in run:
        for i, part in enumerate(line.parts[:-1]):
            widths[i] = max(widths.get(i, 0), len(part))
    out: list[Line] = []
    for line in run:
        padded = [part.ljust(widths[i]) for i, part in enumerate(line.parts[:-1])]
        out.append(replace(line, parts=(*padded, line.parts[-1])))
    return out if all(len(line.code) <= WIDTH for line in out) else run


def _align_comments(run: list[Line]) -> list[Line]:
    width = max(len(line.code) for line in run)
    pad = [width - len(line.code) for line in run]
    return [replace(line, comment=" " * p + line.comment) for line, p in zip(run, pad, strict=True)]


# lines


@dataclass
class _State:
    """Open brackets, and the first word of the statement at hand."""

    stack: list[str] = field(default_factory=list[str])
    head: str = ""

    @property
    def inner(self) -> str:
        return self.stack[-1] if self.stack else ""

    def step(self, token: Token) -> None:
        if token.text == "{":
            self.stack.append(GROUP if self.head in GROUPS else "{")
        elif token.text in ("(", "["):
            self.stack.append(token.text)
        elif token.text in (")", "]", "}") and self.stack:
            self.stack.pop()


def _read(tokens: Sequence[Token]) -> list[Line]:
    state = _State()
    lines: dict[int, list[Token]] = {t.line: [] for t in tokens}
    for t in tokens:
        if t.kind not in ("space", "newline"):
            lines[t.line].append(t)
    return [_line(line, state) for line in lines.values()]


def _line(tokens: list[Token], state: _State) -> Line:
    comment = tokens[-1].text.rstrip() if tokens and tokens[-1].kind == "comment" else ""
    code = tokens[:-1] if comment else tokens
    blocks = [b for b in state.stack if b in ("{", GROUP)]
    goes_on = state.inner in ("(", "[")
    closes = bool(code) and code[0].text in (")", "]", "}")
    indent = 2 * (len(blocks) - (closes and not goes_on)) + 4 * (goes_on and not closes)
    if not goes_on and state.inner != GROUP and code:
        state.head = code[0].text
    kind = _kind(code, state, goes_on)
    return Line(indent, _parts(code, state, kind), kind, comment)


def _kind(code: Sequence[Token], state: _State, goes_on: bool) -> str:
    texts = [t.text for t in code]
    if not code or goes_on:
        return ""
    if state.inner == GROUP:
        return "" if "}" in texts else GROUP
    if texts[0] in ("dim", "real"):
        return "constant"
    return "weight" if texts[0] == "weight" and "{" not in texts else ""


def _parts(code: Sequence[Token], state: _State, kind: str) -> tuple[str, ...]:
    """The line's columns: word, name and rest of a declaration; the entries of a group's line."""
    parts = [""]
    shapes = kind == "weight"
    for i, token in enumerate(code):
        before = code[:i]
        apart = before and before[-1].text == "," and state.inner == GROUP and kind == GROUP
        if apart or (kind in ("constant", "weight") and i in (1, 2)):
            parts.append(token.text)
        else:
            parts[-1] += _space(before, token, state, shapes) + token.text
        state.step(token)
    return tuple(parts) if code else ()


def _space(before: Sequence[Token], token: Token, state: _State, shapes: bool) -> str:
    """What stands between two tokens: a blank or nothing."""
    if not before:
        return ""
    last, text = before[-1], token.text
    if text in (",", ")", "]", ":", ".", "..") or last.text in ("(", "[", ".", ".."):
        return ""
    if _is_sign(before):
        return ""
    if text == "(":
        return " " if last.text in OPERATORS | WORDS | {","} else ""
    if text == "[":
        return _before_shape(before, state, shapes)
    if _tight(text, state) or (_tight(last.text, state) and not _is_sign(before)):
        return ""
    return " "


def _before_shape(before: Sequence[Token], state: _State, shapes: bool) -> str:
    """A blank where [ starts a declared shape or a value, none where it is an index or a type's."""
    last = before[-1]
    if last.text in OPERATORS | WORDS | {","}:
        return " "
    typed = len(before) > 1 and before[-2].text == ":"
    declared = last.kind == "name" and not typed and (state.inner == GROUP or shapes)
    return " " if declared else ""


def _tight(text: str, state: _State) -> bool:
    """`=` of arguments, products in shapes."""
    return (text == "=" and "(" in state.stack) or (text in "*/%" and state.inner == "[")


def _is_sign(before: Sequence[Token]) -> bool:
    """Whether the last token is a minus that is no subtraction."""
    if before[-1].text != "-":
        return False
    if len(before) == 1:
        return True
    previous = before[-2]
    return previous.text in OPERATORS | WORDS | {"(", "[", ",", ".."}
