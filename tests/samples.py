"""A sample's text as an elaborated program, once a text."""

from __future__ import annotations

from functools import cache

from compiler.program import Program
from frontend.elaborate import elaborate


@cache
def program_of(text: str) -> Program:
    return elaborate(text, "sample.model")
