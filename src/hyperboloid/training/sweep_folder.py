"""The folder of a sweep: what it is of, and the run folder of the best model."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperboloid.errors import InputError
from hyperboloid.graphs import Graph
from hyperboloid.graphs.store import graph_to_bytes

from .checkpoint import write_atomically, write_json
from .config import Config, read_config
from .experiment import read_summary
from .loop import start_training
from .many import train_many
from .runner import finish_run
from .settings import Settings
from .tasks import Score, Task

if TYPE_CHECKING:
    from .sweep import Sweep


def open_folder(folder: Path, resume: bool, what: dict[str, Any]) -> Path:
    """Make the folder, or check that the one there holds this very sweep."""
    path = folder / "sweep.json"
    if folder.exists() and not resume:
        raise InputError(f"{folder} exists already: choose another --out, or go on with it by --resume.")
    if path.is_file():
        try:
            there = dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise InputError(f"{path} is damaged: choose another --out.") from error
        _check_same(folder, there, what)
        return folder
    # of a sweep that was killed at once there is an empty folder, or half a file
    if folder.exists() and not (folder.is_dir() and {p.name for p in folder.iterdir()} <= {f"{path.name}.partial"}):
        raise InputError(f"{folder} holds no sweep; choose another --out.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot make the folder {folder}: {error.strerror}.") from error
    write_json(path, what)
    return folder


def _check_same(folder: Path, there: dict[str, Any], what: dict[str, Any]) -> None:
    """Refuse to go on with another sweep; a graph may have been given by another name, or path, before."""
    for key, value in what.items():
        if key == "dataset" or there.get(key) == value:
            continue
        told = f"its {key} is {there.get(key)}, not {value}"
        if key == "checksum":
            changed = there.get("dataset") == what["dataset"]
            told = "its graph has changed" if changed else f"its graph is {there.get('dataset')}, not {what['dataset']}"
        raise InputError(f"{folder} holds another sweep: {told}; choose another --out.")


def keep_best(found: Sweep, config: Config, graph: Graph, task_for: Callable[[Settings], Task]) -> None:
    """Write the best model of all as a run folder, for `predict`, `evaluate` and `plot`."""
    trial = found.verdicts[0].best
    settings, seed = trial.outcome.settings, trial.outcome.seed
    folder = found.folder / "best"
    one = dataclasses.replace(config, settings=settings).only(config.splits[0], seed)
    if (folder / "summary.json").exists() and read_config(folder).to_json() == one.to_json():
        there = read_summary(folder)
        if (there["best_epoch"], there["epochs"]) == (trial.outcome.best_epoch, trial.outcome.epochs):
            return  # else time had cut it
    if trial.state is None:  # it was trained before the sweep was resumed: the same again
        (trial,) = train_many(config.model, task_for, [(settings, seed)], test=True)
    assert trial.state is not None
    folder.mkdir(exist_ok=True)
    (folder / "summary.json").unlink(missing_ok=True)  # it is there when all else is
    write_json(folder / "config.json", one.to_json())
    write_atomically(folder / "graph.safetensors", graph_to_bytes(graph))
    training = start_training(config.model, task_for(settings), settings, seed)
    training.best_state, training.best_epoch = trial.state, trial.outcome.best_epoch
    training.best, training.epoch = Score(trial.outcome.val, -trial.outcome.val_loss), trial.outcome.epochs
    finish_run(folder, one, training)
