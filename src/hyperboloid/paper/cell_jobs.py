"""Measurements of cells one after the other; each is told as soon as it has ended."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from hyperboloid.errors import InputError
from hyperboloid.training.many import NoRoom, Watcher
from hyperboloid.training.selection import Diverged

from .cell_work import Bench, OutOfTime
from .cells import Cell
from .protocol import SPLIT
from .results import Key, Line, cell_key

#: Node splits that came with the data besides the public ones: the authors' own for Amazon.
MASKS = "authors"


@dataclass(frozen=True)
class Job:
    """One measurement.

    Attributes:
        cell: what to measure.
        split: what its line calls the split: a seed, several in a word, or :data:`MASKS`.
        splits: seeds over which to test the setting that split :data:`SPLIT` has chosen; none for a search.
    """

    cell: Cell
    split: int | str = SPLIT
    splits: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[Key, int | str]:
        """What its line is found by."""
        return cell_key(self.cell), self.split

    def __str__(self) -> str:
        return f"{self.cell}" if self.split == SPLIT else f"{self.cell}, split {self.split}"


@dataclass(frozen=True)
class Ended:
    """A job that is over: its line, or else why it cannot be measured here."""

    job: Job
    line: Line | None
    reason: str = ""


class Stages(Protocol):
    """Is told what is at work."""

    def start(self, what: str, number: int, total: int) -> None:
        """The ``number``-th of ``total`` measurements begins."""

    def stage(self, name: str) -> Watcher:
        """A stage of it begins."""


def measured_in_turn(bench: Bench, jobs: Sequence[Job], chosen: dict[Key, Line], stages: Stages) -> Generator[Ended]:
    """Measure until all is done, or time is up.

    Args:
        bench: where.
        jobs: what, in this order.
        chosen: lines of split :data:`SPLIT` by cell, whose settings are tested over other splits; those measured here
            join them.
        stages: is told what is at work.

    Raises:
        InputError: a data set cannot be read, which is no reason to go on to the next cell.
    """
    for number, job in enumerate(jobs, start=1):
        if time.monotonic() >= bench.until:
            return
        stages.start(str(job), number, len(jobs))
        bench.load(job.cell)
        try:
            line = _measure(bench, job, chosen.get(cell_key(job.cell)), stages)
        except OutOfTime:
            return
        except (InputError, NoRoom, Diverged) as error:  # the model cannot be trained here
            yield Ended(job, None, str(error))
            continue
        if job.split == SPLIT:
            chosen[cell_key(job.cell)] = line
        yield Ended(job, line)


def _measure(bench: Bench, job: Job, chosen: Line | None, stages: Stages) -> Line:
    if not job.splits:
        return bench.measure(job.cell, MASKS if job.split == MASKS else None, stages.stage)
    if chosen is None:
        raise InputError(f"Split {SPLIT} could not be measured, which chooses the setting.")
    return bench.measure_splits(job.cell, chosen, job.splits, stages.stage)
