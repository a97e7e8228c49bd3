"""The measurement of one cell: search, selection and test, or one setting over many splits; gives a line of results."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hyperboloid.errors import InputError
from hyperboloid.graphs import Graph, load_graph
from hyperboloid.scores import spread_of
from hyperboloid.training.checkpoint import write_json
from hyperboloid.training.config import DTYPES, use_device
from hyperboloid.training.journal import Journal
from hyperboloid.training.many import Watcher, train_many
from hyperboloid.training.selection import sweep_model
from hyperboloid.training.settings import Settings
from hyperboloid.training.shallow import embeddings_kept
from hyperboloid.training.sweep import task_factory
from hyperboloid.training.tasks import Task
from hyperboloid.training.trial import Trial

from .cells import Cell
from .protocol import SPLIT, RunProtocol, rounds_of
from .provenance import device_name, library_versions
from .results import Line

#: Seconds of work that a kill may leave out of a cell's recorded time.
NOTE_EVERY = 5.0


class OutOfTime(Exception):
    """The budget is used up; the trials that had ended are kept."""


@dataclass(frozen=True)
class BenchPlan:
    """What a :class:`Bench` is made of; it can be sent to another process.

    Attributes:
        protocol: how cells are measured.
        work: folder for the trials, so that an interrupted cell goes on where it stopped.
        data_dir: where the named data sets lie.
        device: ``cpu`` or ``cuda``.
        code: name of the code's version.
        until: value of :func:`time.monotonic` at which to stop.
        workers: processes that share the machine.
    """

    protocol: RunProtocol
    work: Path
    data_dir: str | Path | None
    device: str
    code: str
    until: float
    workers: int = 1

    def __post_init__(self) -> None:
        use_device(self.device)


class Bench:
    """Where cells are measured."""

    def __init__(self, plan: BenchPlan) -> None:
        self.protocol = plan.protocol
        self.until = plan.until
        self._plan = plan
        self._graph: Graph | None = None

    def measure(self, cell: Cell, masks: str | None, watch: Callable[[str], Watcher]) -> Line:
        """Search, select and test on one split.

        Args:
            cell: what to measure.
            masks: name of a node split that came with the data; None for the protocol's choice.
            watch: gives the watcher of a stage.
        """
        graph, protocol = self.load(cell), self.protocol
        work = _Work(self._folder(cell, graph, masks), self.until)
        task_for = self._task_for(cell, graph, SPLIT)
        with work:
            verdict = sweep_model(
                cell.model,
                graph,
                cell.task,
                task_for,
                seeds=protocol.seeds,
                tries=protocol.tries,
                halving=protocol.halving,
                rounds=rounds_of(cell.model, cell.task),
                check=work.check,
                journal=work.journal,
                watch=watch,
                dim=cell.dim,
                masks=masks,
                **protocol.fixed(cell.model),
            )
        return self._line(
            cell,
            verdict.settings,
            verdict.trials,
            split=masks or SPLIT,
            parts=task_for(verdict.settings).split_name,
            grid=verdict.grid,
            tried=verdict.tried,
            failed=verdict.failed,
            epochs=verdict.epochs,
            complete=verdict.complete,
            seconds=work.seconds,
            protocol=protocol.record(cell.model),
        )

    def measure_splits(self, cell: Cell, chosen: Line, splits: Sequence[int], watch: Callable[[str], Watcher]) -> Line:
        """Test the setting that a line has chosen, over several splits.

        Args:
            cell: what to measure.
            chosen: its line of :meth:`measure`.
            splits: their seeds.
            watch: gives the watcher of a stage.
        """
        graph, settings = self.load(cell), Settings(**chosen["settings"])
        work = _Work(self._folder(cell, graph, f"splits {label(splits)}"), self.until)
        runs = [(settings, seed) for seed in range(self.protocol.seeds)]
        by_split: dict[str, list[Trial]] = {}
        with work, embeddings_kept():
            for split in splits:
                task_for, stage = self._task_for(cell, graph, split), f"split {split}"
                train_many(
                    cell.model,
                    task_for,
                    work.journal.missing(stage, cell.model, runs),
                    test=True,
                    check=work.check,
                    watch=watch(stage),
                    save=partial(work.journal.add, stage, cell.model),
                    shelf=work.journal.shelf(stage, cell.model),
                )
                by_split[str(split)] = work.journal.read(stage, cell.model, runs)
        trials = [trial for own in by_split.values() for trial in own]
        return self._line(
            cell,
            settings,
            trials,
            split=label(splits),
            parts=task_for(settings).split_name.replace(f"seed {splits[-1]}", f"seeds {label(splits)}"),
            grid=chosen["grid"],
            tried=chosen["tried"],
            failed=chosen.get("failed", 0),
            epochs=sum(trial.outcome.epochs for trial in trials),
            complete=all(trial.outcome.done for trial in trials),
            seconds=work.seconds,
            protocol=chosen["protocol"],  # whose search it rests on
            test_by_split={split: _tests(own) for split, own in by_split.items()},
        )

    def _line(self, cell: Cell, settings: Settings, trials: Sequence[Trial], **found: Any) -> Line:
        tests, outcomes = _tests(trials), [trial.outcome for trial in trials if trial.test is not None]
        line = {
            "experiment": cell.experiment,
            "dataset": cell.dataset,
            "graph": cell.graph,
            "task": cell.task,
            "model": cell.model,
            "dim": cell.dim,
            # within one printed standard deviation, or better, is what reaches it when rounded like the print
            "target": round(cell.paper_mean - cell.paper_std, 6) if cell.comparable else None,
            "test_mean": statistics.mean(tests),
            "test_std": spread_of(tests),
            "tests": tests,
            "runs": len(tests),
            "val_mean": statistics.mean(outcome.val for outcome in outcomes),
            "best_epochs": [outcome.best_epoch for outcome in outcomes],
            "paper_mean": cell.paper_mean,
            "paper_std": cell.paper_std,
            "comparable": cell.comparable,
            **found,
            "settings": dataclasses.asdict(settings),
            "commit": self._plan.code,
            "device": device_name(self._plan.device),
            "workers": self._plan.workers,
            "versions": library_versions(),
        }
        if not all(math.isfinite(line[name]) for name in ("test_mean", "test_std", "val_mean")):
            raise InputError("Its training diverged.")
        return line

    def load(self, cell: Cell) -> Graph:
        """Its graph; the last one is kept, for cells come by graph."""
        if self._graph is None or self._graph.name != cell.graph:
            self._graph = load_graph(cell.graph, data_dir=self._plan.data_dir)
        return self._graph

    def _task_for(self, cell: Cell, graph: Graph, split: int) -> Callable[[Settings], Task]:
        return task_factory(graph, cell.task, split, DTYPES[self.protocol.dtype], self._plan.device)

    def _folder(self, cell: Cell, graph: Graph, what: str | None) -> Path:
        """The folder of its trials; those of another protocol, code or device lie elsewhere."""
        plan, protocol = self._plan, self.protocol.record(cell.model)
        depends = [protocol, graph.checksum, what, plan.code, plan.device]
        digest = hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:10]
        return plan.work / f"{cell.task}-{cell.graph}-{cell.model}-d{cell.dim}-{digest}"


def label(splits: Sequence[int]) -> str:
    """Splits in a word: ``0-9``, or ``0,3``."""
    if list(splits) == list(range(splits[0], splits[-1] + 1)):
        return f"{splits[0]}-{splits[-1]}"
    return ",".join(map(str, splits))


def _tests(trials: Sequence[Trial]) -> list[float]:
    tests = [trial.test for trial in trials if trial.test is not None]
    if not tests:
        raise InputError("Its training diverged.")
    return tests


def _seconds_noted(path: Path) -> float:
    """What :class:`_Work` has noted down; 0 where it has not begun."""
    if not path.exists():
        return 0.0
    try:
        seconds = float(json.loads(path.read_text(encoding="utf-8"))["seconds"])
    except (ValueError, KeyError, TypeError, RecursionError):
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise InputError(f"{path} is damaged: remove its folder to measure the cell from the beginning.")
    return seconds


class _Work:
    """Trials of one cell and the seconds spent on them, kept in a folder."""

    def __init__(self, folder: Path, until: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.journal = Journal(folder / "trials.jsonl")
        self._path = folder / "spent.json"
        self._until = until
        self._before = _seconds_noted(self._path)
        self._began = self._noted = time.monotonic()

    @property
    def seconds(self) -> float:
        """Spent on the cell, by this process and by those that were interrupted."""
        return float(self._before + time.monotonic() - self._began)

    def __enter__(self) -> _Work:
        return self

    def __exit__(self, *error: object) -> None:
        self._note()

    def check(self) -> None:
        """Stop where time is up, with the trials that have ended; now and then note down the seconds."""
        now = time.monotonic()
        if now >= self._until:
            raise OutOfTime
        if now - self._noted >= NOTE_EVERY:
            self._note()

    def _note(self) -> None:
        self._noted = time.monotonic()
        write_json(self._path, {"seconds": self.seconds})
