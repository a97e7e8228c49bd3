"""Table 7, molecular properties on ZINC: mean absolute errors of five methods, and of HGNN_L with its scale."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hyperboloid.errors import InputError, TrainingError
from hyperboloid.graphs.load_molecules import load_molecules
from hyperboloid.graphs.molecules import MoleculeSet
from hyperboloid.graphs.zinc import TARGETS
from hyperboloid.scores import spread_of
from hyperboloid.training.config import Config, use_device
from hyperboloid.training.experiment import make_task
from hyperboloid.training.loop import Training
from hyperboloid.training.runner import train_run
from hyperboloid.training.settings import default_settings

from .cell_runs import Observer, Session
from .cell_work import OutOfTime
from .cells import chosen_names
from .printed import printed_tables
from .provenance import code_version, device_name, library_versions
from .results import Line, append_line, read_lines, usable

EXPERIMENT = "zinc"
#: In the paper's order; the second is not in the paper.
MODELS = ("hgnn_l", "hgnn_l_scaled", "hgnn_h", "hgnn_p", "ggnn", "mpnn")


@dataclass(frozen=True)
class ZincProtocol:
    """How a cell is measured, the same for every method.

    Attributes:
        seeds: initialisations.
        epochs: at most so many; the learning rate falls to 0 over them.
        dim: width of the layers.
        batch_size: molecules in a batch.
        lrs: learning rates; with several, the first initialisation tries all, and validation chooses.
        trial_epochs: length of the runs that try several learning rates; None for all epochs, so that the best of these
            runs is the measurement itself.
        molecules: so many of the training part only, the first of a random order; None for all. Likewise a tenth as
            many for validation and for the test.
        dtype: ``float32`` or ``float64``.
    """

    seeds: int = 1
    epochs: int = 300
    dim: int = 256
    batch_size: int = 128
    lrs: tuple[float, ...] = (0.001,)
    trial_epochs: int | None = None
    molecules: int | None = None
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in ("seeds", "epochs", "dim", "batch_size", "molecules", "trial_epochs"):
            number = getattr(self, name)
            if number is not None and number < (10 if name == "molecules" else 1):
                raise InputError(f"{name} must be at least {10 if name == 'molecules' else 1}, not {number}.")
        if not self.lrs or any(not 0 < lr < 100 for lr in self.lrs) or len(set(self.lrs)) < len(self.lrs):
            raise InputError(f"Learning rates must be positive and differ, not {', '.join(map(str, self.lrs))}.")

    def as_json(self) -> dict[str, Any]:
        """In types that JSON gives back."""
        return {**dataclasses.asdict(self), "lrs": list(self.lrs)}


@dataclass(frozen=True)
class ZincCell:
    """One number of Table 7."""

    model: str
    target: str

    @property
    def printed(self) -> tuple[float | None, float | None]:
        """Mean and deviation that the paper prints, in raw units; none for a method of ours."""
        entry = printed_tables()["zinc_mae_x100"].get(self.model)
        if entry is None:
            return None, None
        mean, std = entry[self.target]
        return round(mean / 100, 6), round(std / 100, 6)

    def __str__(self) -> str:
        return f"zinc {self.target} {self.model}"


def zinc_cells(models: Sequence[str] | None = None, properties: Sequence[str] | None = None) -> list[ZincCell]:
    """The cells, property after property.

    Raises:
        InputError: a name that the table does not have, or none at all.
    """
    names = chosen_names("property", EXPERIMENT, properties, TARGETS)
    own = chosen_names("model", EXPERIMENT, models, MODELS)
    return [ZincCell(model, name) for name in names for model in own]


def measure_zinc(
    asked: Sequence[ZincCell],
    observer: Observer,
    *,
    results: Path,
    work: Path,
    protocol: ZincProtocol,
    budget: float = math.inf,
    data_dir: str | Path | None = None,
    device: str = "cpu",
    code: str | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Session:
    """Measure cells that have no line of the same protocol yet, and add a line for each.

    Args:
        asked: the cells.
        observer: is told about cells.
        results: folder of the results.
        work: folder for runs that are not finished.
        protocol: how they are measured.
        budget: seconds for all of them; what does not fit goes on the next time.
        data_dir: where the named data sets lie.
        device: ``cpu`` or ``cuda``.
        code: name of the code's version; None asks git.
        tell: is told about epochs.
    """
    use_device(device)
    began = time.monotonic()
    session, there = Session(), _measured(results, protocol)
    missing = [cell for cell in asked if cell not in there]
    if missing:
        usable(results, work)
        bench = _Bench(_molecules(protocol, data_dir), protocol, work, device, code, began + budget, tell)
    for number, cell in enumerate(missing, start=1):
        if time.monotonic() >= began + budget:
            break
        observer.start(str(cell), number, len(missing))
        try:
            line = bench.measure(cell)
        except OutOfTime:
            break
        except TrainingError as error:
            session.skipped[str(cell)] = str(error)
            observer.skipped(str(cell), str(error))
            continue
        append_line(results, line)
        there[cell] = line
        session.measured += 1
        observer.done(line)
    session.lines = [there[cell] for cell in asked if cell in there]
    session.left = len(asked) - len(session.lines) - len(session.skipped)
    session.seconds = time.monotonic() - began
    return session


def read_zinc(results: Path) -> list[Line]:
    """All lines of ``zinc.jsonl``; none where there is no such file."""
    known = set(zinc_cells())
    lines = []
    for where, line in read_lines(results, EXPERIMENT):
        if ZincCell(str(line.get("model")), str(line.get("property"))) not in known:
            raise InputError(f"{where} belongs to no cell of '{EXPERIMENT}'.")
        line["protocol"].setdefault("trial_epochs", None)  # older lines know of whole runs only
        lines.append(line)
    return lines


def _measured(results: Path, protocol: ZincProtocol) -> dict[ZincCell, Line]:
    same = [line for line in read_zinc(results) if line["protocol"] == protocol.as_json()]
    return {ZincCell(line["model"], line["property"]): line for line in same}


def _molecules(protocol: ZincProtocol, data_dir: str | Path | None) -> MoleculeSet:
    """All of them, or as many as the protocol says."""
    molecules = load_molecules("zinc", data_dir=data_dir, targets=TARGETS)
    if protocol.molecules is None:
        return molecules
    random = np.random.default_rng(0)
    few = max(1, protocol.molecules // 10)
    parts = molecules.masks["hgnn"]
    most = {"train": protocol.molecules, "val": few, "test": few}
    chosen = np.concatenate([random.permutation(parts[part])[:count] for part, count in most.items()])
    return molecules.only(np.sort(chosen))


class _Bench:
    """Where cells are measured; every run has a folder, from which it goes on after an interruption."""

    def __init__(
        self,
        molecules: MoleculeSet,
        protocol: ZincProtocol,
        work: Path,
        device: str,
        code: str | None,
        until: float,
        tell: Callable[[str], None],
    ) -> None:
        self._molecules, self._protocol, self._device = molecules, protocol, device
        self._code = code or code_version()
        self._work, self._until, self._tell = work, until, tell

    def measure(self, cell: ZincCell) -> Line:
        """Try the learning rates, then run the other initialisations."""
        molecules, protocol = self._molecules.with_targets([cell.target]), self._protocol
        short = None if len(protocol.lrs) == 1 else protocol.trial_epochs
        tried = {lr: self._run(cell, molecules, lr, 0, short) for lr in protocol.lrs}
        best = min(tried, key=lambda lr: float(tried[lr]["val"]))
        begun = [tried[best]] if short is None else []
        runs = begun + [self._run(cell, molecules, best, seed) for seed in range(len(begun), protocol.seeds)]
        every = [*tried.values(), *runs[len(begun) :]]
        tests = [run["test"] for run in runs]
        mean, std = cell.printed
        config = self._config(cell, molecules, best, 0)
        return {
            "experiment": EXPERIMENT,
            "dataset": "zinc",
            "graph": "zinc",
            "task": "graph",
            "model": cell.model,
            "dim": protocol.dim,
            "property": cell.target,
            "target": None if mean is None or std is None else round(mean + std, 6),
            "test_mean": statistics.mean(tests),
            "test_std": spread_of(tests),
            "tests": tests,
            "runs": len(tests),
            "rmse": statistics.mean(run["targets"]["test"][cell.target]["rmse"] for run in runs),
            "r2": statistics.mean(run["targets"]["test"][cell.target]["r2"] for run in runs),
            "val_mean": statistics.mean(run["val"] for run in runs),
            "val_by_lr": {str(lr): run["val"] for lr, run in tried.items()},
            "paper_mean": mean,
            "paper_std": std,
            "comparable": protocol.molecules is None,
            "split": "hgnn",
            "parts": runs[0]["split_name"],
            "tried": len(tried),
            "epochs": sum(run["epochs"] for run in every),
            "complete": True,
            "seconds": sum(run["seconds"] for run in every),
            "settings": dataclasses.asdict(config.settings),
            "protocol": protocol.as_json(),
            "commit": self._code,
            "device": device_name(self._device),
            "versions": library_versions(),
        }

    def _config(
        self, cell: ZincCell, molecules: MoleculeSet, lr: float, seed: int, epochs: int | None = None
    ) -> Config:  # fmt: skip
        p = self._protocol
        chosen = {"lr": lr, "epochs": epochs or p.epochs, "batch_size": p.batch_size}
        settings = default_settings(cell.model, "graph", "zinc", p.dim, **chosen)
        return Config("zinc", molecules.checksum, "graph", cell.model, settings, [0], [seed], p.dtype, self._device)

    def _run(
        self, cell: ZincCell, molecules: MoleculeSet, lr: float, seed: int, epochs: int | None = None
    ) -> dict[str, Any]:
        config = self._config(cell, molecules, lr, seed, epochs)
        digest = hashlib.sha256(json.dumps([config.to_json(), self._code]).encode()).hexdigest()[:10]
        folder = self._work / f"zinc-{cell.target}-{cell.model}-d{self._protocol.dim}-{digest}"
        folder.mkdir(parents=True, exist_ok=True)
        task = make_task(config, molecules, 0, self._device)
        watch = _Watch(f"{cell}, lr {lr:g}, seed {seed}", self._until, self._tell)
        return train_run(folder, config, task, watch)


class _Watch:
    """Tells of epochs, and stops when time is up; the checkpoint is then a few seconds old."""

    def __init__(self, what: str, until: float, tell: Callable[[str], None]) -> None:
        self._what, self._until, self._tell = what, until, tell

    def start(self, config: Config) -> None:
        """A run begins, or goes on."""
        self._check()

    def epoch(self, training: Training, metrics: dict[str, Any]) -> None:
        """An epoch ended."""
        self._tell(
            f"{self._what}: epoch {training.epoch} of {training.settings.epochs}, "
            f"validation MAE × 100 {100 * metrics['val_mae']:.2f}, {training.seconds / training.epoch:.1f} s each"
        )
        self._check()

    def finish(self, summary: dict[str, Any]) -> None:
        """A run ended."""

    def _check(self) -> None:
        if time.monotonic() >= self._until:
            raise OutOfTime
