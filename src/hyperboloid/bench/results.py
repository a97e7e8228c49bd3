"""``results/bench.jsonl``: one line for each measured number, with what it was measured by and on.

- what: ``part`` (the benchmark), ``device`` (cpu or cuda), ``case``, ``name``, ``quantity``;
- how much: ``value unit busy repeats``, see :class:`Number`;
- by what: ``machine load commit versions``. ``load`` is the machine's load average where it was above its number of
  cores: such times are to be taken with care.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hyperboloid.errors import InputError
from hyperboloid.training.checkpoint import write_atomically

from .numbers import Case

Line = dict[str, Any]


def lines_of(part: str, device: str, case: Case, provenance: Mapping[str, Any]) -> list[Line]:
    """The lines of a case."""
    where = {"part": part, "device": device, "case": case.what}
    return [where | dataclasses.asdict(number) | dict(provenance) for number in case.numbers]


def read_lines(path: Path) -> list[Line]:
    """All lines of a file; one that is not there has none.

    Raises:
        InputError: a line is not a measured number.
    """
    if not path.exists():
        return []
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read {path}: {error}.") from error
    return [_checked(raw, f"{path}, line {n}") for n, raw in enumerate(text.split("\n"), start=1) if raw.strip()]


def _checked(raw: str, where: str) -> Line:
    """A line that is what it should be, or one sentence."""
    try:
        line: Line = json.loads(raw)
        words = [line[key] for key in ("part", "device", "name", "quantity", "unit", "machine", "commit")]
        whole = isinstance(line["case"], dict) and isinstance(line["versions"], dict)
        number = math.isfinite(line["value"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{where} is not a measured number: {error!r}.") from error
    if not (whole and number and all(isinstance(word, str) for word in words)):
        raise InputError(f"{where} is not a measured number.")
    return line


def replace_case(path: Path, new: Sequence[Line]) -> None:
    """Put the lines of a case into a file, in the place of those of an older measurement of the same case."""
    keys = {_key(line) for line in new}
    lines = [line for line in read_lines(path) if _key(line) not in keys] + list(new)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines).encode())


def _key(line: Line) -> tuple[str, str, str]:
    return line["part"], line["device"], json.dumps(line["case"], sort_keys=True)


class Measured:
    """The lines of a file, to be asked.

    Args:
        lines: all of them.
    """

    def __init__(self, lines: Iterable[Line]) -> None:
        self.lines = list(lines)

    def select(self, part: str, device: str, **case: Any) -> Measured:
        """The lines of a benchmark on a device whose case says so."""

        def fits(line: Line) -> bool:
            said = line["part"] == part and line["device"] == device
            return said and all(line["case"].get(key) == value for key, value in case.items())

        return Measured(line for line in self.lines if fits(line))

    def cases(self) -> Iterator[tuple[dict[str, Any], Measured]]:
        """Each case with its lines."""
        by_key: dict[str, list[Line]] = {}
        for line in self.lines:
            by_key.setdefault(json.dumps(line["case"], sort_keys=True), []).append(line)
        for own in by_key.values():
            yield own[0]["case"], Measured(own)

    def line(self, name: str, quantity: str) -> Line | None:
        """The line of one number."""
        found = (line for line in self.lines if line["name"] == name and line["quantity"] == quantity)
        return next(found, None)

    def value(self, name: str, quantity: str) -> float | None:
        """One number."""
        line = self.line(name, quantity)
        return None if line is None else float(line["value"])

    def ratio(self, name: str, other: str, quantity: str) -> float | None:
        """How many times as large the number of ``name`` is as that of ``other``."""
        above, below = self.value(name, quantity), self.value(other, quantity)
        return None if above is None or below is None else above / below

    def names(self, quantity: str) -> list[str]:
        """What has this quantity, in order."""
        return [line["name"] for line in self.lines if line["quantity"] == quantity]

    @property
    def load(self) -> float | None:
        """The largest load that was noted."""
        return max((line["load"] for line in self.lines if line.get("load") is not None), default=None)

    @property
    def machines(self) -> str:
        """Where they were measured."""
        return ", ".join(dict.fromkeys(line["machine"] for line in self.lines))
