"""Measures cells of the paper's tables; goes on where it was stopped."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hyperboloid.errors import InputError
from hyperboloid.scores import percent

from .board import follows
from .cell_jobs import MASKS, Job, Stages, measured_in_turn
from .cell_work import Bench, BenchPlan, label
from .cell_workers import measured_at_once
from .cells import Cell
from .protocol import SPLIT, RunProtocol
from .provenance import code_version
from .results import Key, Line, append_line, key_of, read_results, usable
from .table import PaperTable


class Observer(Stages, Protocol):
    """Is told how it goes."""

    def at_work(self, texts: Sequence[str], ended: int, total: int) -> None:
        """What each of several processes is at, and how many of all measurements have ended."""

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
        columns = (*what, "measured", "printed", "diff", "s")
        rows = [
            {
                **{name: line[name] for name in what},
                "measured": percent(line["test_mean"], line["test_std"] if line["runs"] > 1 else None),
                **_against(line),
                "s": f"{line['seconds']:.0f}" if "seconds" in line else None,
            }
            for line in self.lines
        ]
        remarks = [f"{what}: skipped. {reason}" for what, reason in self.skipped.items()]
        if any(row["printed"] is not None and row["diff"] is None for row in rows):
            why = "the model has seen a part of the molecules only" if zinc else "the paper's graph is another one"
            remarks.append(f"Where there is no difference, {why}: not comparable.")
        if self.left:
            remarks.append(f"There was no time for {self.left}: the same command goes on with them.")
        title = "Test MAE × 100" if zinc else "Test scores in %"
        return PaperTable(experiment, title, {name: name for name in columns}, rows, remarks)

    def as_json(self) -> dict[str, Any]:
        """The same, in types that JSON has."""
        return dataclasses.asdict(self)


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
    workers: int = 1,
    again: bool = False,
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
        data_dir, device: as for :class:`BenchPlan`.
        code: name of the code's version; None asks git.
        workers: processes that measure cells at the same time; a script that asks for several must be guarded by
            ``if __name__ == "__main__"``, for they are spawned.
        again: measure those too whose line was made by other code; of several lines the last one counts.

    Raises:
        InputError: something given is wrong, or a data set cannot be read.
    """
    if workers < 1:
        raise InputError(f"There must be at least 1 worker, not {workers}.")
    for cell in asked:
        protocol.check_model(cell.model)
    began = time.monotonic()
    jobs = _jobs(asked, splits, masks)
    plan = BenchPlan(protocol, work, data_dir, device, code or code_version(), began + budget)
    there = _measured(results, protocol)
    chosen = {key: line for (key, split), line in there.items() if split == SPLIT}
    session = Session()
    missing: list[Job] = []
    for job in jobs:  # the search of a cell stands before its test over splits, which may choose another setting
        anew = again and there.get(job.key, {}).get("commit") != plan.code
        if job.key not in there or anew or (job.splits and missing and missing[-1].cell == job.cell):
            missing.append(job)
    if missing:
        usable(results, work)
    if workers == 1:
        ended = measured_in_turn(Bench(plan), missing, chosen, observer)
    else:
        ended = measured_at_once(plan, workers, missing, chosen, observer)
    with closing(ended):
        for number, one in enumerate(ended, start=1):
            if workers > 1:  # of several at work, the one that has ended
                observer.start(str(one.job), number, len(missing))
            if one.line is None:
                session.skipped[str(one.job)] = one.reason
                observer.skipped(str(one.job), one.reason)
                continue
            append_line(results, one.line)
            there[one.job.key] = one.line
            session.measured += 1
            observer.done(one.line)
    session.lines = [there[job.key] for job in jobs if job.key in there]
    session.left = len(missing) - session.measured - len(session.skipped)
    session.seconds = time.monotonic() - began
    return session


def _against(line: Line) -> dict[str, str | None]:
    """What the paper prints and the difference; no difference where they cannot be compared."""
    mean, std = line.get("paper_mean"), line.get("paper_std")
    if mean is None or std is None:
        return {"printed": None, "diff": None}
    difference = f"{100 * (line['test_mean'] - mean):+.1f}" if line.get("comparable") else None
    return {"printed": percent(mean, std), "diff": difference}


def _jobs(asked: Sequence[Cell], splits: Sequence[int], masks: str | None) -> list[Job]:
    """What to measure: each cell, or each that has such masks, and then over the splits each that has several."""
    if masks is not None:
        if splits:
            raise InputError("Give either masks or splits: masks that came with the data are one split.")
        if masks != MASKS:
            raise InputError(f"There are no masks '{masks}'; choose: {MASKS}.")
        jobs = [Job(cell, masks) for cell in asked if cell.graph == "amazon" and cell.task == "node"]
        if not jobs:
            raise InputError("Only the nodes of amazon come with the authors' masks, and they are not among the cells.")
        return jobs
    if splits and (len(splits) < 2 or len(set(splits)) < len(splits)):
        raise InputError(f"Give at least two splits, each once, not {', '.join(map(str, splits))}.")
    jobs = []
    for cell in asked:
        jobs.append(Job(cell))
        if splits and not cell.public_split:
            jobs.append(Job(cell, label(splits), tuple(splits)))
    return jobs


def _measured(results: Path, protocol: RunProtocol) -> dict[tuple[Key, int | str], Line]:
    """Lines of this protocol, by cell and split; where there are several the last one.

    Lines over several splits count if their settings are those that split :data:`SPLIT` has chosen.
    """
    made = {(key_of(line), line["split"]): line for line in read_results(results) if protocol.made(line)}
    return {key: line for key, line in made.items() if follows(line, made.get((key[0], SPLIT)))}
