"""Measures cells of the paper's tables one after the other; goes on where it was stopped."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hyperboloid.analysis.numbers import percent
from hyperboloid.errors import InputError
from hyperboloid.training.many import Watcher

from .board import follows
from .cell_work import SPLIT, Bench, OutOfTime, RunProtocol, label
from .cells import Cell
from .results import Key, Line, append_line, cell_key, key_of, read_results
from .table import PaperTable

#: Node splits that came with the data besides the public ones: the authors' own for Amazon.
MASKS = "authors"


class Observer(Protocol):
    """Is told how it goes."""

    def start(self, what: str, number: int, total: int) -> None:
        """The ``number``-th of ``total`` measurements begins."""

    def stage(self, name: str) -> Watcher:
        """A stage of it begins."""

    def done(self, line: Line) -> None:
        """It has been written down."""

    def skipped(self, what: str, reason: str) -> None:
        """It cannot be measured here."""


@dataclass
class Session:
    """What one call has done.

    Attributes:
        lines: the measurements asked for that exist now, in order.
        measured: how many of them are new.
        skipped: why a cell cannot be measured here, by its name.
        left: how many there was no time for.
        seconds: time it took.
    """

    lines: list[Line] = field(default_factory=list)
    measured: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    left: int = 0
    seconds: float = 0.0

    def table(self, experiment: str) -> PaperTable:
        """The measurements beside what the paper prints."""
        zinc = experiment == "zinc"
        what = ("property", "model", "dim", "split") if zinc else ("dataset", "task", "model", "dim", "split")
        columns = (*what, "measured", "printed", "difference", "seconds")
        rows = [
            {
                **{name: line[name] for name in what},
                "measured": percent(line["test_mean"], line["test_std"] if line["runs"] > 1 else None),
                **_against(line),
                "seconds": f"{line['seconds']:.0f}",
            }
            for line in self.lines
        ]
        remarks = [f"{what}: skipped. {reason}" for what, reason in self.skipped.items()]
        if self.left:
            remarks.append(f"There was no time for {self.left}: the same command goes on with them.")
        title = "Test MAE × 100" if zinc else "Test scores in %"
        return PaperTable(experiment, title, {name: name for name in columns}, rows, remarks)

    def as_json(self) -> dict[str, Any]:
        """The same, in types that JSON has."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class _Job:
    cell: Cell
    split: int | str

    @property
    def key(self) -> tuple[Key, int | str]:
        """What its line is found by."""
        return cell_key(self.cell), self.split

    def __str__(self) -> str:
        return f"{self.cell}" if self.split == SPLIT else f"{self.cell}, split {self.split}"


def measure_cells(
    asked: Sequence[Cell],
    observer: Observer,
    *,
    results: Path,
    work: Path,
    protocol: RunProtocol,
    budget: float = math.inf,
    splits: Sequence[int] = (),
    masks: str | None = None,
    data_dir: str | Path | None = None,
    device: str = "cpu",
    code: str | None = None,
) -> Session:
    """Measure cells that have no line of the same protocol yet, and add a line for each.

    Args:
        asked: the cells.
        observer: is told how it goes.
        results: folder of the results.
        work: folder for trials of cells that are not finished.
        protocol: how they are measured.
        budget: seconds for all of them; cells that do not fit are left for the next time.
        splits: also test each cell's chosen setting over these splits.
        masks: measure on the node split of this name that came with the data, where there is one.
        data_dir, device, code: as for :class:`Bench`.

    Raises:
        InputError: something given is wrong, or a data set cannot be read.
    """
    began = time.monotonic()
    jobs = _jobs(asked, splits, masks)
    bench = Bench(protocol, work=work, data_dir=data_dir, device=device, code=code, until=began + budget)
    there = _measured(results, protocol)
    session = Session()
    missing = [job for job in jobs if job.key not in there]
    for number, job in enumerate(missing, start=1):
        if time.monotonic() >= bench.until:
            break
        observer.start(str(job), number, len(missing))
        bench.load(job.cell)  # a data set that cannot be read is no reason to go on to the next cell
        try:
            line = _measure(bench, job, there, splits, masks, observer)
        except OutOfTime:
            break
        except InputError as error:  # the model cannot be trained here
            session.skipped[str(job)] = str(error)
            observer.skipped(str(job), str(error))
            continue
        append_line(results, line)
        there[job.key] = line
        session.measured += 1
        observer.done(line)
    session.lines = [there[job.key] for job in jobs if job.key in there]
    session.left = len(jobs) - len(session.lines) - len(session.skipped)
    session.seconds = time.monotonic() - began
    return session


def _against(line: Line) -> dict[str, str | None]:
    """What the paper prints and the difference; nothing where it prints nothing."""
    if line["paper_mean"] is None:
        return {"printed": None, "difference": None}
    difference = f"{100 * (line['test_mean'] - line['paper_mean']):+.1f}"
    return {"printed": percent(line["paper_mean"], line["paper_std"]), "difference": difference}


def _jobs(asked: Sequence[Cell], splits: Sequence[int], masks: str | None) -> list[_Job]:
    """What to measure: each cell, or each that has such masks, and then over the splits each that has several."""
    if masks is not None:
        if splits:
            raise InputError("Give either masks or splits: masks that came with the data are one split.")
        if masks != MASKS:
            raise InputError(f"There are no masks '{masks}'; choose: {MASKS}.")
        jobs = [_Job(cell, masks) for cell in asked if cell.graph == "amazon" and cell.task == "node"]
        if not jobs:
            raise InputError("Only the nodes of amazon come with the authors' masks, and they are not among the cells.")
        return jobs
    if splits and (len(splits) < 2 or len(set(splits)) < len(splits)):
        raise InputError(f"Give at least two splits, each once, not {', '.join(map(str, splits))}.")
    jobs = []
    for cell in asked:
        jobs.append(_Job(cell, SPLIT))
        if splits and not cell.public_split:
            jobs.append(_Job(cell, label(splits)))
    return jobs


def _measured(results: Path, protocol: RunProtocol) -> dict[tuple[Key, int | str], Line]:
    """Lines of this protocol, by cell and split; where there are several the last one.

    Lines over several splits count if their settings are those that split :data:`SPLIT` has chosen.
    """
    made = {(key_of(line), line["split"]): line for line in read_results(results) if protocol.made(line)}
    return {key: line for key, line in made.items() if follows(line, made.get((key[0], SPLIT)))}


def _measure(
    bench: Bench,
    job: _Job,
    there: dict[tuple[Key, int | str], Line],
    splits: Sequence[int],
    masks: str | None,
    observer: Observer,
) -> Line:
    if job.split in (SPLIT, masks):
        return bench.measure(job.cell, masks, observer.stage)
    chosen = there.get((cell_key(job.cell), SPLIT))
    if chosen is None:
        raise InputError(f"Split {SPLIT} could not be measured, which chooses the setting.")
    return bench.measure_splits(job.cell, chosen, splits, observer.stage)
