"""Loops over rows on several threads.

The threads are Python's own, and the loops let go of the interpreter lock. OpenMP's would wait for each other by
spinning, which made two trainings on one machine a hundred times slower, and would not survive a fork.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from numba import njit
from torch.profiler import record_function

#: Compiles a loop that lets go of the interpreter lock. Sums may be reordered, NaN and inf keep their meaning.
loop = njit(nogil=True, cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")

#: Less work than this, in multiplications, is done sooner than another thread has begun.
WORTHWHILE = 300_000

_pool: ThreadPoolExecutor | None = None
_here = threading.local()  # .alone: loops on this thread have no others to share with


def _forget() -> None:
    """A forked process has the pool, but not its threads."""
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_forget)


def over_rows(loop: Callable[..., None], ptr: np.ndarray, width: int, *args: Any) -> None:
    """Run ``loop(first, last, *args)`` over all rows, on as many threads as torch has; torch's profiler sees its name.

    Args:
        loop: works on the rows from ``first`` to before ``last``, and lets go of the interpreter lock.
        ptr: ``(num + 1,)`` where each row starts, to share the entries out evenly.
        width: multiplications for each entry.
        *args: of the loop.
    """

    def cuts(parts: int) -> list[int]:
        # a row costs about as much as one more entry
        cost = ptr + np.arange(ptr.shape[0], dtype=ptr.dtype)
        return np.searchsorted(cost, np.linspace(0, cost[-1], parts + 1)[1:-1]).tolist()

    _shared_out(loop, ptr.shape[0] - 1, int(ptr[-1]) * width, cuts, args)


def over_range(loop: Callable[..., None], count: int, width: int, *args: Any) -> None:
    """:func:`over_rows` for ``count`` rows that take equally long, ``width`` multiplications each."""
    _shared_out(loop, count, count * width, lambda parts: [count * k // parts for k in range(1, parts)], args)


def _shared_out(
    loop: Callable[..., None], rows: int, cost: int, cuts: Callable[[int], list[int]], args: tuple[Any, ...]
) -> None:
    """Run a loop over rows; ``cuts`` between a number of parts are asked for if there are several."""
    threads = min(torch.get_num_threads(), cost // WORTHWHILE)
    with record_function(loop.__name__) if torch.autograd._profiler_enabled() else nullcontext():
        if threads <= 1 or getattr(_here, "alone", False):
            loop(0, rows, *args)
            return
        pool = _workers(threads - 1)
        ends = [0, *cuts(threads), rows]
        others = [pool.submit(loop, ends[k], ends[k + 1], *args) for k in range(1, threads)]
        loop(ends[0], ends[1], *args)
        for other in others:
            other.result()


def over_models(work: Callable[[int], None], models: int, cost: int) -> None:
    """Run ``work(m)`` for all models, each whole on one of as many threads as torch has, without gradients.

    Args:
        work: computes one model; what it does with :func:`over_rows` stays on its thread.
        models: how many.
        cost: multiplications for each.
    """
    threads = min(torch.get_num_threads(), models, models * cost // WORTHWHILE)
    if threads <= 1:
        for m in range(models):
            work(m)
        return
    turns = itertools.count()

    def some() -> None:
        _here.alone = True
        try:
            with torch.no_grad():
                while (m := next(turns)) < models:
                    work(m)
        finally:
            _here.alone = False

    others = [_workers(threads - 1).submit(some) for _ in range(threads - 1)]
    some()
    for other in others:
        other.result()


def _workers(count: int) -> ThreadPoolExecutor:
    """The pool, with so many threads at least."""
    global _pool
    if _pool is None or _pool._max_workers < count:
        _pool = ThreadPoolExecutor(count, thread_name_prefix="hyperboloid")
    return _pool
