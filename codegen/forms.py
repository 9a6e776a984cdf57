"""Forms of a step: for how many rows a program has kernels of its own.

A form's row group is how many rows a block of a projection takes: the kernels' template argument
ROWS (FEW: at most 8), and WANTED for the rows whose results are wanted.
"""

from __future__ import annotations

from collections.abc import Iterable

from codegen.kernel import Launch

FEW_PAGES = 4  # of a cache: steps whose one row attends to no more have launches of their own
MANY_PAGES = 1 << 24  # what `pages` is in other steps
# (rows at most, row group); tiles of 64 and of 128 rows run on tensor cores
FEW_ROWS = ((1, 1), (4, 4), (None, 8))
MANY_ROWS = ((1, 1), (4, 4), (16, 8), (256, 64), (None, 128))


def row_forms(many: bool, most: int) -> tuple[tuple[int, int], ...]:
    """(rows at most, row group) of each form of a program whose steps have `most` rows at most.

    many: whether launches have forms of many rows.
    """
    out: list[tuple[int, int]] = []
    for limit, group in MANY_ROWS if many else FEW_ROWS:
        out.append((limit or most, group))
        if limit is None or limit >= most:
            break
    return tuple(out)


def group_of_rows(count: int, many: bool) -> int:
    """The row group of the form that takes so many rows."""
    return row_forms(many, count)[-1][1]


def have_many(launches: Iterable[Launch]) -> bool:
    """Whether launches have forms of many rows."""
    return any(launch.many for launch in launches)
