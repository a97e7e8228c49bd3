"""Training of many models: as one program where their layers allow it, in as large batches as fit into memory."""

from __future__ import annotations

import dataclasses
import gc
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from hyperboloid.errors import TrainingError
from hyperboloid.nn.settings import PER_MODEL

from .batch import Batch, Outcome, shape_of
from .interrupt import held_interrupt
from .loop import can_be_batched, start_training
from .memory import batch_is_faster, capacity
from .one_by_one import OneByOne
from .settings import Settings
from .tasks import Task

#: Every so many epochs the models that are out of patience are counted, and dropped if it pays.
LOOK_EVERY = 25
#: With halving, the better half of what is left of a batch goes on at each of these epochs, and whatever is still
#: getting better, which had its best score in the last tenth of them: models with much dropout are slow, and may be the
#: best in the end. How large a batch is depends on the machine's memory (`memory.py`), and so does which models go on.
RUNGS, RISING = (50, 100, 200, 400), 0.9


@dataclass(frozen=True)
class Trial:
    """One trained model.

    Attributes:
        outcome: its settings, seed and validation scores.
        test: metric on the test part at the best epoch; None where it was not asked for, or the model failed.
        state: parameters of the best epoch; None likewise.
        cut: whether it would have gone on, had there been time.
    """

    outcome: Outcome
    test: float | None = None
    state: dict[str, Tensor] | None = None
    cut: bool = False


class Watcher(Protocol):
    """Is told how it goes."""

    def __call__(self, alive: int, epoch: int, best: float, finished: int, total: int) -> None:
        """``alive`` models at ``epoch``, the ``best`` validation metric among them; ``finished`` of ``total``."""


def train_many(
    model: str,
    task_for: Callable[[Settings], Task],
    runs: Sequence[tuple[Settings, int]],
    *,
    test: bool = False,
    halving: bool = False,
    until: float = float("inf"),
    check: Callable[[], None] | None = None,
    watch: Watcher | None = None,
    save: Callable[[list[Trial]], None] | None = None,
) -> list[Trial]:
    """Train a model for each of many settings and seeds.

    Args:
        model: name of the model.
        task_for: the task for given settings (their scaling of features and decoder).
        runs: settings and seed of each model.
        test: score the test part of each, and keep its parameters.
        halving: stop the worse half of a batch now and then, but for what is still rising (:data:`RUNGS`).
        until: value of :func:`time.monotonic` at which to stop with the best so far.
        check: is called between epochs; what it raises ends the training, of which only what was saved is left.
        watch: is told how it goes.
        save: is given trials as they end; with halving those of a whole batch together, because which of its models
            go on depends on the others.

    Returns:
        One trial for each run, in their order; those that time did not suffice for are missing at the end.
    """
    found: dict[int, Trial] = {}
    with held_interrupt() as interrupted:

        def late() -> bool:
            """Whether time is up; an interrupt is raised here, where nothing is half done."""
            if interrupted():
                raise KeyboardInterrupt
            if check is not None:
                check()
            return time.monotonic() >= until

        how = _How(test, halving, late, save)
        # kinds of models take turns, so that a search that is cut short has tried some of each
        turns: deque[tuple[list[int], int | None]] = deque((group, None) for group in _by_shape(runs))
        while turns and not late():
            group, size = turns.popleft()
            first = runs[group[0]][0]
            task, alone = task_for(first), not can_be_batched(model, first)
            if size is None:
                most = max((runs[i][0] for i in group), key=_masked)
                size = 1 if alone else capacity(model, task, most)
            chunk, rest = group[:size], group[size:]
            tell = None if watch is None else _told(watch, len(found), len(runs))
            if tell is not None:
                tell(len(chunk), 0, 0.0)
            try:
                trials = (_train_alone if alone else _train_batch)(model, task, [runs[i] for i in chunk], how, tell)
            except torch.OutOfMemoryError as error:  # others may have taken what was free
                if len(chunk) == 1:
                    raise TrainingError(
                        "The GPU has no room for even one model: use a smaller --dim or --device cpu, or wait "
                        "until it is free."
                    ) from error
                turns.appendleft((group, len(chunk) // 2))
            else:
                found |= dict(zip(chunk, trials, strict=True))
                if rest:
                    turns.append((rest, size))
                continue
            # the error is gone only now, and what it kept alive goes with it
            gc.collect()
            torch.cuda.empty_cache()
        late()  # an interrupt that came during the last epoch
    return [found[i] for i in sorted(found)]


Tell = Callable[[int, int, float], None]


@dataclass(frozen=True)
class _How:
    """What :func:`train_many` was asked for, and whether time is up."""

    test: bool
    halving: bool
    late: Callable[[], bool]
    save: Callable[[list[Trial]], None] | None


class _Pace:
    """How long a batch takes for an epoch, and to get going again: on a GPU it has to be recorded anew.

    Times decide only what is computed in vain; what comes out does not depend on them.
    """

    def __init__(self) -> None:
        self._epoch, self._at = 0, time.monotonic()
        self._first: tuple[float, int] | None = None  # seconds and epochs of the first look, which had the start in it
        self._each = self._start = 0.0

    def look(self, epoch: int) -> None:
        """Some epochs have passed since the last look."""
        seconds, epochs = time.monotonic() - self._at, epoch - self._epoch
        if self._first is None:
            self._first = seconds, epochs
        else:
            self._each = seconds / epochs
            self._start = max(0.0, self._first[0] - self._first[1] * self._each)
        self._epoch, self._at = epoch, time.monotonic()

    def start_again(self) -> None:
        """Models have left."""
        self._at, self._first = time.monotonic(), None

    def pays(self, share: float, ahead: int) -> bool:
        """Whether to start again without a share of the models, if as many epochs as ``ahead`` are to come."""
        return share * self._each * ahead >= self._start


def _told(watch: Watcher, finished: int, total: int) -> Tell:
    return lambda alive, epoch, best: watch(alive, epoch, best, finished, total)


def _by_shape(runs: Sequence[tuple[Settings, int]]) -> list[list[int]]:
    """Places of the runs that can be one program."""
    groups: dict[object, list[int]] = {}
    for i, (settings, _) in enumerate(runs):
        groups.setdefault(shape_of(settings), []).append(i)
    return list(groups.values())


def _train_batch(
    model: str, task: Task, runs: Sequence[tuple[Settings, int]], how: _How, tell: Tell | None
) -> list[Trial]:
    """Train some models together; those out of patience leave on the way."""
    together = batch_is_faster(model, task, runs[0][0])
    batch = Batch(model, task, runs) if together else OneByOne(model, task, runs, how.late)
    place = list(range(len(runs)))  # of each model of the batch among the runs
    found: dict[int, Trial] = {}

    def leave(indices: Sequence[int], cut: bool = False) -> None:
        """Note down some models, and go on without them."""
        outcomes, values = batch.outcomes, batch.metrics("test") if how.test and indices else []
        left = {}
        for i in indices:
            trial = Trial(outcomes[i], cut=cut and not outcomes[i].done)
            if how.test and not outcomes[i].failed:
                trial = dataclasses.replace(trial, test=values[i], state=batch.state(i))
            left[place[i]] = trial
        found.update(left)
        if how.save is not None and not how.halving:
            how.save(list(left.values()))
        gone = set(indices)
        stay = [i for i in range(len(batch)) if i not in gone]
        place[:] = [place[i] for i in stay]
        if stay and indices:
            batch.keep(stay)
            pace.start_again()

    pace = _Pace()
    while place:
        batch.step()
        rung = how.halving and batch.epoch in RUNGS
        last = batch.epoch == runs[0][0].epochs
        cut = how.late()
        if not rung and not last and batch.epoch % LOOK_EVERY and not cut:
            continue
        outcomes = batch.outcomes
        pace.look(batch.epoch)
        done = [i for i, o in enumerate(outcomes) if o.done]
        if tell is not None:
            tell(len(place) - len(done), batch.epoch, max(o.val for o in outcomes))
        if cut or len(done) == len(place):
            leave(range(len(place)), cut)
        elif rung:
            alive = set(range(len(place))) - set(done)
            by_score = sorted(alive, key=lambda i: (outcomes[i].val, -outcomes[i].val_loss, i))
            worse = (i for i in by_score[: len(alive) // 2] if outcomes[i].best_epoch <= RISING * batch.epoch)
            leave(sorted({*done, *worse}))
        elif done and pace.pays(len(done) / len(place), runs[0][0].patience):
            leave(done)
    trials = [found[i] for i in range(len(runs))]
    if how.halving and any(trial.cut for trial in trials):  # which of the others go on would be another matter then
        trials = [dataclasses.replace(trial, cut=True) for trial in trials]
    if how.save is not None and how.halving:
        how.save(trials)
    return trials


def _train_alone(
    model: str, task: Task, runs: Sequence[tuple[Settings, int]], how: _How, tell: Tell | None
) -> list[Trial]:
    """Train one model that cannot be batched."""
    ((settings, seed),) = runs
    training = start_training(model, task, settings, seed)
    broken = False
    while not training.done and not broken and not how.late():
        try:
            training.step()
        except TrainingError:  # a number that is not finite
            broken = True
        else:
            if tell is not None:
                tell(1, training.epoch, training.best.metric)
    best = training.best
    outcome = Outcome(
        settings, seed, best.metric, -best.negative_loss, training.best_epoch, training.epoch, training.done
    )
    if broken:
        outcome = Outcome.broken(settings, seed, training.epoch)
    trial = Trial(outcome, cut=not outcome.done)
    if how.test and not outcome.failed:
        training.encoder.load_state_dict(training.best_state)
        trial = dataclasses.replace(trial, test=training.score("test").metric, state=training.best_state)
    if how.save is not None:
        how.save([trial])
    return [trial]


def _masked(settings: Settings) -> int:
    """How many kinds of random masks a model needs."""
    return sum(getattr(settings, name) > 0 for name in PER_MODEL)
