"""Training of many models: as one program where their layers allow it, in as large batches as fit into memory.

Models of different shapes are no one program. On a small graph a batch leaves most of a GPU idle, the more so when few
models are left in it, so that several batches take hardly more time than one: where they fit into memory they are
trained side by side, each on a stream of its own. None of them notices the others.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import Protocol

import torch

from hyperboloid.errors import TrainingError
from hyperboloid.nn.settings import PER_MODEL

from .batch import shape_of
from .chunk import How, Trial, Work, train_alone, train_batch
from .interrupt import held_interrupt
from .loop import can_be_batched
from .memory import capacity
from .recording import WARMING
from .settings import Settings
from .tasks import Task

#: Most batches side by side.
LANES = 4


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
        watch: is told how it goes.
        save: is given trials as they end; with halving those of a whole batch together, because which of its models
            go on depends on the others.

    Returns:
        One trial for each run, in their order; those that time did not suffice for are missing at the end.
    """
    with held_interrupt() as interrupted:

        def late() -> bool:
            """Whether time is up; an interrupt is raised here, where nothing is half done."""
            if interrupted():
                raise KeyboardInterrupt
            return time.monotonic() >= until

        lanes = _Lanes(model, task_for, runs, How(test, halving, late, save), watch)
        while lanes.busy or (lanes.waiting and not late()):
            lanes.fill()
            lanes.step()
        late()  # an interrupt that came during the last epoch
    return [lanes.found[i] for i in sorted(lanes.found)]


@dataclass(frozen=True, eq=False)
class _Lane:
    """A batch under way.

    Attributes:
        number: that of its stream.
        chunk: places of its runs.
        rest: places of others that could be one program with them.
        work: its training.
        device: where it computes.
    """

    number: int
    chunk: list[int]
    rest: list[int]
    work: Work
    device: torch.device

    def on(self) -> AbstractContextManager[object]:
        """Compute on its stream; the first one's is the stream that there is anyway."""
        return torch.cuda.stream(_stream(self.device, self.number)) if self.number else nullcontext()


@cache
def _stream(device: torch.device, number: int) -> torch.cuda.Stream:
    """Always the same: matrix products keep 32 MB for every stream that they have ever worked on."""
    return torch.cuda.Stream(device)


class _Lanes:
    """Batches side by side, and what waits for its turn.

    Attributes:
        waiting: places of runs that can be one program, and how many of them fit, if that is known. Kinds of models
            take turns, so that a search that is cut short has tried some of each.
        busy: batches under way.
        found: trials by the places of their runs.
    """

    def __init__(
        self,
        model: str,
        task_for: Callable[[Settings], Task],
        runs: Sequence[tuple[Settings, int]],
        how: How,
        watch: Watcher | None,
    ) -> None:
        self._model, self._task_for, self._runs, self._how, self._watch = model, task_for, runs, how, watch
        self.waiting: deque[tuple[list[int], int | None]] = deque((group, None) for group in _by_shape(runs))
        self.busy: list[_Lane] = []
        self.found: dict[int, Trial] = {}
        self._told: dict[int, tuple[int, int, float]] = {}  # by each lane last
        self._fresh = 0  # epochs until the latest batch has taken all the memory that it needs
        self._full = False  # as long as no batch ends

    def fill(self) -> None:
        """Start what there is room for: one batch in any case, beside it those all of whose models have room."""
        while self.waiting and not self._how.late() and (not self.busy or self._may_start()):
            self._full = not self._start()

    def _may_start(self) -> bool:
        return not self._full and not self._fresh and len(self.busy) < LANES

    def _start(self) -> bool:
        """Start the batch whose turn it is; False if it has to wait until it is alone."""
        group, size = self.waiting[0]
        first = self._runs[group[0]][0]
        task, alone = self._task_for(first), not can_be_batched(self._model, first)
        if self.busy and (alone or not _side_by_side(task)):
            return False
        if size is None:
            most = max((self._runs[i][0] for i in group), key=_masked)
            size = 1 if alone else capacity(self._model, task, most)
        if self.busy:
            if size < len(group):
                return False
            torch.cuda.synchronize(task.device)  # what the task keeps for all batches must be there
        self.waiting.popleft()
        chunk, rest = group[:size], group[size:]
        number = min({*range(LANES)} - {lane.number for lane in self.busy})
        tell = None if self._watch is None else partial(self._tell, number)
        if tell is not None:
            tell(len(chunk), 0, 0.0)
        train = train_alone if alone else train_batch
        work = train(self._model, task, [self._runs[i] for i in chunk], self._how, tell)
        self.busy.append(_Lane(number, chunk, rest, work, task.device))
        self._fresh = WARMING + 1
        return True

    def step(self) -> None:
        """One epoch more of every batch."""
        self._fresh = max(0, self._fresh - 1)
        for lane in tuple(self.busy):
            try:
                with lane.on():
                    next(lane.work)
                continue
            except StopIteration as end:
                self._leave(lane)
                self.found |= dict(zip(lane.chunk, end.value, strict=True))
                if lane.rest:
                    self.waiting.append((lane.rest, len(lane.chunk)))
                continue
            except torch.OutOfMemoryError as error:  # others may have taken what was free
                if len(lane.chunk) == len(self.busy) == 1:
                    raise TrainingError(
                        "The GPU has no room for even one model: use a smaller --dim or --device cpu, or wait "
                        "until it is free."
                    ) from error
                self._leave(lane)
                self._full = True
                self.waiting.appendleft((lane.chunk + lane.rest, max(1, len(lane.chunk) // 2)))
            # the error is gone only now, and what it kept alive goes with it
            gc.collect()
            torch.cuda.empty_cache()

    def _leave(self, lane: _Lane) -> None:
        self.busy.remove(lane)
        self._told.pop(lane.number, None)
        self._full = False

    def _tell(self, number: int, alive: int, epoch: int, best: float) -> None:
        """Say how all batches stand."""
        assert self._watch is not None
        self._told[number] = alive, epoch, best
        of_all = list(zip(*self._told.values(), strict=True))
        self._watch(sum(of_all[0]), max(of_all[1]), max(of_all[2]), len(self.found), len(self._runs))


def _side_by_side(task: Task) -> bool:
    """Whether batches gain by others beside them: the threads of a CPU are busy with one."""
    return task.device.type == "cuda"


def _by_shape(runs: Sequence[tuple[Settings, int]]) -> list[list[int]]:
    """Places of the runs that can be one program."""
    groups: dict[object, list[int]] = {}
    for i, (settings, _) in enumerate(runs):
        groups.setdefault(shape_of(settings), []).append(i)
    return list(groups.values())


def _masked(settings: Settings) -> int:
    """How many kinds of random masks a model needs."""
    return sum(getattr(settings, name) > 0 for name in PER_MODEL)
