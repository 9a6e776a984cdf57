"""Tokens of a `.model` with comments and blanks, for what trees cannot tell: brackets, layout.

Unlike the parser's lexer it never fails: a character that fits nothing is a token of kind "other".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<newline>\n) | (?P<space>[ \t]+) | (?P<comment>\#[^\n]*) | (?P<string>"([^"\\\n]|\\.)*")
    | (?P<number>[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?) | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
    | (?P<symbol>\.\. | [=!<>]= | [-+*/%=<>()\[\]{},:.]) | (?P<other>.)""",
    re.VERBOSE,
)
OPEN, CLOSE = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    line: int  # from 1
    col: int  # from 1


def scan(text: str) -> list[Token]:
    """All tokens of a text with \\n line ends; joined they are the text."""
    tokens: list[Token] = []
    line, start = 1, 0
    for match in _TOKEN.finditer(text):
        kind = next(k for k in _KINDS if match[k] is not None)
        tokens.append(Token(kind, match.group(), line, match.start() - start + 1))
        if kind == "newline":
            line, start = line + 1, match.end()
    return tokens


_KINDS = ("newline", "space", "comment", "string", "number", "name", "symbol", "other")


def code_end(tokens: list[Token], line: int) -> int:
    """The column behind a line's last token that is no comment."""
    kinds = ("space", "comment", "newline")
    return max(
        (t.col + len(t.text) for t in tokens if t.line == line and t.kind not in kinds), default=1
    )


def unclosed(tokens: list[Token], line: int, col: int) -> Token | None:
    """The innermost ( or [ that is open at a place and that nothing closes before a { or }."""
    stack: list[Token] = []
    for token in tokens:
        if (token.line, token.col) >= (line, col):
            break
        if token.text in ("(", "["):
            stack.append(token)
        elif token.text in (")", "]") and stack:
            stack.pop()
        elif token.text in ("{", "}"):
            stack.clear()
    return stack[-1] if stack and not _closed(tokens, stack[-1]) else None


def _closed(tokens: list[Token], bracket: Token) -> bool:
    depth = 0
    for token in tokens[tokens.index(bracket) :]:
        if token.text in ("{", "}"):
            return False
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth == 0:
            return True
    return False


def unclosed_brace(tokens: list[Token]) -> Token | None:
    """The `{` that lacks its `}`: one whose `}` is less indented, else the innermost left open."""
    indent = {t.line: t.col for t in reversed(tokens) if t.kind not in ("space", "newline")}
    stack: list[Token] = []
    for token in tokens:
        if token.text == "{":
            stack.append(token)
        elif token.text == "}" and stack:
            opened = stack.pop()
            if opened.line != token.line and indent[token.line] < indent[opened.line]:
                return opened
    return stack[-1] if stack else None
