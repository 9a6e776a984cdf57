"""Text to syntax tree. Every syntax error of a file is reported at once, where a line can be left
out without harm; CRLF, tabs, a byte order mark and a missing final newline are fine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from lark import Lark, Token, UnexpectedInput

from compiler.diagnostics import Diagnostic, ProgramError, Span
from frontend import tree
from frontend.builder import EXPR, Builder
from frontend.syntax_errors import explain
from frontend.tokens import Token as Mark
from frontend.tokens import code_end, scan, unclosed, unclosed_brace

GRAMMAR = Path(__file__).with_name("grammar.lark")
MAX_NESTING = 50  # of brackets, and of signs before a value
MAX_ERRORS = 20


class NestingError(Exception):
    """More than MAX_NESTING open brackets or signs in a row."""

    def __init__(self, token: Token, what: str) -> None:
        super().__init__(what)
        self.token, self.what = token, what


class _Newlines:
    """The post-lexer: drops newlines inside ( and [, bounds nesting."""

    always_accept = ("_NL",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        opened: list[Token] = []
        signs = 0
        for token in stream:
            signs = signs + 1 if token.type in ("MINUS", "NOT") else 0
            if token.type in ("LPAR", "LSQB", "LBRACE"):
                opened.append(token)
            elif token.type in ("RPAR", "RSQB", "RBRACE") and opened:
                opened.pop()
            if len(opened) > MAX_NESTING or signs > MAX_NESTING:
                raise NestingError(token, "signs" if signs else "brackets")
            if token.type == "_NL" and opened and opened[-1].type != "LBRACE":
                continue
            yield token


@lru_cache
def lark(strict: bool = False) -> Lark:
    """The parser's tables; `strict` (tests, needs interegular) makes any ambiguity an error."""
    return Lark(
        GRAMMAR.read_text(),
        parser="lalr",
        start=["start", "expression"],
        strict=strict,
        propagate_positions=True,
        maybe_placeholders=False,
        postlex=_Newlines(),
    )


def parse(text: str, file: str = "<text>") -> tree.Tree:
    """The tree of a program. Raises ProgramError with every syntax error found."""
    built = _parse(text, file, "start")
    assert isinstance(built, tree.Tree)
    return built


def parse_expression(text: str, file: str = "<text>") -> tree.Expr:
    """The tree of one expression, such as a rule's pattern. Raises ProgramError."""
    built = _parse(text, file, "expression")
    assert isinstance(built, EXPR)
    return built


def _parse(text: str, file: str, start: str) -> object:
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").rstrip("\n") + "\n"
    lines = text.split("\n")
    errors: list[Diagnostic] = []
    while True:
        try:
            root = lark().parse("\n".join(lines), start)  # pyright: ignore[reportUnknownMemberType]
            break
        except (UnexpectedInput, NestingError) as error:
            diagnostic, last = _diagnose(error, lines, file)
            errors.append(diagnostic)
            if len(errors) == MAX_ERRORS or not _blank(lines, diagnostic.span.line, last):
                raise ProgramError(errors, text) from None
    builder = Builder(file, text)
    built = builder.build(root)
    errors += [*builder.errors, *builder.large.values()]
    if errors:
        raise ProgramError(errors, text)
    return built


def _diagnose(
    error: UnexpectedInput | NestingError, lines: list[str], file: str
) -> tuple[Diagnostic, int]:
    """The error and the last line that it spoils."""
    if isinstance(error, NestingError):
        token = error.token
        assert token.line and token.column
        message = f"{error.what} are nested at most {MAX_NESTING} deep, here they are deeper"
        return Diagnostic(Span(file, token.line, token.column, token.column + 1), message), 0
    line, col, length, message = explain(error, lines)
    tokens = scan("\n".join(lines))
    col = min(col, code_end(tokens, line))  # a missing end of line is in front of the comment
    bracket = unclosed(tokens, line, col)
    if bracket is not None and bracket.line < line:
        close = {"(": ")", "[": "]"}[bracket.text]
        message = f"`{close}` is needed to close this `{bracket.text}`"
        return Diagnostic(_at(file, bracket), message), bracket.line
    brace = unclosed_brace(tokens) if line >= len(lines) - 1 else None
    if brace is not None and message.startswith("`}`"):
        return Diagnostic(_at(file, brace), message), 0
    return Diagnostic(Span(file, line, col, col + max(1, length)), message), line


def _at(file: str, token: Mark) -> Span:
    return Span(file, token.line, token.col, token.col + len(token.text))


def _blank(lines: list[str], first: int, last: int) -> bool:
    """Leave the lines out, keeping what they open; False where that cannot be done."""
    spoiled = [t.text for t in scan("\n".join(lines[first - 1 : last])) if t.text.strip()]
    if not spoiled:
        return False
    opened = spoiled.count("{") - spoiled.count("}")
    stub = {"for": "if 0 {", "if": "if 0 {", "def": "def x() {"}.get(spoiled[0], "")
    if opened not in (0, 1) or (opened == 1 and not stub):
        return False
    lines[first - 1 : last] = [stub if opened else "", *[""] * (last - first)]
    return True
