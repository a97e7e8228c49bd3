"""Several models on one graph, each searched, selected and tested: which model, and which geometry, suits it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hyperboloid.errors import InputError, TrainingError
from hyperboloid.graphs import Graph, load_graph
from hyperboloid.nn.registry import check_task, get_model
from hyperboloid.scores import two_errors

from .checkpoint import write_json
from .config import Config, use_device
from .grids import Choices, read_choices
from .journal import Journal
from .many import NoRoom, Watcher
from .selection import ROUNDS, Diverged, Rounds, Verdict, sweep_model
from .settings import Settings, check_names, default_settings, taken_settings
from .sweep_folder import keep_best, open_folder
from .tasks import Task, get_task

#: Width of the embeddings, where nothing says it.
DIM = 16


@dataclass(frozen=True)
class Sweep:
    """What a sweep found.

    Attributes:
        folder: where it is kept; its ``best`` is a run folder of the model with the best validation score.
        dataset: name or path of the graph.
        task: ``link`` or ``node``.
        metric: what is measured.
        guess: what the test part gives the same answer to everything.
        tested: examples of the test part, edges or nodes.
        verdicts: one for each model that could be trained, the best on validation first.
        skipped: why a model could not, by its name.
        seconds: time it took.
    """

    folder: Path
    dataset: str
    task: str
    metric: str
    guess: float
    tested: int
    verdicts: list[Verdict]
    skipped: dict[str, str]
    seconds: float

    @property
    def learned(self) -> bool:
        """Whether any model is better than guessing, by more than two standard errors."""
        return any(v.test_mean - self.guess > self._error(v) for v in self.verdicts)

    def _error(self, verdict: Verdict) -> float:
        """Two standard errors of a model's test mean: of its initialisations, and of a part with so few examples."""
        spread = verdict.test_std**2 / len(verdict.tested)
        return 2 * math.sqrt(spread + self.guess * (1 - self.guess) / self.tested)

    @property
    def advice(self) -> str:
        """A few sentences: which model, whether that is certain, and whether hyperbolic space helps."""
        best = self.verdicts[0]
        text = f"Validation prefers {best.model}: test {self.metric} {best.told}."
        if not all(v.complete for v in self.verdicts):
            text += " The budget cut the training short, so more time may change the order."
        if not self.learned:
            return f"{text} {self.nothing_learned}"
        rivals = [v for v in self.verdicts if v.hyperbolic != best.hyperbolic]
        if not rivals:
            return text
        rival = rivals[0]
        ours, theirs = ("hyperbolic", "Euclidean") if best.hyperbolic else ("Euclidean", "hyperbolic")
        gap, noise = best.test_mean - rival.test_mean, two_errors(best.tested, rival.tested, self.tested)
        weight = f"{'more than' if abs(gap) > noise else 'within'} the noise of {100 * noise:.1f}."
        if min(len(best.tested), len(rival.tested)) < 2:
            weight = "but a single initialisation does not tell whether that is chance."
        elif gap < -noise:
            weight += " Validation and test disagree: other splits (--split) will tell."
        return (
            f"{text} The best {theirs} model is {rival.model} with {rival.told}: {ours} space makes "
            f"{100 * gap:+.1f} points here, {weight}"
        )

    @property
    def nothing_learned(self) -> str:
        """What to say where no model is better than guessing."""
        best = max(self.verdicts, key=lambda v: v.test_mean)
        return (
            f"No model is clearly better than guessing (test {self.metric} {best.told}, guessing "
            f"{100 * self.guess:.1f} %, noise {100 * self._error(best):.1f} with {self.tested:,} test examples), so "
            "their order means nothing: the graph is too small, or does not show what was asked for. Node features may."
        )

    def as_json(self) -> dict[str, Any]:
        """Everything but parameters, in types that JSON has."""
        return {
            "dataset": self.dataset,
            "task": self.task,
            "metric": self.metric,
            "guess": self.guess,
            "learned": self.learned,
            "best": self.verdicts[0].model,
            "models": [v.as_json() for v in self.verdicts],
            "skipped": self.skipped,
            "advice": self.advice,
            "seconds": self.seconds,
            "run": str(self.folder / "best"),
        }


def sweep(
    dataset: Any,
    *,
    task: str = "link",
    models: Sequence[str] = ("lgcn", "hgcn", "gcn", "gat"),
    dim: int | None = None,
    seeds: int = 5,
    split: int = 0,
    tries: int | None = None,
    grid: str | Path | None = None,
    halving: bool = True,
    rounds: Rounds = ROUNDS,
    short: bool = False,
    budget: float = float("inf"),
    features: str | Path | None = None,
    labels: str | Path | None = None,
    weight: str | None = None,
    data_dir: str | Path | None = None,
    device: str = "cpu",
    dtype: str = "float32",
    out: str | Path = "runs/sweep",
    resume: bool = False,
    watch: Callable[[str, str], Watcher] | None = None,
    **settings: Any,
) -> Sweep:
    """Find settings for several models on one graph and compare them.

    Args:
        dataset: name of a data set, path of a graph file, or a graph object, as for :func:`fit`.
        task: ``link`` or ``node``.
        models: names of the models.
        dim: width of the embeddings; None for 16, or for the widths that the grid has.
        seeds: fresh initialisations for the test.
        split: seed of the split.
        tries: settings to try for each model; None for the whole grid.
        grid: a file of values to try instead of the paper's, see :func:`read_choices`.
        halving: stop the worse half of a search's models now and then.
        rounds, short: as for :func:`sweep_model`.
        budget: seconds, shared evenly by the models.
        features, labels, weight, data_dir, device, dtype: as for :func:`fit`.
        out: folder for what is found.
        resume: go on with the sweep in ``out``.
        watch: gives the watcher of a model's stage.
        **settings: hyper-parameters that are the same for all.

    Raises:
        InputError: something given is wrong, or there was no time.
        TrainingError: no model could be trained, and of one that was tried no number stayed finite, or it had no room.
    """
    began = time.monotonic()
    check_names(settings)
    use_device(device)
    _check_request(models, task, seeds, tries, rounds)
    choices = {} if grid is None else read_choices(grid)
    if dim is not None:
        settings["dim"] = dim
    elif "dim" not in choices:
        settings["dim"] = DIM
    for setting in choices.keys() & settings.keys():
        raise InputError(f"'{setting}' is in the grid {grid} and was given besides: leave one of them out.")
    graph = load_graph(dataset, data_dir=data_dir, features=features, labels=labels, weight=weight)
    name = str(dataset) if isinstance(dataset, (str, Path)) else graph.name
    given, to_try = _by_model(models, settings, choices)
    configs = {}
    for model in models:
        chosen = default_settings(model, task, graph.name, **given[model])
        configs[model] = Config(name, graph.checksum, task, model, chosen, [split], list(range(seeds)), dtype, device)
    task_for = task_factory(graph, task, split, configs[models[0]].torch_dtype, device)
    for config in configs.values():
        task_for(config.settings)  # everything that can be wrong with the input shows here
    what = {"dataset": name, "checksum": graph.checksum, "task": task, "split": split, "dtype": dtype}
    folder = open_folder(Path(out), resume, what)
    journal = Journal(folder / "trials.jsonl")

    verdicts: list[Verdict] = []
    skipped: dict[str, str] = {}
    failed = False
    for left, model in zip(range(len(models), 0, -1), models, strict=True):
        share = (began + budget - time.monotonic()) / left
        watchers = None if watch is None else partial(watch, model)
        options: dict[str, Any] = {"seeds": seeds, "tries": tries, "halving": halving, "journal": journal}
        options |= {"rounds": rounds, "short": short, "choices": to_try[model] if choices else None, **given[model]}
        try:
            verdicts.append(sweep_model(model, graph, task, task_for, budget=share, watch=watchers, **options))
        # a model that has no place for this graph, no time, no room, or no luck
        except (InputError, NoRoom, Diverged) as error:
            skipped[model] = str(error)
            failed |= isinstance(error, TrainingError)
    if not verdicts:
        kind = TrainingError if failed else InputError
        raise kind("None of the models could be trained: " + " ".join(skipped.values()))
    verdicts.sort(key=lambda v: v.val, reverse=True)
    judge, seconds = task_for(verdicts[0].settings), time.monotonic() - began
    found = Sweep(folder, name, task, judge.metric, judge.guess("test"), judge.size("test"), verdicts, skipped, seconds)
    keep_best(found, configs[verdicts[0].model], graph, task_for)
    write_json(folder / "summary.json", found.as_json())
    return found


def _check_request(models: Sequence[str], task: str, seeds: int, tries: int | None, rounds: Rounds) -> None:
    """Refuse what makes no sense, before anything is loaded."""
    for name, number in (("seeds", seeds), ("tries", 1 if tries is None else tries)):
        if number < 1:
            raise InputError(f"{name} must be at least 1, not {number}.")
    before = 0
    for most, inits in rounds:
        if most < 1 or inits <= before:
            raise InputError(f"rounds must have settings, and ever more initialisations, not {most} and {inits}.")
        before = inits
    if not models or len(set(models)) < len(models):
        raise InputError(f"Give the models to compare, each once, not {', '.join(models) or 'none'}.")
    get_task(task)
    for model in models:
        check_task(model, task)


def _by_model(
    models: Sequence[str], settings: dict[str, Any], choices: Choices
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, list[Any]]]]:
    """Those settings, and those values to try, that each model has a use for.

    Raises:
        InputError: no model has a use for one of them.
    """
    tried = {name: [value] for name, value in settings.items()} | dict(choices)
    fit = {model: _that_fit(tried, model) for model in models}
    _check_use(tried, fit)
    given = {model: {name: own[name][0] for name in settings if name in own} for model, own in fit.items()}
    to_try = {model: {name: own[name] for name in choices if name in own} for model, own in fit.items()}
    return given, to_try


def _that_fit(choices: Choices, model: str) -> dict[str, list[Any]]:
    """Those values that a model has a use for."""
    distances = get_model(model).load().distances
    fit = {name: list(values) for name, values in choices.items() if name in taken_settings(model)}
    fit["distance"] = [value for value in fit.get("distance", ()) if value in distances]
    return {name: values for name, values in fit.items() if values}


def _check_use(tried: Choices, fit: dict[str, dict[str, list[Any]]]) -> None:
    """Refuse a setting, or a value of it, that no model has a use for."""
    for setting, values in tried.items():
        known = any(setting in taken_settings(model) for model in fit)
        for value in values:
            if not any(value in own.get(setting, ()) for own in fit.values()):
                which = f"{setting}={value}" if known else setting
                raise InputError(f"None of the models has a use for the setting '{which}'.")


def task_factory(graph: Graph, task: str, split: int, dtype: Any, device: str) -> Callable[[Settings], Task]:
    """The task for given settings; those that agree in what a task depends on share one."""
    made: dict[tuple[Any, ...], Task] = {}

    def task_for(settings: Settings) -> Task:
        key = (settings.scaling, settings.distance, settings.masks)
        if key not in made:
            made[key] = get_task(task)(graph, settings, split, dtype, device)
        return made[key]

    return task_for
