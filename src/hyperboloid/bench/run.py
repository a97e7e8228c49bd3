"""Runs benchmarks one after the other, and writes each case down as soon as it is measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import torch

from hyperboloid.errors import InputError
from hyperboloid.paper.provenance import code_version, device_name, library_versions
from hyperboloid.training.config import use_device

from . import epochs, gather, geometry, growth, layers
from .numbers import Case
from .plan import Plan, plan_for
from .results import lines_of, replace_case


class Benchmark(Protocol):
    """Measures the cases of a plan, and says which comes next."""

    def __call__(
        self, plan: Plan, device: torch.device, data_dir: Path | None, say: Callable[[str], None]
    ) -> Iterator[Case]:
        """One case after the other."""


PARTS: dict[str, Benchmark] = {
    "layers": layers.measure,
    "gather": gather.measure,
    "growth": growth.measure,
    "geometry": geometry.measure,
    "epochs": epochs.measure,
}
GPU_ONLY = ("gather",)


@dataclass
class Session:
    """What one call has done: cases measured, by benchmark, and why a benchmark could not be."""

    measured: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def chosen_parts(asked: Sequence[str], device: str) -> list[str]:
    """The benchmarks asked for, or all that make sense on a device."""
    for name in asked:
        if name not in PARTS:
            raise InputError(f"There is no benchmark '{name}'; choose from: {', '.join(PARTS)}.")
        if name in GPU_ONLY and device == "cpu":
            raise InputError(f"'{name}' is about a GPU's memory: it needs --device cuda.")
    return list(dict.fromkeys(asked)) or [name for name in PARTS if device != "cpu" or name not in GPU_ONLY]


def run_parts(
    asked: Sequence[str],
    results: Path,
    say: Callable[[str], None],
    *,
    device: str = "cpu",
    threads: int | None = None,
    quick: bool = False,
    data_dir: Path | None = None,
    commit: str | None = None,
) -> Session:
    """Measure, and replace what the file of results says about the same cases on the same kind of device.

    Args:
        asked: names of benchmarks; none for all that make sense on the device.
        results: the file.
        say: is told what is measured next.
        device: ``cpu`` or ``cuda``.
        threads: of torch and of our loops; None for torch's choice.
        quick: tiny sizes.
        data_dir: where the named data sets lie; a benchmark whose graph is not there is skipped.
        commit: name of the code's version; None for what git says.

    Raises:
        InputError: something given is wrong, or nothing could be measured.
    """
    plan, names = plan_for(device, quick=quick), chosen_parts(asked, device)
    use_device(device)
    if threads is not None:
        if threads < 1:
            raise InputError(f"--threads must be at least 1, not {threads}.")
        torch.set_num_threads(threads)
    provenance = {
        "machine": machine(device),
        "commit": commit or code_version(),
        "versions": library_versions("geoopt"),
    }
    session = Session()

    def run(part: str) -> None:
        load = busy_load()
        for case in PARTS[part](plan, torch.device(device), data_dir, lambda text: say(f"{part}: {text}")):
            replace_case(results, lines_of(part, device, case, provenance | {"load": load}))
            session.measured[part] = session.measured.get(part, 0) + 1
            load = busy_load()

    for part in names:
        try:
            run(part)
        except InputError as error:
            session.skipped[part] = str(error)
            say(f"{part}: skipped. {error}")
    if not session.measured:
        raise InputError(next(iter(session.skipped.values())))
    return session


def busy_load() -> float | None:
    """The load average of the last minute if it is above the number of cores, else None."""
    load = os.getloadavg()[0]
    return round(load, 1) if load > (os.cpu_count() or 1) else None


def machine(device: str) -> str:
    """The machine in words."""
    name = device_name(device)
    return name if device != "cpu" else f"{name}, {_processor()}"


def _processor() -> str:
    """The processor's name as Linux has it, else the architecture's."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())
