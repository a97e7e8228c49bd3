"""What a benchmark gives: numbers, in cases that are measured together and replaced together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Number:
    """One measured number.

    Attributes:
        name: of what was measured, such as a layer.
        quantity: which number of it.
        value: the number, a median where it is a time.
        unit: of the value.
        busy: CPU time of all threads in the same unit, where it is a time on a CPU: other processes do not add to it.
        repeats: how many calls the median is of.
    """

    name: str
    quantity: str
    value: float
    unit: str
    busy: float | None = None
    repeats: int = 1


@dataclass(frozen=True)
class Case:
    """Numbers of one run that may be compared with each other.

    Attributes:
        what: tells the case from others of the same benchmark, such as graph and dimension.
        numbers: what was measured.
    """

    what: dict[str, Any]
    numbers: list[Number]

    def __str__(self) -> str:
        return describe(self.what)


def describe(what: dict[str, Any]) -> str:
    """A case in words."""

    def one(name: str, value: Any) -> str:
        if name == "dim":
            return f"d = {value}"
        if name in ("nodes", "edges", "points"):
            return f"{value:,} {name}"
        return f"memory {value}" if name == "memory" else str(value)

    return ", ".join(one(name, value) for name, value in what.items())
