"""A table of the paper on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyperboloid.paper.table import PaperTable


def show(table: PaperTable) -> None:
    """Print a table and its remarks."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    headings, rows = list(table.columns.values()), table.texts()
    padding, widths = _layout(headings, rows, console.width)
    shown = Table(title=table.title, box=box.SIMPLE_HEAD, show_edge=False, padding=(0, padding, 0, 0))
    for heading, width in zip(headings, widths, strict=True):
        shown.add_column(heading, overflow="fold", width=width)
    for cells in rows:
        shown.add_row(*cells)
    console.print(shown)
    for remark in table.remarks:
        console.print(f"• {remark}", markup=False)


def _layout(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> tuple[int, list[int | None]]:
    """The padding and the widths of columns with which no word is broken, nor a cell into lines if it can be avoided.

    What room is left goes to headings. A width is None where not even the words have room.
    """
    columns = list(zip(headings, *rows, strict=True))
    widths = [max(len(word) for text in column for word in text.split() or [""]) for column in columns]
    whole = [max(least, *map(len, column[1:]), 0) for least, column in zip(widths, columns, strict=True)]
    lines = [max(map(len, column)) for column in columns]
    padding = 1 if sum(whole) + 2 * len(columns) - 1 <= width else 0
    spare = width + 1 - (1 + padding) * len(columns) - sum(widths)  # there is a blank between columns besides
    if spare < 0:
        return padding, [None] * len(columns)
    for wishes in (whole, lines):
        while short := [i for i, wish in enumerate(wishes) if widths[i] < wish][:spare]:
            for i in short:
                widths[i] += 1
            spare -= len(short)
    return padding, [*widths]
