"""The formatter: one layout, comments kept, meaning kept, and a second run changes nothing."""

from pathlib import Path

import pytest

import examples
from compiler.diagnostics import ProgramError
from frontend.elaborate import PRELUDE
from frontend.formatter import format_text
from frontend.tokens import scan

FILES = [*(examples.find(name) for name in examples.names()), PRELUDE]
CASES = {
    "operators": ("x=a+b*-c  -  d\n", "x = a + b * -c - d\n"),
    "arguments are tight": ("x = f( a ,b , k = 3 )\n", "x = f(a, b, k=3)\n"),
    "shapes are tight": ("input x : f32[ 2*H , D / 2+1 ]\n", "input x: f32[2*H, D/2 + 1]\n"),
    "blocks": (
        "for l in 0 .. L{\nif l%2==0 and not( l ) { x=-x }else if l<3 {\nx = a\n}\n}\n",
        "for l in 0..L {\n  if l % 2 == 0 and not (l) { x = -x } else if l < 3 {\n"
        "    x = a\n  }\n}\n",
    ),
    "lines that go on": ("x = f(a,\nb\n)\ny = x\n", "x = f(a,\n    b\n)\ny = x\n"),
    "constants": (
        "dim L=3\nreal epsilon = 1e-5 # small\n\ndim X = 1\n",
        "dim  L       = 3\nreal epsilon = 1e-5  # small\n\ndim X = 1\n",
    ),
    "weights": (
        "weight a[D]\nweight bbb [ V,D ] or a\nweight c[L]{ w[D] }\n",
        "weight a   [D]\nweight bbb [V, D] or a\nweight c[L] { w [D] }\n",
    ),
    "columns of a group": (
        "weight b[L] {\na[D], bb[D,D] optional, c [D]\naaa [D], b[D]\n\n  d [D] as \"x\"\n}\n",
        "weight b[L] {\n  a [D],   bb [D, D] optional, c [D]\n  aaa [D], b [D]\n\n"
        '  d [D] as "x"\n}\n',
    ),
    "caches and states": (
        "cache kv[ L ]{k[KV,HD],v[KV,HD]}\nstate s { m:f32[3] }\n",
        "cache kv[L] { k [KV, HD], v [KV, HD] }\nstate s { m: f32[3] }\n",
    ),
    "comments": (
        "#  head \nx = a    #one\nlonger = b # two\n  # own\ndef f() {\n# in\nreturn x\n}\n",
        "#  head\nx = a       #one\nlonger = b  # two\n# own\n"
        "def f() {\n  # in\n  return x\n}\n",
    ),
    "blank lines": ("\n\nx = a\n\n\n\ny = b\n\n", "x = a\n\ny = b\n"),
    "places": ("c . k=append(c.k ,k)\nx = kv[l] . k\n", "c.k = append(c.k, k)\nx = kv[l].k\n"),
    "results": ("return a ,b = - c\n", "return a, b = -c\n"),
    "arrays": ("input e:i64[2]=[ 1,-2 ]\n", "input e: i64[2] = [1, -2]\n"),
    "windows": ("x = a\r\n\ty = b\r\n", "x = a\ny = b\n"),
    "nothing": ("\n  \n", ""),
}  # fmt: skip


def words(text: str) -> list[str]:
    return [t.text.rstrip() for t in scan(text) if t.kind not in ("space", "newline")]


@pytest.mark.parametrize(("given", "wanted"), CASES.values(), ids=CASES)
def test_layout(given, wanted):
    assert format_text(given) == wanted
    assert format_text(wanted) == wanted


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_our_own_files_are_formatted(path: Path):
    assert format_text(path.read_text()) == path.read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_crushed_file_comes_back_with_the_same_words(path: Path):
    text = path.read_text()
    crushed = "\n".join(line.strip() for line in text.split("\n"))
    again = format_text(crushed)
    assert words(again) == words(text)
    assert format_text(again) == again == text


def test_a_long_table_is_left_without_columns():
    wide = "a" * 40
    text = f"weight b[L] {{\n  {wide} [D], b [D]\n  c [D], {wide} [D], {wide} [D]\n}}\n"
    assert format_text(text) == text


def test_what_is_no_program_is_refused():
    with pytest.raises(ProgramError, match="a value is needed"):
        format_text("x = \n")
