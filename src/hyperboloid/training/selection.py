"""Search, selection and test of one model.

A search over its grid, one initialisation each; the best few settings again with three other
initialisations, whose mean validation score chooses one; then fresh initialisations of that one, and only now the test.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperboloid.errors import InputError
from hyperboloid.graphs import Graph
from hyperboloid.nn.registry import get_model

from .batch import Outcome
from .grids import grid
from .many import Trial, Watcher, can_be_batched, train_many
from .settings import Settings
from .tasks import Task

#: Settings that survive the search, and initialisations that each of them is judged by.
FINALISTS, JUDGED_BY = 8, 3
#: Models that cannot be batched are tried this often at most: they take their time one by one.
TRIES_ALONE = 3
#: Seeds of the search, the selection and the test must not meet.
SEARCH_SEED, SELECTION_SEED = 1_000_000, 2_000_000
#: How far into a model's share of a time budget its search and its selection may go.
SEARCH_SHARE, SELECTION_SHARE = 0.6, 0.8


@dataclass(frozen=True)
class Verdict:
    """What one model came to.

    Attributes:
        model: its name.
        settings: chosen by mean validation score.
        val: mean validation metric of that setting over the initialisations of the selection.
        trials: one for each fresh initialisation, with its test metric.
        tried: settings that were tried.
        epochs: epochs of all models trained for it.
        seconds: time it took.
        complete: whether every stage came to its end within the budget.
    """

    model: str
    settings: Settings
    val: float
    trials: list[Trial]
    tried: int
    epochs: int
    seconds: float
    complete: bool

    @property
    def tested(self) -> list[float]:
        """The test metrics."""
        return [trial.test for trial in self.trials if trial.test is not None]

    @property
    def best(self) -> Trial:
        """The fresh initialisation with the best validation score."""
        return max(self.trials, key=_score)

    @property
    def test_mean(self) -> float:
        """Mean over the fresh initialisations."""
        return statistics.mean(self.tested)

    @property
    def test_std(self) -> float:
        """Sample standard deviation over them; 0 for a single one."""
        return statistics.stdev(self.tested) if len(self.tested) > 1 else 0.0

    @property
    def hyperbolic(self) -> bool:
        """Whether the embeddings lie in hyperbolic space."""
        return get_model(self.model).load().hyperbolic

    def as_json(self) -> dict[str, Any]:
        """All but the parameters, in types that JSON has."""
        return {
            "model": self.model,
            "geometry": "hyperbolic" if self.hyperbolic else "euclidean",
            "val": self.val,
            "test_mean": self.test_mean,
            "test_std": self.test_std,
            "test": self.tested,
            "settings": dataclasses.asdict(self.settings),
            "tried": self.tried,
            "epochs": self.epochs,
            "seconds": self.seconds,
            "complete": self.complete,
        }


class Journal:
    """Trials as they end, one line each in a file, so that a sweep can go on where it was stopped.

    Args:
        path: of the file; None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, dict[str, Any]] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                    self._known[entry.pop("key")] = entry
                except (ValueError, KeyError):  # the last line of a file cut off by a kill
                    continue

    def missing(self, stage: str, model: str, runs: Sequence[tuple[Settings, int]]) -> list[tuple[Settings, int]]:
        """Those runs that have no line yet."""
        return [run for run in runs if _key(stage, model, *run) not in self._known]

    def add(self, stage: str, model: str, trials: Sequence[Trial]) -> None:
        """Note down trials; those cut short by time are kept in memory only, so that a resumed sweep has them again."""
        lines = []
        for trial in trials:
            key, o = _key(stage, model, trial.outcome.settings, trial.outcome.seed), trial.outcome
            entry: dict[str, Any] = {
                "val": o.val,
                "val_loss": o.val_loss,
                "best_epoch": o.best_epoch,
                "epochs": o.epochs,
            }
            entry |= {"done": o.done, "test": trial.test}
            self._known[key] = entry
            if not trial.cut:
                lines.append(json.dumps({"key": key, **entry}) + "\n")
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(lines)

    def read(self, stage: str, model: str, runs: Sequence[tuple[Settings, int]]) -> list[Trial]:
        """The trials of those runs that have a line."""
        found = []
        for settings, seed in runs:
            entry = self._known.get(_key(stage, model, settings, seed))
            if entry is not None:
                numbers = {k: entry[k] for k in ("val", "val_loss", "best_epoch", "epochs", "done")}
                found.append(Trial(Outcome(settings, seed, **numbers), entry["test"]))
        return found


def _key(stage: str, model: str, settings: Settings, seed: int) -> str:
    return json.dumps([stage, model, dataclasses.asdict(settings), seed], sort_keys=True)


def sweep_model(
    model: str,
    graph: Graph,
    task: str,
    task_for: Callable[[Settings], Task],
    *,
    seeds: int,
    tries: int | None = None,
    halving: bool = True,
    budget: float = float("inf"),
    journal: Journal | None = None,
    watch: Callable[[str], Watcher] | None = None,
    **given: Any,
) -> Verdict:
    """Search, select and test one model.

    Args:
        model: its name.
        graph: the data.
        task: ``link`` or ``node``.
        task_for: the task for given settings.
        seeds: fresh initialisations for the test.
        tries: settings to try; None for the whole grid.
        halving: stop the worse half of the search's models now and then.
        budget: seconds that it may take.
        journal: where trials are noted down, and read from.
        watch: gives the watcher of a stage.
        **given: settings that are the same for all.
    """
    began = time.monotonic()
    journal = journal or Journal(None)

    def stage(name: str, runs: list[tuple[Settings, int]], share: float, **options: Any) -> list[Trial]:
        missing = journal.missing(name, model, runs)
        trained = train_many(
            model,
            task_for,
            missing,
            until=began + share * budget,
            watch=None if watch is None else watch(name),
            save=lambda trials: journal.add(name, model, trials),
            **options,
        )
        fresh = {(t.outcome.settings, t.outcome.seed): t for t in trained}  # with their parameters
        return [fresh.get((t.outcome.settings, t.outcome.seed), t) for t in journal.read(name, model, runs)]

    settings = grid(model, task, graph.name, tries, **given)
    if not can_be_batched(model, settings[0]):
        settings = settings[:TRIES_ALONE]
    searched = stage("search", [(s, SEARCH_SEED) for s in settings], SEARCH_SHARE, halving=halving)
    if not searched:
        raise InputError(f"The time budget is too small for {model}: nothing could be trained.")
    ranked = sorted(searched, key=_score, reverse=True)
    finalists = [t.outcome.settings for t in ranked[:FINALISTS]]
    again = [(s, SELECTION_SEED + k) for s in finalists for k in range(JUDGED_BY)]
    judged = stage("selection", again, SELECTION_SHARE)
    chosen, val = _choose(finalists, judged, fallback=ranked[0])
    tested = stage("test", [(chosen, k) for k in range(seeds)], 1.0, test=True)
    if not tested:
        raise InputError(f"The time budget is too small for {model}: it was searched but not tested.")
    everything = [*searched, *judged, *tested]
    whole = len(searched) == len(settings) and len(judged) == len(again) and len(tested) == seeds
    return Verdict(
        model,
        chosen,
        val,
        tested,
        len(searched),
        sum(t.outcome.epochs for t in everything),
        time.monotonic() - began,
        whole and all(t.outcome.done for t in (*judged, *tested)),
    )


def _score(trial: Trial) -> tuple[float, float]:
    return trial.outcome.val, -trial.outcome.val_loss


def _choose(finalists: Sequence[Settings], judged: Sequence[Trial], fallback: Trial) -> tuple[Settings, float]:
    """The setting with the best mean validation metric over all its initialisations; ties go to the smaller loss."""
    means: list[tuple[float, float, int]] = []
    for i, settings in enumerate(finalists):
        own = [t.outcome for t in judged if t.outcome.settings == settings]
        if len(own) == JUDGED_BY:
            means.append((statistics.mean(o.val for o in own), -statistics.mean(o.val_loss for o in own), -i))
    if not means:  # no time for the selection
        return fallback.outcome.settings, fallback.outcome.val
    val, _, place = max(means)
    return finalists[-place], val
