"""Cells measured by several processes at once.

Small models leave most of a GPU idle, and no model needs it while its kernels are compiled or its data is read. The
processes share a GPU's memory evenly; their kernels run side by side only under Nvidia's multi-process service (MPS,
``nvidia-cuda-mps-control -d``), without which they take turns.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

import torch

from hyperboloid.errors import InputError, TrainingError
from hyperboloid.training.many import Watcher

from .cell_jobs import Ended, Job, measured_in_turn
from .cell_work import Bench, BenchPlan
from .results import Key, Line, cell_key

#: Seconds between two reports of a process on how it stands.
TELL_EVERY = 0.5


class Onlooker(Protocol):
    """Is told what all processes are at."""

    def at_work(self, texts: Sequence[str]) -> None:
        """One text for each that works."""


def measured_at_once(
    plan: BenchPlan, workers: int, jobs: Sequence[Job], chosen: dict[Key, Line], onlooker: Onlooker
) -> Iterator[Ended]:
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
    pool = [_Worker(dataclasses.replace(plan, workers=count)) for _ in range(count)]
    try:
        busy = {worker.pipe: worker for worker in pool}
        for worker in pool:
            worker.begin(*waiting.popleft())
        while busy:
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                message = worker.message()
                if isinstance(message, Ended):
                    yield message
                elif isinstance(message, str):
                    worker.at = message
                    onlooker.at_work([other.at for other in busy.values()])
                elif isinstance(message, BaseException):
                    raise message
                elif waiting:
                    worker.begin(*waiting.popleft())
                else:
                    del busy[worker.pipe]
    finally:
        for worker in pool:  # what they have not finished goes on the next time, wherever they are stopped
            worker.process.terminate()
        for worker in pool:
            worker.process.join()


class _Worker:
    """A process and the pipe to it: cells go there; texts and ended jobs come back, then None, or an error."""

    def __init__(self, plan: BenchPlan) -> None:
        context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, plan), daemon=True)
        self.process.start()
        theirs.close()
        self.at = ""

    def begin(self, jobs: list[Job], chosen: Line | None) -> None:
        """Give it the jobs of one cell."""
        self.at = str(jobs[0])
        self.pipe.send((jobs, chosen))

    def message(self) -> Any:
        """What it has to tell."""
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            raise TrainingError(
                f"The process that measured {self.at} has died (exit code {self.process.exitcode}), perhaps for lack "
                "of memory: use fewer --workers; the same command goes on with what is left."
            ) from None


def _work(pipe: Connection, plan: BenchPlan) -> None:
    """What a process does: measure the cells that it is given."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that has started it
    torch.set_num_threads(max(1, torch.get_num_threads() // plan.workers))
    if plan.device.startswith("cuda"):
        torch.cuda.set_per_process_memory_fraction(1 / plan.workers)
    try:
        bench = Bench(plan)
        while True:
            jobs, line = pipe.recv()
            chosen = {} if line is None else {cell_key(jobs[0].cell): line}
            for ended in measured_in_turn(bench, jobs, chosen, _Told(pipe)):
                pipe.send(ended)
            pipe.send(None)
    except (InputError, TrainingError) as error:
        pipe.send(error)
    except (EOFError, ConnectionError):  # nobody is there any more
        return


@dataclass
class _Told:
    """Tells the other end of a pipe how it goes, now and then."""

    pipe: Connection
    what: str = ""
    last: float = 0.0

    def start(self, what: str, number: int, total: int) -> None:
        self.what = what

    def stage(self, name: str) -> Watcher:
        def tell(alive: int, epoch: int, best: float, finished: int, total: int) -> None:
            if time.monotonic() - self.last >= TELL_EVERY:
                self.last = time.monotonic()
                self.pipe.send(f"{self.what}, {name}: {finished} of {total} done, {alive} alive at epoch {epoch}")

        return tell
