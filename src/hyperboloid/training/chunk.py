"""Training of one batch of models, or of one that cannot be in a batch, epoch by epoch."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from torch import Tensor

from hyperboloid.errors import TrainingError

from .batch import Batch, Outcome
from .loop import start_training
from .memory import batch_is_faster
from .one_by_one import OneByOne
from .settings import Settings
from .tasks import Task

#: Every so many epochs the models that are out of patience are counted, and dropped if it pays.
LOOK_EVERY = 25
#: With halving, the better half of a batch goes on at each of these epochs, and whatever is still getting better, which
#: had its best score in the last tenth of them: models with much dropout are slow, and may be the best in the end.
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


#: Is told how many models are alive, their epoch, and the best validation metric among them.
Tell = Callable[[int, int, float], None]
#: A training on its way: it pauses after every epoch, and gives a trial for each of its runs in the end.
Work = Generator[None, None, list[Trial]]


@dataclass(frozen=True)
class How:
    """What is asked for, and whether time is up; see :func:`hyperboloid.training.many.train_many`."""

    test: bool
    halving: bool
    late: Callable[[], bool]
    save: Callable[[list[Trial]], None] | None


class Pace:
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


def train_batch(model: str, task: Task, runs: Sequence[tuple[Settings, int]], how: How, tell: Tell | None) -> Work:
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

    pace = Pace()
    while place:
        batch.step()
        yield
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
        elif rung and len(place) > 1:
            by_score = sorted(range(len(place)), key=lambda i: (outcomes[i].val, -outcomes[i].val_loss))
            worse = (i for i in by_score[: len(place) // 2] if outcomes[i].best_epoch <= RISING * batch.epoch)
            leave(sorted({*done, *worse}))
        elif done and pace.pays(len(done) / len(place), runs[0][0].patience):
            leave(done)
    trials = [found[i] for i in range(len(runs))]
    if how.halving and any(trial.cut for trial in trials):  # which of the others go on would be another matter then
        trials = [dataclasses.replace(trial, cut=True) for trial in trials]
    if how.save is not None and how.halving:
        how.save(trials)
    return trials


def train_alone(model: str, task: Task, runs: Sequence[tuple[Settings, int]], how: How, tell: Tell | None) -> Work:
    """Train one model that cannot be batched."""
    ((settings, seed),) = runs
    training = start_training(model, task, settings, seed)
    try:
        while not training.done and not how.late():
            training.step()
            yield
            if tell is not None:
                tell(1, training.epoch, training.best.metric)
        best = training.best
        outcome = Outcome(
            settings, seed, best.metric, -best.negative_loss, training.best_epoch, training.epoch, training.done
        )
    except TrainingError:  # a number that is not finite
        outcome = Outcome.broken(settings, seed, training.epoch)
    trial = Trial(outcome, cut=not outcome.done)
    if how.test and not outcome.failed:
        training.encoder.load_state_dict(training.best_state)
        trial = dataclasses.replace(trial, test=training.score("test").metric, state=training.best_state)
    if how.save is not None:
        how.save([trial])
    return [trial]
