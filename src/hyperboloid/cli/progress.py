"""How training shows its progress: bars on a terminal, nothing elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from hyperboloid.scores import percent
from hyperboloid.training.config import Config
from hyperboloid.training.loop import Training
from hyperboloid.training.many import Watcher

from .options import interruptible


class _Bars(Progress):
    """Bars with a line above and a line below them, so that all of it has room on 80 columns."""

    def __init__(self, console: Console) -> None:
        done = TextColumn("{task.completed} of {task.total}", table_column=Column(min_width=12, no_wrap=True))
        super().__init__(done, BarColumn(bar_width=None), _Clock(), console=console, transient=True, expand=True)

    def add(self, until: float = math.inf, word: str = "about") -> _Bar:
        """One more, which has no bar as long as it has no total.

        Args:
            until: value of :func:`time.monotonic` at which it ends.
            word: what to say of the time left.
        """
        return _Bar(self, {"until": until, "word": word})

    def get_renderables(self) -> Iterable[RenderableType]:
        """The lines of all tasks."""
        for task in self.tasks:
            if task.fields["heading"]:
                yield Text(task.fields["heading"])
            if task.total is not None:
                yield self.make_tasks_table([task])
            if task.fields["note"]:
                yield Text(task.fields["note"])


class _Bar:
    """A bar among others."""

    def __init__(self, bars: _Bars, clock: dict[str, Any]) -> None:
        self._bars, self._clock = bars, clock
        self._number = bars.add_task("", total=None, heading="", note="", before=None, **clock)

    def begin(self, heading: str, total: int | None = None) -> None:
        """Something new begins, and with it the clock."""
        self._bars.reset(self._number, total=total, heading=heading, note="", before=None, **self._clock)

    def show(self, completed: int, total: int, note: str = "") -> None:
        """How it goes; what is told first was there before, and took no time."""
        before = self._bars.tasks[self._number].fields["before"]
        before = completed if before is None else before
        self._bars.update(self._number, completed=completed, total=total, note=note, before=before)


class _Clock(ProgressColumn):
    """Time gone, and time left if the rest takes as long on average, but no longer than there is time."""

    def __init__(self) -> None:
        super().__init__(Column(no_wrap=True))

    def render(self, task: Task) -> Text:
        gone = task.elapsed or 0.0
        done = task.completed - (task.fields["before"] or 0)
        about = gone * (task.total - task.completed) / done if task.total and done else math.inf
        most = max(0.0, task.fields["until"] - time.monotonic())
        if math.isinf(min(about, most)):
            return Text(f"{_hours(gone)}, -:--:-- left")
        word = "at most" if most < about else task.fields["word"]
        return Text(f"{_hours(gone)}, {word} {_hours(min(about, most))} left")


def _hours(seconds: float) -> str:
    """A time like 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


class _Display:
    """One bar for the run at work, one for all runs."""

    def __init__(self, bars: _Bars, runs: int) -> None:
        self._runs, self._done = runs, 0
        self._all, self._run = bars.add(), bars.add(word="at most")  # few runs need all their epochs
        self._count()

    def start(self, config: Config) -> None:
        self._epochs = config.settings.epochs
        self._run.begin(f"split {config.splits[0]} seed {config.seeds[0]}", self._epochs)

    def epoch(self, training: Training, metrics: dict[str, Any]) -> None:
        note = f"loss {metrics['loss']:.3f}"
        if training.best_epoch:
            best = training.task.shown(training.best.metric)
            note += f", best val {training.task.metric} {best:.4f} at epoch {training.best_epoch}"
        self._run.show(training.epoch, self._epochs, note)

    def finish(self, summary: dict[str, Any]) -> None:
        self._done += 1
        self._count()

    def _count(self) -> None:
        if self._runs > 1:
            self._all.show(self._done, self._runs)


@contextmanager
def progress_display(runs: int) -> Iterator[_Display | None]:
    """A live display on stderr, or None when that is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with _Bars(console) as bars:
        yield _Display(bars, runs)


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

    def __init__(self, bars: _Bars, until: float) -> None:
        self._bars = bars
        self._all, self._stage = bars.add(until=until), bars.add(until=until)

    def count(self, ended: int, total: int) -> None:
        """So many of all searches have ended."""
        self._all.show(ended, total)

    def stage(self, name: str) -> Watcher:
        """A stage begins; what it is given tells how many settings are alive, and the best validation score."""
        self._stage.begin(name)
        size, score = 0, -math.inf

        def tell(alive: int, epoch: int, best: float, finished: int, total: int) -> None:
            nonlocal size, score
            if epoch == 0:
                size = alive
            else:
                score = max(score, best)
            note = f"{alive} of {size} alive at epoch {epoch}"
            if math.isfinite(score):
                note += f", best validation {percent(score)} %"
            self._stage.show(finished + size - alive, total, note)

        return tell

    def at_work(self, texts: Sequence[str]) -> None:
        """A line for each of several processes, in place of the stage."""
        self._stage.begin("\n".join(texts))

    def say(self, text: str) -> None:
        """A line that stays, above the bars."""
        self._bars.console.print(text, markup=False, highlight=False)


def stage_lines(name: str) -> Watcher:
    """A stage begins where there is no terminal: a line on stderr for each batch of models."""

    def tell(alive: int, epoch: int, best: float, finished: int, total: int) -> None:
        if epoch == 0:
            text = f"{name}: {finished} of {total} done, now {alive} at once"
            print(text, file=sys.stderr, flush=True)

    return tell


@contextmanager
def stage_display(until: float = math.inf) -> Iterator[StageDisplay | None]:
    """A live display of searches on stderr, or None when that is no terminal.

    Args:
        until: value of :func:`time.monotonic` at which all of them stop.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with _Bars(console) as bars:
        yield StageDisplay(bars, until)


@contextmanager
def search_display(folder: Path, budget: float) -> Iterator[Callable[[str, str], Watcher]]:
    """What gives the watcher of each model's stage in a search; Ctrl-C tells how to go on with its folder.

    Args:
        folder: of the search.
        budget: seconds that it may take.
    """
    how, until = f"go on with the same command and --resume --out {folder}", time.monotonic() + budget
    with interruptible(how), stage_display(until) as display:
        begin = stage_lines if display is None else display.stage
        yield lambda model, stage: begin(f"{model}, {stage}")


class _CellDisplay:
    """Tells of the paper's cells: a line for each that ends, and on a terminal what is going on."""

    def __init__(self, bars: StageDisplay | None) -> None:
        self._bars = bars
        self._what = self._place = ""

    def start(self, what: str, number: int, total: int) -> None:
        self._what, self._place = what, f"{number} of {total}"
        if self._bars is not None:
            self._bars.count(number - 1, total)

    def stage(self, name: str) -> Watcher:
        return _quiet if self._bars is None else self._bars.stage(f"{self._what}, {name}")

    def at_work(self, texts: Sequence[str], ended: int, total: int) -> None:
        if self._bars is not None:
            self._bars.count(ended, total)
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
    with stage_display(time.monotonic() + budget) as bars:
        yield _CellDisplay(bars)
