"""The grammar is strict LALR(1); syntax errors say what is needed, each on its own line."""

import pytest

from compiler.diagnostics import ProgramError
from frontend import tree
from frontend.parser import parse
from frontend.syntax import MAX_NESTING, lark
from frontend.syntax_errors import CHARACTERS, NEEDS

PROGRAM = """\
weight blk[L] {
  attn_norm [D],   attn_q [H*HD, D]

  attn_q_bias [H*HD] as "blk.{}.attn_q.bias" optional      # comment
}
weight output [V, D] or token_embd
cache kv[L] { k [KV, HD], v [KV, HD] }
state conv[L] { s: f32[3, D] }
def attend(x, w, c, window = 0) {
  c.k = append(c.k, k)
  if l % 6 == 5 and not l == 0 { x = x + f(x, blk[l]) } else if l < -1 {
    x = x + attend(x, blk[l], kv[l],
                   window=1024,
                  )
  } else { a, b = top_k(x, 2) }
  return y = linear(x, w.q), -x * 2.5e-3
}
"""
# statements, each a mistake, planted into the first line of a def's body
PLANTED = """\
x = a y = b
x = linear(a b)
x = a +
x = (a
x = f(a,, b)
x a
= a
x = f(a
x = a ** b
x = 1.e-6
x = .5
x = a < b
c.k <- k
for l in 0 { x = a }
return
x = f(a=)
x = a[
x = 'a'
x = a; y = b
weight a [D]
x = f(a) g
x := a
if a < b < c { x = a }
def g(x) { return x }
x = "a
x = a @ b
x = a && b""".splitlines()
ROWS = [(need, example) for need in NEEDS for example in need.examples]


def errors(text: str) -> list[tuple[int, str]]:
    with pytest.raises(ProgramError) as caught:
        parse(text)
    return [(d.span.line, d.message) for d in caught.value.diagnostics]


def test_strict_mode_finds_no_ambiguity():
    lark(strict=True).parse(PROGRAM, "start")


@pytest.mark.parametrize(("need", "example"), ROWS, ids=[e for _, e in ROWS])
def test_each_row_of_the_table_gives_its_message(need, example):
    assert errors(example)[0][1].startswith(need.message)


@pytest.mark.parametrize("statement", PLANTED)
def test_a_mistake_is_reported_on_its_own_line(statement):
    text = PROGRAM.replace("  c.k = append", f"  {statement}\n  c.k = append")
    assert [line for line, _ in errors(text)] == [10]


def test_a_block_that_is_not_closed_is_found_by_its_indentation():
    text = PROGRAM.replace("c.k = append(c.k, k)", "if l { x = a")
    assert errors(text) == [(10, "`}` is needed to close this block; got the file's end")]


def test_all_syntax_errors_are_reported_at_once():
    text = "x = a b\ny = (3\nz = 1 +\nfor l in 3 {\n  x = b c\n}\nw = .5\nv = 1\n"
    assert [line for line, _ in errors(text)] == [1, 2, 3, 4, 5, 7]


@pytest.mark.parametrize("char", CHARACTERS)
def test_foreign_characters_are_explained(char):
    assert CHARACTERS[char] in errors(f"x = a {char}")[0][1]


@pytest.mark.parametrize(
    "text",
    [
        PROGRAM.replace("\n", "\r\n"),
        PROGRAM.rstrip("\n"),
        PROGRAM.replace("  ", "\t"),
        "\ufeff" + PROGRAM,
    ],
    ids=["CRLF", "no final newline", "tabs", "byte order mark"],
)
def test_layout_does_not_matter(text):
    assert len(parse(text).items) == len(parse(PROGRAM).items) == 5


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment", "   \n\t\n"])
def test_an_empty_program_is_a_program(text):
    assert parse(text).items == ()


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 30000,
        "x = " + "f(" * 30000 + ")" * 30000,
        "x = " + "-" * 30000 + "a",
        "if " + "not " * 30000 + "a { }",
        "input x: i32[2] = " + "[" * 30000,
        "if a {" * 30000,
    ],
    ids=["parentheses", "calls", "signs", "nots", "arrays", "blocks"],
)
def test_nesting_is_bounded(text):
    assert f"at most {MAX_NESTING} deep" in errors(text)[0][1]


def test_long_is_not_deep():
    parse("x = a" + " + a" * 5000)
    parse("if a { x = a } " + "else if b { x = b } " * 1000)


def test_literals_are_bounded():
    assert "an integer is at most" in errors("x = 9223372036854775808")[0][1]
    assert "an integer is at most" in errors("x = " + "9" * 9000)[0][1]
    assert "a real is at most" in errors("x = 1e309")[0][1]
    (assign,) = parse("x = -9223372036854775808").items
    assert isinstance(assign, tree.Assign)
    assert isinstance(assign.value, tree.Literal) and assign.value.value == -(2**63)


def test_names_are_bounded():
    parse("x" * 64 + " = 1")
    assert errors("x" * 65 + " = 1") == [(1, "a name has at most 64 letters, this one has 65")]


def test_spans_are_of_the_source():
    assign = parse("\n\n  yy = f(a,\n b) # c").items[0]
    assert isinstance(assign, tree.Assign)
    assert str(assign.value.span) == "<text>:3:8"
    assert (assign.targets[0].span.col, assign.targets[0].span.end) == (3, 5)
