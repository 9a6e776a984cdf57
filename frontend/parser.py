"""The door to the language: `parse` reads a program or a dump into a tree,
`parse_expression` one expression,
`parse_graph` a dump into its graph."""

from __future__ import annotations

from frontend.reader import parse_graph
from frontend.syntax import parse, parse_expression

__all__ = ["parse", "parse_expression", "parse_graph"]
