"""A group of models trained to its end: who leaves when, and what is kept of it on the way."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hyperboloid.errors import TrainingError

from .batch import Batch
from .checkpoint import UNREADABLE
from .memory import batch_is_faster
from .one_by_one import OneByOne
from .tasks import Task
from .trial import Run, Trial
from .unfinished import Shelf, Unfinished

#: Every so many epochs the models that are out of patience are counted, and dropped if it pays.
LOOK_EVERY = 25
#: With halving, the better half of what is left of a group goes on at each of these epochs, and whatever is still
#: getting better, which had its best score in the last tenth of them: models with much dropout are slow, and may be the
#: best in the end. How large a group is depends on the machine's memory (`memory.py`), and so does which models go on.
RUNGS, RISING = (50, 100, 200, 400), 0.9
#: A group is kept every so many seconds, or after so many times what it takes to keep it, if that is more.
KEEP_EVERY, KEEP_SHARE = 30.0, 50

#: Is told how many models are alive, at which epoch, and the best validation metric among them.
Tell = Callable[[int, int, float], None]


@dataclass(frozen=True)
class How:
    """What is asked for.

    Attributes:
        test: score the test part of each model, and keep its parameters.
        halving: stop the worse half now and then, but for what is still rising (:data:`RUNGS`).
        late: whether time is up; what it raises ends the training.
        save: is given trials as they end; with halving those of the whole group together, because which of its models
            go on depends on the others.
        shelf: where a group is kept while it is at work, and when it is stopped.
    """

    test: bool
    halving: bool
    late: Callable[[], bool]
    save: Callable[[list[Trial]], None] | None = None
    shelf: Shelf | None = None


class Misfit(Exception):
    """What was kept is not of such a group: the file is damaged, or of another version."""


class Group:
    """Models on their way, as one program where that is possible and faster, and else in turns.

    Args:
        model: name of the model.
        task: what to train for.
        runs: settings and seed of each.
        alone: whether an epoch of this model cannot be recorded, so that it has to be trained by itself.
        how: what is asked for.
        unfinished: the group that it was when it was stopped, if it was; of its models those among ``runs`` go on.

    Raises:
        Misfit: it is not what ``unfinished`` tells of.
    """

    def __init__(
        self, model: str, task: Task, runs: Sequence[Run], alone: bool, how: How, unfinished: Unfinished | None = None
    ) -> None:
        self._runs = list(runs)
        self._how = how
        self._look_every = 1 if alone else LOOK_EVERY
        together = not alone and batch_is_faster(model, task, runs[0][0])
        self._kind = (Batch if together else OneByOne).__name__
        if unfinished is not None and unfinished.kind != self._kind:  # by another machine, say
            unfinished = None
        there = self._runs if unfinished is None else [unfinished.runs[i] for i in unfinished.place]
        self._batch = Batch(model, task, there) if together else OneByOne(model, task, there, self._late)
        self._place = list(range(len(there)))  # of each model at work among the runs
        self._found: dict[int, Trial] = {}
        self._goes_on = unfinished is not None
        if unfinished is not None:
            self._take_up(unfinished)
        self._pace = Pace(self._batch.epoch)
        self._keep_at = time.monotonic() + KEEP_EVERY

    def _take_up(self, unfinished: Unfinished) -> None:
        """Be the group that was stopped, without those of its models that nobody asks for any more."""
        try:
            self._batch.put_back(unfinished.tensors, unfinished.counters)
        except UNREADABLE as error:
            raise Misfit from error
        self._found = dict(unfinished.found)
        place = {run: i for i, run in enumerate(self._runs)}
        stay = [i for i, run in enumerate(self._batch.runs) if run in place]
        self._place = [place[self._batch.runs[i]] for i in stay]
        if len(stay) < len(self._batch):
            self._batch.keep(stay)

    def train(self, tell: Tell | None) -> list[Trial]:
        """Train to the end, or until time is up; those out of patience leave on the way."""
        if self._goes_on:
            self._batch.catch_up()
            if self._due:
                self._look(False, tell)
        while self._place:  # at least an epoch, or ever so short budgets would not come to an end
            self._batch.step()
            cut = self._late()
            if self._due or cut:
                self._look(cut, tell)
        trials = [self._found[i] for i in range(len(self._runs))]
        cut = any(trial.cut for trial in trials)
        if cut and self._how.halving:  # which of the others go on would be another matter then
            trials = [dataclasses.replace(trial, cut=True) for trial in trials]
        if self._how.save is not None and self._how.halving:
            self._how.save(trials)
        if self._how.shelf is not None and not cut:
            self._how.shelf.clear()
        return trials

    @property
    def _due(self) -> bool:
        """Whether it is time to look."""
        epoch = self._batch.epoch
        return self._rung or epoch == self._runs[0][0].epochs or epoch % self._look_every == 0

    @property
    def _rung(self) -> bool:
        return self._how.halving and self._batch.epoch in RUNGS

    def _look(self, cut: bool, tell: Tell | None) -> None:
        """See who is done, or among the worse half at a rung, and let them leave; all of them, if time is up."""
        outcomes, size = self._batch.outcomes, len(self._place)
        self._pace.look(self._batch.epoch)
        done = [i for i, o in enumerate(outcomes) if o.done]
        if tell is not None:
            with self._kept_if_stopped():
                tell(size - len(done), self._batch.epoch, max(o.val for o in outcomes))
        if cut and len(done) < size:
            self._keep()
        if cut or len(done) == size:
            self._leave(range(size), cut)
        elif self._rung:
            alive = set(range(size)) - set(done)
            by_score = sorted(alive, key=lambda i: (outcomes[i].val, -outcomes[i].val_loss, i))
            worse = (i for i in by_score[: len(alive) // 2] if outcomes[i].best_epoch <= RISING * self._batch.epoch)
            self._leave(sorted({*done, *worse}))
        elif done and self._pace.pays(len(done) / size, self._runs[0][0].patience):
            self._leave(done)

    def _leave(self, indices: Sequence[int], cut: bool = False) -> None:
        """Note down some models, and go on without them."""
        how, batch = self._how, self._batch
        outcomes, values = batch.outcomes, batch.metrics("test") if how.test and indices else []
        left = {}
        for i in indices:
            trial = Trial(outcomes[i], cut=cut and not outcomes[i].done)
            if how.test and not outcomes[i].failed:
                trial = dataclasses.replace(trial, test=values[i], state=batch.state(i))
            left[self._place[i]] = trial
        self._found.update(left)
        if how.save is not None and not how.halving:
            how.save(list(left.values()))
        gone = set(indices)
        stay = [i for i in range(len(batch)) if i not in gone]
        self._place = [self._place[i] for i in stay]
        if stay and indices:
            batch.keep(stay)
            self._pace.start_again()

    def _late(self) -> bool:
        """Whether time is up."""
        with self._kept_if_stopped():
            late = self._how.late()
        if time.monotonic() >= self._keep_at:
            self._keep()
        return late

    @contextlib.contextmanager
    def _kept_if_stopped(self) -> Iterator[None]:
        """Keep the group if what is asked ends the training: nothing is half done there."""
        try:
            yield
        except BaseException:
            self._keep()
            raise

    def _keep(self) -> None:
        """Keep the group as it is; of one whose models are told of one by one, only those at work.

        Where that fails, on a full disk say, training goes on as if there were no shelf.
        """
        how = self._how
        if how.shelf is None:
            return
        began = time.monotonic()
        runs, place, found = self._runs, self._place, self._found
        if not how.halving:
            runs, place, found = self._batch.runs, list(range(len(self._batch))), {}
        with contextlib.suppress(TrainingError):
            how.shelf.put(Unfinished(runs, place, found, how.halving, self._kind, *self._batch.contents()))
        now = time.monotonic()
        self._keep_at = now + max(KEEP_EVERY, KEEP_SHARE * (now - began))


class Pace:
    """How long a batch takes for an epoch, and to get going again: on a GPU it has to be recorded anew.

    Times decide only what is computed in vain; what comes out does not depend on them.

    Args:
        epoch: where it begins.
    """

    def __init__(self, epoch: int) -> None:
        self._epoch, self._at = epoch, time.monotonic()
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
