"""Cells measured by several processes at once.

Small models leave most of a GPU idle, and no model needs it while its kernels are compiled or its data is read. The
processes share a GPU's memory evenly; their kernels run side by side only under Nvidia's multi-process service (MPS,
``nvidia-cuda-mps-control -d``), without which they take turns.
"""

from __future__ import annotations

import dataclasses
import math
import multiprocessing
import signal
import sys
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from hyperboloid.errors import InputError, TrainingError
from hyperboloid.process import keep_memory
from hyperboloid.scores import percent
from hyperboloid.signals import handled
from hyperboloid.training.config import use_device
from hyperboloid.training.interrupt import held_interrupt
from hyperboloid.training.many import Watcher
from hyperboloid.training.memory import share_machine

from .cell_jobs import Ended, Job, measured_in_turn
from .cell_work import Bench, BenchPlan
from .results import Key, Line, cell_key

#: Seconds between two reports of a process on how it stands.
TELL_EVERY = 0.5
#: Seconds in which processes that are not wanted any more may leave by themselves.
LEAVE_IN = 5.0


class Onlooker(Protocol):
    """Is told what all processes are at."""

    def at_work(self, texts: Sequence[str], ended: int, total: int) -> None:
        """One text for each that works; so many of all measurements have ended."""


def measured_at_once(
    plan: BenchPlan, workers: int, jobs: Sequence[Job], chosen: dict[Key, Line], onlooker: Onlooker
) -> Generator[Ended]:
    """Measure in several processes, until all is done or time is up.

    Args:
        plan: of the bench that each of them has.
        workers: how many.
        jobs: what to measure; those of one cell stay together, and cells begin in this order.
        chosen: lines of the split that settings are chosen on, by cell.
        onlooker: is told how it goes.

    Raises:
        InputError: a data set cannot be read.
        TrainingError: a process has died.
    """
    by_cell: dict[Key, list[Job]] = {}
    for job in jobs:
        by_cell.setdefault(cell_key(job.cell), []).append(job)
    waiting = deque((own, chosen.get(key)) for key, own in by_cell.items())
    count = min(workers, len(waiting))
    pool: list[_Worker] = []
    termination = _Termination()
    with handled(signal.SIGTERM, termination):
        try:
            for _ in range(count):
                with termination.held(), _without_interrupts():
                    pool.append(_Worker(dataclasses.replace(plan, workers=count)))
                pool[-1].begin(*waiting.popleft())
            busy, over = {worker.pipe: worker for worker in pool}, 0
            while busy:
                for pipe in wait(list(busy)):
                    worker = busy[pipe]  # type: ignore[index]
                    message = worker.message()
                    if isinstance(message, Ended):
                        over += 1
                        yield message
                    elif isinstance(message, str):
                        worker.at = message
                        onlooker.at_work([other.at for other in busy.values()], over, len(jobs))
                    elif isinstance(message, Exception):
                        raise message
                    elif waiting:
                        worker.begin(*waiting.popleft())
                    else:
                        del busy[worker.pipe]
        finally:
            _dismiss(pool)


class _Termination:
    """SIGTERM ends this process like an error, by way of its ``finally``, where the others are let go."""

    def __init__(self) -> None:
        self._asked = self._held = False

    def __call__(self, number: int, frame: Any) -> None:
        self._asked = True
        self._leave()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Not here, but afterwards: nobody would let a process go that is only half started."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self._leave()

    def _leave(self) -> None:
        if self._asked and not self._held:
            raise SystemExit(128 + signal.SIGTERM)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Ctrl-C comes into effect afterwards, and is no matter at all for the processes that are started here.

    They are born with it blocked: until they could ignore it they import for seconds, and it would end that in the
    middle. This process must know of all that it has started.
    """
    if sys.platform == "win32":  # has nothing to block it with
        yield
        return
    with held_interrupt() as pressed:
        resource_tracker.ensure_running()  # multiprocessing's helper: started below, it would lift the block
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if pressed():
        raise KeyboardInterrupt


class _Worker:
    """A process and the pipe to it: cells go there; texts and ended jobs come back, then None, or an error."""

    def __init__(self, plan: BenchPlan) -> None:
        context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, plan), daemon=True)
        self.process.start()
        theirs.close()
        self.at = ""
        self.has_told = False

    def begin(self, jobs: list[Job], chosen: Line | None) -> None:
        """Give it the jobs of one cell."""
        self.at = str(jobs[0])
        try:
            self.pipe.send((jobs, chosen))
        except OSError:
            raise self._death() from None

    def message(self) -> Any:
        """What it has to tell."""
        try:
            message = self.pipe.recv()
        except (EOFError, OSError):
            raise self._death() from None
        self.has_told = True
        return message

    def _death(self) -> TrainingError:
        self.process.join()
        code = self.process.exitcode
        killed = code is not None and code < 0
        why = "killed, perhaps for lack of memory: use fewer --workers" if killed else "it says why above"
        return TrainingError(
            f"The process at {self.at} has died (exit code {code}; {why}); the same command goes on with what is left."
        )


def _dismiss(pool: Sequence[_Worker]) -> None:
    """Let all leave: they find the pipe closed when they next tell something, and kernels are not cut off.

    One that takes too long is stopped where it is, for what it has not finished goes on the next time anyway; so are
    those that have not begun, and all if Ctrl-C is pressed again.
    """
    until = time.monotonic() + LEAVE_IN
    try:
        for worker in pool:
            worker.pipe.close()
            if not worker.has_told:
                worker.process.terminate()
        for worker in pool:
            worker.process.join(max(0.0, until - time.monotonic()))
    finally:
        for worker in pool:
            worker.process.terminate()
        for worker in pool:
            worker.process.join()


class _NobodyThere(Exception):
    """The process that has started this one is gone, or wants no more."""


def _send(pipe: Connection, message: object) -> None:
    try:
        pipe.send(message)
    except OSError:
        raise _NobodyThere from None


def _receive(pipe: Connection) -> Any:
    try:
        return pipe.recv()
    except (EOFError, OSError):
        raise _NobodyThere from None


def _work(pipe: Connection, plan: BenchPlan) -> None:
    """What a process does: measure the cells that it is given."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that has started it
    keep_memory()
    use_device(plan.device)  # what is current is a matter of each process
    share_machine(plan.workers, plan.device)
    with suppress(_NobodyThere):
        try:
            bench = Bench(plan)
            while True:
                jobs, line = _receive(pipe)
                chosen = {} if line is None else {cell_key(jobs[0].cell): line}
                for ended in measured_in_turn(bench, jobs, chosen, _Told(pipe)):
                    _send(pipe, ended)
                _send(pipe, None)
        except InputError as error:
            _send(pipe, error)
        except TrainingError as error:
            _send(pipe, TrainingError(f"{error} Fewer --workers leave more memory to each."))
        except (OSError, MemoryError) as error:
            _send(pipe, TrainingError(f"{type(error).__name__}: {error}"))


@dataclass
class _Told:
    """Tells the other end of a pipe how it goes, now and then."""

    pipe: Connection
    what: str = ""
    last: float = 0.0

    def start(self, what: str, number: int, total: int) -> None:
        self.what = what
        _send(self.pipe, what)

    def stage(self, name: str) -> Watcher:
        score = -math.inf

        def tell(alive: int, epoch: int, best: float, finished: int, total: int) -> None:
            nonlocal score
            score = max(score, best) if epoch else score
            if time.monotonic() - self.last >= TELL_EVERY:
                self.last = time.monotonic()
                text = f"{self.what}, {name}: {finished} of {total}, {alive} alive at epoch {epoch}"
                _send(self.pipe, text + (f", best {percent(score)} %" if math.isfinite(score) else ""))

        return tell
