"""Clocks: medians of calls that take turns, memory on a GPU, and where the time of a call goes."""

from __future__ import annotations

import os
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import torch

from .numbers import Number

#: Calls before the clock starts: compiling, filling caches, taking memory.
WARM = 3
#: So many calls at least and at most make a median.
LEAST, MOST = 5, 30
#: Shares of a profile that are named.
NAMED = 6

Call = Callable[[], object]


class Timing(NamedTuple):
    """How long a call takes: median milliseconds by the clock, on all threads of a CPU, and of how many calls."""

    ms: float
    busy: float | None
    repeats: int

    def number(self, name: str, quantity: str) -> Number:
        """The same as a measured number."""
        return Number(name, quantity, self.ms, "ms", self.busy, self.repeats)


def timed(calls: Mapping[str, Call], device: torch.device, seconds: float) -> dict[str, Timing]:
    """Time several calls, which take turns, so that whatever else the machine does slows all of them.

    Args:
        calls: by name.
        device: where they compute.
        seconds: no further turn begins after so many, once each has had the least number.
    """
    for call in calls.values():
        for _ in range(WARM):
            call()
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    until, turns = time.monotonic() + seconds, 0
    while turns < LEAST or (turns < MOST and time.monotonic() < until):
        for name, call in calls.items():
            taken[name].append(_clock(call, device))
        turns += 1

    def median(clocks: list[tuple[float, float]]) -> Timing:
        wall, busy = (statistics.median(column) for column in zip(*clocks, strict=True))
        return Timing(wall, None if device.type == "cuda" else busy, turns)

    return {name: median(clocks) for name, clocks in taken.items()}


def _clock(call: Call, device: torch.device) -> tuple[float, float]:
    """Milliseconds of one call: by the clock, and CPU time of all threads."""
    if device.type == "cuda":
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize(device)
        begin.record()
        call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end), 0.0
    wall, busy = time.perf_counter(), time.process_time()
    call()
    return 1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - busy)


def peak_memory(call: Call, device: torch.device) -> float:
    """GiB of GPU memory that a call takes at its peak, beyond what is taken before it; it must have run before."""
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    call()
    torch.cuda.synchronize(device)
    return (torch.cuda.max_memory_allocated(device) - before) / 2**30


def profiled(call: Call, device: torch.device, quantity: str) -> list[Number]:
    """Where the milliseconds of a call go: its longest operations (kernels on a GPU), and all others together."""
    from torch.profiler import ProfilerActivity, profile

    on_gpu = device.type == "cuda"
    call()
    with _silenced(), profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as found:
        for _ in range(LEAST):
            call()
        if on_gpu:
            torch.cuda.synchronize(device)
    spent: dict[str, float] = {}
    for event in found.key_averages():
        micro = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        spent[_short(event.key)] = spent.get(_short(event.key), 0.0) + micro / (1e3 * LEAST)
    longest = sorted(spent, key=lambda name: -spent[name])[:NAMED]
    shares = {name: spent.pop(name) for name in longest} | {"all else": sum(spent.values())}
    return [Number(name, quantity, value, "ms", repeats=LEAST) for name, value in shares.items()]


@contextmanager
def _silenced() -> Iterator[None]:
    """Nothing goes to stderr: torch's profiler announces its start and stop there, whatever it is told."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _short(name: str) -> str:
    """A kernel's name without its template arguments, and an operator's for the wrappers that torch makes around it."""
    wrapper = re.fullmatch(r"GeneratedBackwardFor_([a-z]+)_(\w+)_default(Backward)?", name)
    if wrapper is not None:
        return f"{wrapper[1]}::{wrapper[2]}{'_backward' if wrapper[3] else ''}"
    return name.removeprefix("void ").partition("<")[0].partition("(")[0]
