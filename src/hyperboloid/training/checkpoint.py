"""Everything a training run needs to go on after a kill, in one file written atomically."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hyperboloid.errors import InputError, TrainingError

if TYPE_CHECKING:
    from .loop import Training

#: What reading a file and putting back its content raises where the file is damaged, or of something else.
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, RuntimeError)
#: What a training run counts.
COUNTERS = ("epoch", "best_epoch", "learning_since", "best", "seconds")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part."""
    partial = partial_of(path)
    try:
        with open(partial, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException as error:  # Ctrl-C too
        with contextlib.suppress(OSError):
            partial.unlink()
        if isinstance(error, OSError):
            raise TrainingError(f"Could not write {path}: {error.strerror}.") from error
        raise


def partial_of(path: Path) -> Path:
    """Where a file is written before it takes its name."""
    return path.with_name(path.name + ".partial")


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file atomically."""
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())


def save_checkpoint(path: Path, training: Training) -> None:
    """Save parameters, the best parameters, Adam's moments where there are any, and the counters."""
    write_tensors(path, *contents(training))


def load_checkpoint(path: Path, training: Training) -> None:
    """Put a training run back to where :func:`save_checkpoint` saw it.

    Raises:
        InputError: the file is damaged, or of another run.
    """
    try:
        put_back(training, *read_tensors(path))
    except UNREADABLE as error:
        raise InputError(f"{path} is not a checkpoint of this run; remove it to start the run anew.") from error


def write_tensors(path: Path, tensors: dict[str, Tensor], counters: dict[str, Any]) -> None:
    """Write tensors and what JSON can hold into one file, atomically."""
    from safetensors.torch import save

    there = {name: tensor.contiguous() for name, tensor in tensors.items()}
    write_atomically(path, save(there, metadata={"counters": json.dumps(counters)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What :func:`write_tensors` wrote.

    Raises:
        ValueError: it did not write this.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            counters = json.loads(file.metadata()["counters"])
            return {key: file.get_tensor(key) for key in file.keys()}, counters  # noqa: SIM118 (it is not a dict)
    except SafetensorError as error:
        raise ValueError("this is no such file") from error


def contents(training: Training) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Everything that a training run has come to, as tensors and counters."""
    tensors: dict[str, Tensor] = {f"model.{k}": v for k, v in training.encoder.state_dict().items()}
    tensors |= {f"best.{k}": v for k, v in training.best_state.items()}
    moments = {} if training.optimizer is None else training.optimizer.state_dict()["state"]
    for index, state in moments.items():
        tensors |= {f"adam.{index}.{k}": v for k, v in state.items()}
    return tensors, {name: getattr(training, name) for name in COUNTERS}


def put_back(training: Training, tensors: dict[str, Tensor], counters: dict[str, Any]) -> None:
    """Put a training run back to where :func:`contents` saw it."""
    from .tasks import Score

    groups: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "adam": {}}
    for key, tensor in tensors.items():
        group, name = key.split(".", 1)
        groups[group][name] = tensor
    training.encoder.load_state_dict(groups["model"])
    training.best_state = groups["best"]
    if training.optimizer is not None:
        optimizer = training.optimizer.state_dict()
        for name, tensor in groups["adam"].items():
            index, key = name.split(".", 1)
            optimizer["state"].setdefault(int(index), {})[key] = tensor
        training.optimizer.load_state_dict(optimizer)
    training.epoch, training.best_epoch = int(counters["epoch"]), int(counters["best_epoch"])
    training.learning_since = int(counters.get("learning_since", training.learning_since))  # earlier ones lack it
    training.seconds, training.best = float(counters["seconds"]), Score(*counters["best"])
    # before the first judgement there is no best
    if (training.best_epoch > 0 or groups["best"]) and groups["best"].keys() != groups["model"].keys():
        raise ValueError("the best parameters are not those of this model")


def copy_state(module: torch.nn.Module) -> dict[str, Tensor]:
    """A copy of a module's state that further training does not touch."""
    return {k: v.detach().clone() for k, v in module.state_dict().items()}
