"""What an experiment gives back: a table of cells with remarks, which can be shown and stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Tick:
    """A property that the paper ticks or crosses, and the number that decides it.

    Attributes:
        value: what was measured.
        holds: whether the property holds.
        paper: what the paper prints; None where it says nothing.
    """

    value: float
    holds: bool
    paper: bool | None = None

    @property
    def contradicts(self) -> bool:
        """Whether the measurement says otherwise than the paper."""
        return self.paper is not None and self.paper != self.holds

    def __str__(self) -> str:
        printed = f" ({_mark(self.paper)})" if self.contradicts else ""
        return f"{_mark(self.holds)} {number(self.value)}{printed}"

    def as_json(self) -> dict[str, Any]:
        """The attributes and the verdict."""
        return {"value": self.value, "holds": self.holds, "paper": self.paper, "contradicts": self.contradicts}


Cell = str | int | float | Tick | None


@dataclass(frozen=True)
class PaperTable:
    """The result of one experiment.

    Attributes:
        experiment: its name on the command line.
        title: what the table shows.
        columns: heading of each column, by the key that its cells have in the rows.
        rows: cells by key.
        remarks: sentences to read beside the table.
        settings: what the numbers depend on.
    """

    experiment: str
    title: str
    columns: Mapping[str, str]
    rows: Sequence[Mapping[str, Cell]]
    remarks: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def texts(self) -> list[list[str]]:
        """The cells as they are shown, row by row."""
        return [[text(row[key]) for key in self.columns] for row in self.rows]

    def as_json(self) -> dict[str, Any]:
        """Everything, in types that JSON has."""
        rows = [{k: cell.as_json() if isinstance(cell, Tick) else cell for k, cell in row.items()} for row in self.rows]
        return {
            "experiment": self.experiment,
            "title": self.title,
            **self.settings,
            "columns": dict(self.columns),
            "rows": rows,
            "remarks": list(self.remarks),
        }


def text(cell: Cell) -> str:
    """A cell as it is shown."""
    if cell is None:
        return "–"
    return number(cell) if isinstance(cell, float) else str(cell)


def number(value: float) -> str:
    """A measured number, short: two digits, or a whole number as it is."""
    if float(value).is_integer() and abs(value) < 1000:
        return str(int(value))
    return f"{value:.2g}" if 1e-3 <= abs(value) < 1000 else f"{value:.0e}"


def _mark(holds: bool | None) -> str:
    return "✓" if holds else "✗"
