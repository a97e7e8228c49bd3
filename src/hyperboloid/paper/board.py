"""Scores by cell, measured or printed, and when two of them differ by more than noise."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from hyperboloid.scores import percent
from hyperboloid.training.settings import Settings

from .cells import Cell, all_cells
from .protocol import RunProtocol, behind
from .results import Key, Line, cell_key, key_of, same_settings

#: How often the paper has run each of its cells.
PAPER_RUNS = 10
#: The paper rounds to a tenth of a point.
ROUNDING = 0.0005


@dataclass(frozen=True)
class Score:
    """A test metric as a fraction of 1: mean and standard deviation over runs."""

    mean: float
    std: float
    runs: int

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} ± {100 * self.std:.1f}"


def noise_to_print(measured: Score, printed: Score) -> float:
    """Two standard deviations of the difference of two *runs*: the paper's split is not ours, and splits move more.

    Half a unit of the last printed digit is added.
    """
    return float(2 * (measured.std**2 + printed.std**2) ** 0.5 + ROUNDING)


def noise_between(a: Score, b: Score) -> float:
    """Two standard errors of the difference of the *means* of two models, which share graph, split and protocol."""
    return float(2 * (a.std**2 / a.runs + b.std**2 / b.runs) ** 0.5)


def short_of_print(cell: Cell, mean: float) -> float:
    """How far a mean stays below the printed one less one printed deviation, in points; at most 0 is not below.

    All three as the paper prints them, to a tenth of a point: it says no more of its own numbers.
    """
    return round(100 * (cell.paper_mean - cell.paper_std), 1) - round(100 * mean, 1)


class Board:
    """Scores by data set, task, model and dimension."""

    def __init__(self, scores: dict[Key, Score]) -> None:
        self.scores = scores

    def of(self, cell: Cell) -> Score | None:
        """The score of a cell, if it is there."""
        return self.scores.get(cell_key(cell))

    def get(self, dataset: str, task: str, model: str, dim: int) -> Score | None:
        """Likewise."""
        return self.scores.get((dataset, task, model, dim))

    def best(self, dataset: str, task: str, models: Iterable[str], dim: int) -> tuple[str, Score] | None:
        """The best of some models, if any of them is there."""
        found = [(model, score) for model in models if (score := self.get(dataset, task, model, dim)) is not None]
        return max(found, key=lambda pair: pair[1].mean) if found else None

    def only(self, keys: Collection[Key]) -> Board:
        """Some of the scores."""
        return Board({key: score for key, score in self.scores.items() if key in keys})


def printed_board() -> Board:
    """What the paper prints."""
    return Board({cell_key(cell): Score(cell.paper_mean, cell.paper_std, PAPER_RUNS) for cell in all_cells()})


def measured_board(lines: Iterable[Line]) -> Board:
    """What was measured."""
    return Board({key_of(line): Score(line["test_mean"], line["test_std"], line["runs"]) for line in lines})


def layers_of(line: Line) -> int:
    """How many layers a line's model was given."""
    layers: int = line["protocol"].get("layers", Settings.layers)
    return layers


def texts_of(line: Line) -> list[str]:
    """Its validation and test scores, in per cent."""
    return [percent(line["val_mean"]), percent(line["test_mean"], line["test_std"])]


def mean_of(line: Line) -> str | None:
    """How a line's model was told to average neighbours; None where that was left to the model."""
    mean: str | None = line["protocol"].get("mean")
    return mean


def _as_usual(line: Line) -> bool:
    """Whether a line's model had the usual number of layers and its own mean."""
    return layers_of(line) == Settings.layers and mean_of(line) is None


def lines_beside(lines: Iterable[Line], split: int | str) -> dict[Key, list[Line]]:
    """Lines of today's protocol but for the number of layers or the mean, the latest of each, by cell."""
    latest: dict[tuple[Key, int, str | None], Line] = {}
    for line in lines:
        layers, mean = layers_of(line), mean_of(line)
        if line["split"] == split and not _as_usual(line) and RunProtocol(layers=layers, mean=mean).made(line):
            latest[key_of(line), layers, mean] = line
    found: dict[Key, list[Line]] = {}
    for (key, _, _), line in latest.items():
        found.setdefault(key, []).append(line)
    return found


def chosen_lines(lines: Iterable[Line], split: int | str) -> list[Line]:
    """One line for each cell on a split: by the latest rules, else of the widest search and most runs; the last such.

    All have the usual number of layers, and average neighbours as their models do.
    """
    best: dict[Key, Line] = {}
    for line in lines:
        if line["split"] == split and _as_usual(line):
            there = best.get(key_of(line))
            if there is None or _weight(line) >= _weight(there):
                best[key_of(line)] = line
    return list(best.values())


def _weight(line: Line) -> tuple[Any, ...]:
    made = line["protocol"]
    if RunProtocol().made(line):
        return True, -behind(line)
    return False, line["grid"], made.get("search", 1), made.get("epochs", 0), line["runs"]


def current_lines(lines: Iterable[Line], chosen: Iterable[Line]) -> list[Line]:
    """Those that were measured by today's protocol; over several splits, with the settings that are chosen now.

    Args:
        lines: of any splits.
        chosen: the lines of the split that settings are chosen on.
    """
    by_key = {key_of(line): line for line in chosen}
    return [line for line in lines if RunProtocol().made(line) and follows(line, by_key.get(key_of(line)))]


def follows(line: Line, chosen: Line | None) -> bool:
    """Whether a line rests on its own search, or else on the one that has chosen its settings."""
    if "test_by_split" not in line:
        return True
    return chosen is not None and same_settings(line["settings"], chosen["settings"])
