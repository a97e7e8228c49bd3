"""Search, selection and test of one model.

A search over its grid, one initialisation each; the best settings again with other initialisations, in rounds that have
ever fewer settings and more initialisations, until their mean validation score chooses one; then fresh initialisations
of that one, and only now the test.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hyperboloid.errors import InputError, TrainingError
from hyperboloid.graphs import Graph
from hyperboloid.nn.registry import get_model
from hyperboloid.scores import percent, spread_of

from .batch import Outcome
from .grids import Choices, grid
from .journal import Journal
from .loop import can_be_batched
from .many import Watcher, train_many
from .settings import Settings, default_settings
from .tasks import Task
from .trial import Trial

#: Rounds of a selection: of so many settings, the best so far, each is judged by so many initialisations in all.
Rounds = Sequence[tuple[int, int]]
ROUNDS: Rounds = ((8, 3),)
#: Models that cannot be batched are tried this often at most, with their default settings and some of the paper's grid:
#: they take their time one by one.
TRIES_ALONE = 4
#: Seeds of the search, the selection and the test must not meet.
SEARCH_SEED, SELECTION_SEED = 1_000_000, 2_000_000
#: How far into a model's share of a time budget its search and its selection may go.
SEARCH_SHARE, SELECTION_SHARE = 0.6, 0.8
#: What may be added to a budget so that there is something to show for it.
GRACE = 0.1


class Diverged(TrainingError):
    """Of a model that was trained no number stayed finite."""


@dataclass(frozen=True)
class Verdict:
    """What one model came to.

    Attributes:
        model: its name.
        settings: chosen by mean validation score.
        trials: one for each fresh initialisation, with its test metric.
        grid: settings that there were to try.
        tried: settings that were tried, and gave finite numbers.
        epochs: epochs of all models trained for it.
        seconds: time it took.
        complete: whether every stage came to its end within the budget.
        failed: settings of the search whose numbers did not stay finite.
        failed_runs: fresh initialisations of which the same is true.
    """

    model: str
    settings: Settings
    trials: list[Trial]
    grid: int
    tried: int
    epochs: int
    seconds: float
    complete: bool
    failed: int = 0
    failed_runs: int = 0

    @property
    def val(self) -> float:
        """Mean validation metric of the fresh initialisations."""
        return statistics.mean(trial.outcome.val for trial in self.trials)

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
        return spread_of(self.tested)

    @property
    def test_spread(self) -> float | None:
        """The same; None for a single one, of which nothing is known."""
        return self.test_std if len(self.tested) > 1 else None

    @property
    def told(self) -> str:
        """Test mean and spread in per cent."""
        return f"{percent(self.test_mean, self.test_spread)} %"

    @property
    def hyperbolic(self) -> bool:
        """Whether the embeddings lie in hyperbolic space."""
        return get_model(self.model).load().hyperbolic

    @property
    def failures(self) -> str:
        """What diverged, in words; empty if nothing did."""
        runs = len(self.tested) + self.failed_runs
        parts = [
            f"{self.failed} of {self.tried + self.failed} settings" if self.failed else "",
            f"{self.failed_runs} of {runs} fresh initialisations of the chosen one" if self.failed_runs else "",
        ]
        return " and ".join(part for part in parts if part)

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
            "failed": self.failed,
            "failed_runs": self.failed_runs,
        }


def sweep_model(
    model: str,
    graph: Graph,
    task: str,
    task_for: Callable[[Settings], Task],
    *,
    seeds: int,
    tries: int | None = None,
    halving: bool = True,
    rounds: Rounds = ROUNDS,
    short: bool = False,
    choices: Choices | None = None,
    budget: float = float("inf"),
    check: Callable[[], None] | None = None,
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
        rounds: of the selection; where there are none, the best of the search is chosen.
        short: try only a few settings of the paper's grid.
        choices: values to try instead of the paper's grid.
        budget: seconds that it may take.
        check: as for :func:`train_many`.
        journal: where trials are noted down, and read from.
        watch: gives the watcher of a stage.
        **given: settings that are the same for all.

    Raises:
        InputError: it has no place for this graph, or there was no time for it.
        Diverged: there is nothing to choose, or to test.
    """
    began = time.monotonic()
    journal = journal or Journal(None)

    complete = True
    failed: Counter[str] = Counter()

    def stage(
        name: str, runs: list[tuple[Settings, int]], share: float, shelf: str | None, **options: Any
    ) -> list[Trial]:
        """The trials of a stage that have not failed; what is stopped is kept on a shelf of its own."""
        nonlocal complete
        missing = journal.missing(name, model, runs)
        trained = train_many(
            model,
            task_for,
            missing,
            until=began + share * budget,
            check=check,
            watch=None if watch is None else watch(name),
            save=lambda trials: journal.add(name, model, trials),
            shelf=None if shelf is None else journal.shelf(shelf, model),
            **options,
        )
        complete &= len(trained) == len(missing) and not any(t.cut for t in trained)
        fresh = {(t.outcome.settings, t.outcome.seed): t for t in trained}  # with their parameters
        known = [fresh.get((t.outcome.settings, t.outcome.seed), t) for t in journal.read(name, model, runs)]
        finite = [t for t in known if not t.outcome.failed]
        failed[name] = sum(t.outcome.failed and t.outcome.done for t in known)  # not what had no time for an epoch
        return finite

    settings = to_try(model, task, graph.name, tries, short=short, choices=choices, **given)
    searched = stage("search", [(s, SEARCH_SEED) for s in settings], SEARCH_SHARE, "search", halving=halving)
    if not searched and failed["search"]:
        many = f"{failed['search']} settings" if failed["search"] > 1 else "one setting"
        raise Diverged(f"The {many} of {model} that were tried diverged: try smaller learning rates or penalties.")
    if not searched:
        raise InputError(f"No setting of {model} could be trained: there was no time.")
    left = [t.outcome.settings for t in sorted(searched, key=_score, reverse=True)]
    judged: list[Trial] = []
    before = 0
    for most, inits in rounds:
        again = [(s, SELECTION_SEED + k) for s in left[:most] for k in range(before, inits)]
        judged += stage("selection", again, SELECTION_SHARE, f"selection-{inits}")
        left = _ranked(left[:most], judged, inits) or left  # the same where there was no time to judge any
        before = inits
    chosen = left[0]
    tested = stage("test", [(chosen, k) for k in range(seeds)], 1.0, "test", test=True)
    # an epoch of a whole batch was longer than what was left: some of one model
    if not tested and not failed["test"] and budget < math.inf:
        tested = stage("test", [(chosen, 0)], (time.monotonic() - began) / budget + GRACE, None, test=True)
    if not tested and failed["test"]:
        raise Diverged(f"The setting chosen for {model} diverged in each of {failed['test']} fresh initialisations.")
    if not tested:
        raise InputError(f"There was no time to test {model}.")
    # beside initialisations that came to their end, what time has cut is no initialisation's score
    tested = [t for t in tested if not t.cut] or tested
    everything = [*searched, *judged, *tested]
    return Verdict(
        model,
        chosen,
        tested,
        len(settings),
        len(searched),
        sum(t.outcome.epochs for t in everything),
        time.monotonic() - began,
        complete,
        failed["search"],
        failed["test"],
    )


def to_try(model: str, task: str, dataset: str, tries: int | None = None, **options: Any) -> list[Settings]:
    """The :func:`grid`; of the paper's, models that cannot be batched try the default settings and a few."""
    settings = grid(model, task, dataset, tries, **options)
    if options.get("choices") is not None or can_be_batched(model, settings[0]):
        return settings
    given = {name: value for name, value in options.items() if name not in ("short", "choices")}
    few = dict.fromkeys([default_settings(model, task, dataset, **given), *settings])
    return list(few)[: min(tries or TRIES_ALONE, TRIES_ALONE)]


def _score(trial: Trial) -> tuple[float, float]:
    return trial.outcome.val, -trial.outcome.val_loss


def _ranked(settings: Sequence[Settings], judged: Sequence[Trial], inits: int) -> list[Settings]:
    """Those settings that have come through so many initialisations, the best mean validation metric first.

    Ties go to the smaller mean loss, then to the one that was before.
    """
    found: dict[Settings, list[Outcome]] = {}
    for trial in judged:
        found.setdefault(trial.outcome.settings, []).append(trial.outcome)
    means = {
        one: (statistics.mean(o.val for o in own), -statistics.mean(o.val_loss for o in own))
        for one in settings
        if len(own := found.get(one, [])) == inits
    }
    return sorted(means, key=lambda one: means[one], reverse=True)
