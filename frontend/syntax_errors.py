"""What a syntax error says: one table of what is needed, when, and programs that lack it; the
parser reads it and so does its test."""

from __future__ import annotations

from typing import NamedTuple

from lark import Token, UnexpectedCharacters, UnexpectedInput
from lark.exceptions import UnexpectedToken


class Need(NamedTuple):
    """The first row that fits an error gives its message.

    It fits where the parser would take every token of `takes` and none of `refuses`, and (unless it
    is empty) the token that came is one of `given`; each is a list of terminals.
    """

    message: str
    takes: str
    refuses: str
    given: str
    examples: tuple[str, ...]


NEEDS = (
    Need("digits on both sides of a number's point are needed", "", "DOT", "DOT",
         ("x = 1.e-6", "x = .5", "x = f(1.)")),
    Need("`=` is needed, since a statement gives a value a name", "EQUAL DOT", "RPAR ADD", "",
         ("x a", "c.k <- k", "x\ny = a", "x[0]", "x, y")),
    Need("a block is needed, since a condition compares two values", "AND LBRACE", "", "CMP",
         ("if a < b < c { x = a }",)),
    Need("an arithmetic operator is needed (a comparison stands only after `if`)", "", "", "CMP",
         ("x = a < b", "x = f(a) == b", "x = (a < b)")),
    Need("a value is needed", "NUMBER LPAR", "", "",
         ("x = a +", "x = f(a,, b)", "x = a ** b", "return", "x = f(a=)", "x = a[]", "if {", "x =",
          "x = -", "dim D = ")),
    Need("a number or an array of numbers is needed", "NUMBER", "", "",
         ("input x: i32[2] = [a, 2]", "input x: i32[2] = []", "input x: i32[2] = [-[1], 2]")),
    Need("`..` and the range's end are needed, as in `for l in 0..L`", "__ANON_0", "", "",
         ("for l in 0 { x = a }", "for l in L { x = a }")),
    Need("`in` and a range are needed, as in `for l in 0..L`", "IN", "", "",
         ("for l 0..3 { x = a }",)),
    Need("a block `{ ... }` is needed", "LBRACE", "", "",
         ("def f(x)\n  return x", "for l in 0..3\n", "if a\n", "if a { x = a } else x = b",
          "cache kv [3]", "state s [3]")),
    Need("a parameter's name, `,` or `)` is needed", "RPAR", "ADD NUMBER",
         "NAME NUMBER STRING EQUAL",
         ("def f(1) { return x }", "def f(x y) { return x }", "kernel f(1) { return x }")),
    Need("an operator, `,` or `)` is needed", "RPAR COMMA", "", "",
         ("x = linear(a b)", "x = f(1 2)", "x = f(g(a) b)")),
    Need("an operator or `)` is needed", "RPAR", "", "",
         ("x = (a b)", "x = (1 2)")),
    Need("an operator, `,` or `]` is needed", "RSQB ADD", "", "",
         ("x = a[1 2]", "weight a [D E]")),
    Need("`,` or `]` is needed", "RSQB", "", "",
         ("input x: i32[2] = [1 2]",)),
    Need("`=` and a value are needed", "EQUAL", "NAME ADD", "",
         ("dim D 3", "real eps\n", "input x: f32[4] 3")),
    Need("a type is needed, as in `x: f32[4, 8]`", "COLON", "", "",
         ("input x\n", "input x = 3", "kernel f(x) { return x }")),
    Need("`(` and parameters are needed", "LPAR", "MUL", "",
         ("def f { return x }", "kernel f\n")),
    Need("a shape is needed, as in `output [V, D]`", "LSQB", "ADD _NL", "",
         ("weight a\n", "weight a optional", "cache c { k\n}")),
    Need("a name in quotes is needed", "STRING", "", "",
         ("weight a [D] as b", "ignore b")),
    Need("no `}` is needed: no block is open here", "", "RBRACE", "RBRACE",
         ("}", "if a { x = a }\n}")),
    Need("`}` is needed to close this block", "RBRACE", "", "$END",
         ("def f(x) {\n  return x\n", "weight b[L] {\n  w [D]\n", "if a {\n")),
    Need("a name is needed", "NAME", "FOR DIM", "",
         ("dim 3 = 4", "real = 4", "for 3 in 0..4 {", "weight [D]", "input 3", "x = a.3",
          "weight a [D] or 3", "def 3()", "x, = f(a)", "x := a", "x: 3 = a", "cache = 3")),
    Need("a statement is needed", "FOR", "", "", ("= a", "if a { = b }", "3", "(a) = b")),
    Need("an operator or the statement's end is needed", "ADD", "", "",
         ("x = a y = b", "x = a b", "x = f(a) g", "return a b", "x = a.b c")),
    Need("the line's end is needed", "_NL", "", "",
         ("weight a [D] or b 3", "def f() { return x } x = a", "ignore \"a\" \"b\"")),
)  # fmt: skip

CHARACTERS = {
    "'": 'text in double quotes is needed, "..."',
    '"': "a closing quote on the same line is needed",
    ";": "the line's end is needed, statements are one a line",
    "&": "the word `and` is needed, which joins conditions",
    "|": "the word `or` is needed, which joins conditions",
    "!": "the word `not` is needed, which negates a condition",
    "@": "linear(x, w) or matmul(a, b) is needed for a product of matrices",
    "\\": "no backslash is needed, a line continues inside ( and [ by itself",
}
WORDS = {
    "_NL": "the line's end", "$END": "the file's end", "NAME": "the name ", "STRING": "",
    "NUMBER": "the number ",
}  # fmt: skip


def explain(error: UnexpectedInput, lines: list[str]) -> tuple[int, int, int, str]:
    """Line, column and length of the culprit, and the message: what is needed, what was given."""
    if isinstance(error, UnexpectedCharacters):
        char = lines[error.line - 1][error.column - 1]
        need = CHARACTERS.get(char, "a name, a number, text, an operator or a bracket is needed")
        shown = char if char.isprintable() else f"the character U+{ord(char):04X}"
        return error.line, error.column, 1, f"{need}; got `{shown}`"
    assert isinstance(error, UnexpectedToken)
    token = _token(error)
    line, col = token.line or len(lines), token.column or 1
    return line, col, _length(token), f"{_need(error)}; got {_given(token)}"


def _token(error: UnexpectedToken) -> Token:
    return error.token  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _need(error: UnexpectedToken) -> str:
    accepts: set[str] = set(error.accepts or error.expected)  # pyright: ignore[reportUnknownMemberType]
    for need in NEEDS:
        fits = accepts.issuperset(need.takes.split()) and not accepts & set(need.refuses.split())
        if fits and (not need.given or _token(error).type in need.given.split()):
            return need.message
    return "something else is needed: " + ", ".join(sorted(accepts))


def _given(token: Token) -> str:
    word = WORDS.get(token.type)
    if word is None:
        return f"`{token}`"
    return word if token.type in ("_NL", "$END") else f"{word}{token}"


def _length(token: Token) -> int:
    return 1 if token.type in ("_NL", "$END") else len(token)
