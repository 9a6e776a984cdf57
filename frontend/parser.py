"""The door to the language: `parse` reads a program or a dump into a tree,
`parse_expression` one expression."""

from __future__ import annotations

from frontend.syntax import parse, parse_expression

__all__ = ["parse", "parse_expression"]
