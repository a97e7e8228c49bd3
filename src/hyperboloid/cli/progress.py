"""How training shows its progress: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hyperboloid.training.config import Config
from hyperboloid.training.loop import Training


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
        best = f"best val {training.task.metric} {training.best.metric:.4f} at epoch {training.best_epoch}"
        self._progress.update(self._run, completed=training.epoch, note=f"loss {metrics['loss']:.3f}, {best}")

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
