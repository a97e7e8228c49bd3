"""How training shows its progress: bars on a terminal, nothing elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from hyperboloid.scores import percent
from hyperboloid.training.config import Config
from hyperboloid.training.loop import Training
from hyperboloid.training.many import Watcher

from .options import interruptible


class _Display:
    """One bar for the run at work, one for all runs."""

    def __init__(self, progress: Progress, runs: int) -> None:
        self._progress = progress
        self._all = progress.add_task("runs", total=runs, note="", visible=runs > 1)
        self._run = progress.add_task("epochs", total=None, note="")

    def start(self, config: Config) -> None:
        label = f"split {config.splits[0]} seed {config.seeds[0]}"
        self._progress.reset(self._run, total=config.settings.epochs, description=label)

    def epoch(self, training: Training, metrics: dict[str, Any]) -> None:
        note = f"loss {metrics['loss']:.3f}"
        if training.best_epoch:
            best = training.task.shown(training.best.metric)
            note += f", best val {training.task.metric} {best:.4f} at epoch {training.best_epoch}"
        self._progress.update(self._run, completed=training.epoch, note=note)

    def finish(self, summary: dict[str, Any]) -> None:
        self._progress.advance(self._all)


@contextmanager
def progress_display(runs: int) -> Iterator[_Display | None]:
    """A live display on stderr, or None when that is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        yield _Display(progress, runs)


@contextmanager
def status_display() -> Iterator[Callable[[str], None]]:
    """What is told of work that says no more than how it stands; shown on stderr where that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: None
        return
    with console.status("") as status:
        yield status.update


class StageDisplay:
    """A bar for the stage of a search at work, and one for all that is to be searched."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._all = progress.add_task("", total=None, note="", visible=False)
        self._stage = progress.add_task("", total=None, note="")

    def start(self, number: int, total: int, note: str) -> None:
        """The ``number``-th of ``total`` searches begins."""
        text = f"{number} of {total}"
        self._progress.update(self._all, completed=number - 1, total=total, description=text, note=note, visible=True)

    def stage(self, name: str) -> Watcher:
        """A stage begins; what it is given tells how many settings are alive, and the best validation score."""
        self._progress.reset(self._stage, total=1, description=name, note="")
        size = 0

        def tell(alive: int, epoch: int, best: float, finished: int, total: int) -> None:
            nonlocal size
            size = alive if epoch == 0 else size
            note = f"{alive} alive of {size} at once, {total - finished} to go"
            if epoch:
                note += f", epoch {epoch}, best validation {percent(best)} %"
            self._progress.update(self._stage, completed=finished + size - alive, total=total, note=note)

        return tell

    def at_work(self, texts: Sequence[str]) -> None:
        """A line for each of several processes, in place of the stage."""
        self._progress.update(self._stage, description="", note="\n".join(texts))

    def say(self, text: str) -> None:
        """A line that stays, above the bars."""
        self._progress.console.print(text, markup=False, highlight=False)


def stage_lines(name: str) -> Watcher:
    """A stage begins where there is no terminal: a line on stderr for each batch of models."""

    def tell(alive: int, epoch: int, best: float, finished: int, total: int) -> None:
        if epoch == 0:
            text = f"{name}: {finished} of {total} done, now {alive} at once"
            print(text, file=sys.stderr, flush=True)

    return tell


@contextmanager
def stage_display() -> Iterator[StageDisplay | None]:
    """A live display of searches on stderr, or None when that is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}")]
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True) as progress:
        yield StageDisplay(progress)


@contextmanager
def search_display(folder: Path) -> Iterator[Callable[[str, str], Watcher]]:
    """What gives the watcher of each model's stage in a search; Ctrl-C tells how to go on with its folder."""
    with interruptible(f"go on with the same command and --resume --out {folder}"), stage_display() as display:
        begin = stage_lines if display is None else display.stage
        yield lambda model, stage: begin(f"{model}, {stage}")


class _CellDisplay:
    """Tells of the paper's cells: a line for each that ends, and on a terminal what is going on."""

    def __init__(self, bars: StageDisplay | None, budget: float) -> None:
        self._bars = bars
        self._until = time.monotonic() + budget
        self._what = self._place = ""

    def start(self, what: str, number: int, total: int) -> None:
        self._what, self._place = what, f"{number} of {total}"
        if self._bars is not None:
            left = self._until - time.monotonic()
            self._bars.start(number, total, "" if math.isinf(left) else f"{left / 60:.1f} minutes of the budget left")

    def stage(self, name: str) -> Watcher:
        return _quiet if self._bars is None else self._bars.stage(f"{self._what}, {name}")

    def at_work(self, texts: Sequence[str]) -> None:
        if self._bars is not None:
            self._bars.at_work(texts)

    def done(self, line: dict[str, Any]) -> None:
        ours = percent(line["test_mean"], line["test_std"] if line["runs"] > 1 else None)
        theirs = "(not in the paper)"
        if line["paper_mean"] is not None:
            whose = "paper" if line["comparable"] else "paper, not comparable,"
            theirs = f"({whose} {percent(line['paper_mean'], line['paper_std'])})"
        self._say(f"{self._place}: {self._what}: {ours} {theirs}, {line['seconds']:.0f} s")

    def skipped(self, what: str, reason: str) -> None:
        self._say(f"{self._place}: {what}: skipped. {reason}")

    def note(self, text: str) -> None:
        """A line about what is going on."""
        self._say(f"{self._place}: {text}")

    def _say(self, text: str) -> None:
        if self._bars is None:
            print(text, file=sys.stderr, flush=True)
        else:
            self._bars.say(text)


def now_and_then(say: Callable[[str], None], every: float = 30.0) -> Callable[[str], None]:
    """Say what is told at most once in so many seconds."""
    last = -math.inf

    def tell(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= every:
            last = time.monotonic()
            say(text)

    return tell


def _quiet(alive: int, epoch: int, best: float, finished: int, total: int) -> None:
    """Where nobody looks."""


@contextmanager
def cell_display(budget: float) -> Iterator[_CellDisplay]:
    """What the measurement of cells says on stderr, in ``budget`` seconds."""
    with stage_display() as bars:
        yield _CellDisplay(bars, budget)
