"""Training of many models: as one program where their layers allow it, in as large batches as fit into memory."""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import torch

from hyperboloid.errors import TrainingError, lacks_memory
from hyperboloid.nn.settings import PER_MODEL

from .batch import shape_of
from .group import Group, How, Misfit, Tell
from .interrupt import held_interrupt
from .loop import can_be_batched
from .memory import capacity
from .settings import Settings
from .tasks import Task
from .trial import Run, Trial
from .unfinished import Shelf, Unfinished


class NoRoom(TrainingError):
    """There is not enough memory for even one model."""


class Watcher(Protocol):
    """Is told how it goes."""

    def __call__(self, alive: int, epoch: int, best: float, finished: int, total: int) -> None:
        """``alive`` models at ``epoch``, the ``best`` validation metric among them; ``finished`` of ``total``."""


def train_many(
    model: str,
    task_for: Callable[[Settings], Task],
    runs: Sequence[Run],
    *,
    test: bool = False,
    halving: bool = False,
    until: float = float("inf"),
    check: Callable[[], None] | None = None,
    watch: Watcher | None = None,
    save: Callable[[list[Trial]], None] | None = None,
    shelf: Shelf | None = None,
) -> list[Trial]:
    """Train a model for each of many settings and seeds.

    Args:
        model: name of the model.
        task_for: the task for given settings (their scaling of features and decoder).
        runs: settings and seed of each model.
        test, halving, save: see :class:`How`.
        until: value of :func:`time.monotonic` at which to stop with the best so far.
        check: is called between epochs; what it raises ends the training.
        watch: is told how it goes.
        shelf: where the group at work is kept when training is stopped, and taken up again.

    Returns:
        One trial for each run, in their order; those that time did not suffice for are missing at the end.

    Raises:
        NoRoom: not even one model fits into memory.
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

        how = How(test, halving, late, save, shelf)
        if shelf is not None and not runs:
            shelf.clear()  # a kill has left what had ended
        stopped = None if shelf is None else shelf.wanted(runs, halving)
        turns = _turns(runs, stopped)
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
            unfinished, stopped = stopped, None
            try:
                trials = Group(model, task, [runs[i] for i in chunk], alone, how, unfinished).train(tell)
            except Misfit:  # it begins anew
                turns.appendleft((group, size))
                continue
            except (MemoryError, RuntimeError) as error:  # others may have taken what was free
                gpu = isinstance(error, torch.OutOfMemoryError)
                if not gpu and not lacks_memory(error):
                    raise
                if len(chunk) == 1:
                    raise NoRoom(
                        f"{'The GPU has' if gpu else 'There is'} no room for even one model: use a smaller --dim"
                        f"{' or --device cpu, or wait until it is free' if gpu else ''}."
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


def _told(watch: Watcher, finished: int, total: int) -> Tell:
    return lambda alive, epoch, best: watch(alive, epoch, best, finished, total)


def _turns(runs: Sequence[Run], stopped: Unfinished | None) -> deque[tuple[list[int], int | None]]:
    """Places of runs that can be one program, and how many at once where that is settled.

    A group that was stopped comes first. Kinds of models take turns, so that a search that is cut short has tried some
    of each.
    """
    place = {run: i for i, run in enumerate(runs)}
    first = [] if stopped is None else [place[run] for run in stopped.runs if run in place]
    taken = set(first)
    others = [[i for i in group if i not in taken] for group in _by_shape(runs)]
    turns: deque[tuple[list[int], int | None]] = deque((group, None) for group in others if group)
    if first:
        turns.appendleft((first, len(first)))
    return turns


def _by_shape(runs: Sequence[Run]) -> list[list[int]]:
    """Places of the runs that can be one program."""
    groups: dict[object, list[int]] = {}
    for i, (settings, _) in enumerate(runs):
        groups.setdefault(shape_of(settings), []).append(i)
    return list(groups.values())


def _masked(settings: Settings) -> int:
    """How many kinds of random masks a model needs."""
    return sum(getattr(settings, name) > 0 for name in PER_MODEL)
