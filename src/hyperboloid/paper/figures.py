"""Experiments of the paper that are drawn, and how one is run: measure what is missing, then draw all.

`registry.py` lists them.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from hyperboloid.analysis.style import save_figure

from .claims import Claim
from .provenance import code_version, device_name, library_versions
from .registry import FIGURES
from .results import Line, append_line, read_figure_results, same_settings, usable
from .table import PaperTable

#: Options of ``paper run`` that every one of them takes.
COMMON_OPTIONS = frozenset({"results", "figures", "commit"})
#: Names that every line of results has besides those of its provenance; null where one means nothing.
EVERY_LINE = (
    *("dataset", "task", "model", "dim", "target", "test_mean", "test_std", "runs", "split"),
    *("paper_mean", "paper_std", "settings"),
)


@dataclass(frozen=True)
class Asked:
    """What the command line asks of an experiment; None for its own choice.

    Attributes:
        results: folder of all measured numbers.
        datasets, models: only these.
        seed: of what is sampled.
        seeds: number of initialisations.
        epochs: at most so many.
        data_dir: where the named data sets lie.
        device: ``cpu`` or ``cuda``.
        dtype: ``float32`` or ``float64``.
        work: folder for what is not finished.
    """

    results: Path
    datasets: Sequence[str] | None = None
    models: Sequence[str] | None = None
    seed: int = 0
    seeds: int | None = None
    epochs: int | None = None
    data_dir: Path | None = None
    device: str = "cpu"
    dtype: str = "float32"
    work: Path = Path("runs/paper")


class FigureExperiment(ABC):
    """One experiment: what to measure, how, and what to make of it.

    Attributes:
        name: on the command line, and of its file of results and its picture.
        title: heading of its section in the report.
        about: what the picture shows and how it was measured, for the report.
        options: names in :class:`Asked` that mean something to it.
        key: names in a line that say what was measured; of several lines that agree in them the last one counts.
        needs: further names that a line must have.
        claims: what the paper says about it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    options: ClassVar[frozenset[str]] = frozenset()
    key: ClassVar[tuple[str, ...]]
    needs: ClassVar[tuple[str, ...]] = ()
    claims: ClassVar[tuple[Claim[Sequence[Line]], ...]]

    @abstractmethod
    def wanted(self, asked: Asked) -> list[Line]:
        """What to measure: of each line the part that says what it is and how it is measured."""

    @abstractmethod
    def measure(self, wanted: Line, asked: Asked, say: Callable[[str], None]) -> Line:
        """The rest of a line; what it says of ``device`` and ``seconds`` is believed, else they are filled in."""

    @abstractmethod
    def draw(self, lines: Sequence[Line]) -> Any:
        """A matplotlib figure of measured lines."""

    @abstractmethod
    def table(self, lines: Sequence[Line]) -> PaperTable:
        """The numbers of measured lines."""

    def read(self, folder: Path) -> list[Line]:
        """The measured lines that count, in the order in which they were first measured."""
        found = read_figure_results(folder, self.name, (*self.key, *self.needs))
        return list({tuple(line[name] for name in self.key): line for line in found}.values())


def get_figure(name: str) -> FigureExperiment:
    """The experiment called ``name``, one of :data:`FIGURES`."""
    module, kind = FIGURES[name].split(":")
    experiment: FigureExperiment = getattr(import_module(module), kind)()
    return experiment


@dataclass(frozen=True)
class FigureRun:
    """What one call has done: all lines that count now, how many are new, and the pictures of them."""

    lines: list[Line]
    measured: int
    pictures: list[Path]

    def as_json(self) -> dict[str, Any]:
        """The same, in types that JSON has."""
        return {"measured": self.measured, "lines": self.lines, "pictures": [str(path) for path in self.pictures]}


def run_figure(
    figure: FigureExperiment,
    asked: Asked,
    folder: Path,
    *,
    code: str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> FigureRun:
    """Measure what is asked for and has no line yet, and draw all lines.

    Args:
        figure: the experiment.
        asked: what is asked for; a line is added to its results for everything that is measured.
        folder: of the pictures.
        code: name of the code's version; None asks git.
        say: is told how it goes.

    Raises:
        InputError: something given is wrong, or a data set cannot be read.
    """
    there = figure.read(asked.results)
    missing = [wanted for wanted in figure.wanted(asked) if not any(is_current(line, wanted) for line in there)]
    usable(folder)
    if missing:
        usable(asked.results, asked.work)
    for number, wanted in enumerate(missing, start=1):
        what = " ".join(str(wanted[name]) for name in figure.key)
        say(f"{number} of {len(missing)}: {what}")
        began = time.monotonic()
        found = figure.measure(wanted, asked, say)
        provenance = {
            "commit": code or code_version(),
            "device": device_name(asked.device),
            "versions": library_versions(),
            "seconds": time.monotonic() - began,
        }
        append_line(
            asked.results, {"experiment": figure.name, **dict.fromkeys(EVERY_LINE), **wanted, **provenance, **found}
        )
    lines = figure.read(asked.results)
    return FigureRun(lines, len(missing), draw_lines(figure, lines, folder))


def is_current(line: Line, wanted: Line) -> bool:
    """Whether a line is what is wanted, measured as it is wanted."""
    return all(name in line and _same(line[name], value) for name, value in wanted.items())


def _same(there: Any, wanted: Any) -> bool:
    if not isinstance(there, dict) or not isinstance(wanted, dict):
        return bool(there == wanted)
    if wanted and all(isinstance(value, dict) for value in wanted.values()):  # the settings of several models
        return there.keys() == wanted.keys() and all(_same(there[name], value) for name, value in wanted.items())
    return same_settings(there, wanted)


def draw_lines(figure: FigureExperiment, lines: Sequence[Line], folder: Path) -> list[Path]:
    """Draw measured lines as PNG and SVG, and say where they are; nothing where nothing is measured."""
    if not lines:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    picture = figure.draw(lines)
    paths = [folder / f"{figure.name}.{suffix}" for suffix in ("png", "svg")]
    for path in paths:
        save_figure(picture, path)
    return paths
