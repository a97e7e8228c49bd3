"""What a run folder's ``config.json`` says: with the graph stored beside it, all that a run depends on."""

from __future__ import annotations

import dataclasses
import json
import platform
import re
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from hyperboloid.errors import InputError
from hyperboloid.nn.registry import check_task
from hyperboloid.version import __version__

from .every_task import get_any_task
from .settings import Settings

FORMAT = 1
DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class Config:
    """An experiment: one model with one setting on one task, for some splits and initialisations.

    Attributes:
        dataset: name or path, as the user gave it.
        checksum: SHA-256 of the graph, or of all molecules.
        task: ``link``, ``node`` or ``graph``.
        model: name of the model.
        settings: hyper-parameters.
        splits: seeds of the splits.
        seeds: seeds of the initialisations.
        dtype: ``float32`` or ``float64``.
        device: ``cpu`` or ``cuda``.
    """

    dataset: str
    checksum: str
    task: str
    model: str
    settings: Settings
    splits: list[int]
    seeds: list[int]
    dtype: str = "float32"
    device: str = "cpu"

    def __post_init__(self) -> None:
        get_any_task(self.task)
        check_task(self.model, self.task)
        if self.dtype not in DTYPES:
            raise InputError(f"dtype must be one of {', '.join(DTYPES)}, not {self.dtype!r}.")
        if not re.fullmatch(r"cpu|cuda(:[0-9]{1,3})?", self.device):
            raise InputError(f"device must be cpu or cuda, not {self.device!r}.")
        for name in ("splits", "seeds"):
            numbers = getattr(self, name)
            if not numbers or any(not 0 <= n < 2**31 for n in numbers):
                raise InputError(f"{name} must be whole numbers from 0 to 2147483647, not {numbers}.")
            if len(set(numbers)) < len(numbers):
                raise InputError(f"{name} must differ from each other, not {numbers}.")

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype as torch's."""
        return DTYPES[self.dtype]

    def only(self, split: int, seed: int) -> Config:
        """The same experiment with a single run."""
        return dataclasses.replace(self, splits=[split], seeds=[seed])

    def to_json(self) -> dict[str, Any]:
        """As written to ``config.json``, with the versions of what computed it."""
        versions = {name: version(name) for name in ("torch", "torch_geometric", "numpy", "numba")}
        return {
            "format": FORMAT,
            **dataclasses.asdict(self),
            "versions": {"hyperboloid": __version__, "python": platform.python_version(), **versions},
        }


def use_device(device: str) -> None:
    """Make a device the current one, where kernels start; one that this machine does not have is refused.

    (A run folder may have been trained on another machine.)
    """
    if device != "cpu" and int(device.partition(":")[2] or 0) >= torch.cuda.device_count():
        raise InputError(
            f"device {device} was asked for, but torch finds {torch.cuda.device_count() or 'no'} GPU; use --device cpu."
        )
    if ":" in device:
        torch.cuda.set_device(device)


def read_config(folder: Path) -> Config:
    """The config of a run folder, checked."""
    path = folder / "config.json"
    try:
        if not folder.is_dir():
            raise InputError(f"There is no run folder {folder}.")
        if not path.is_file():
            raise InputError(f"{folder} is not a run folder of hyperboloid: it has no config.json.")
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise InputError(f"{path} has format {content['format']}; this version of hyperboloid reads {FORMAT}.")
        fields = {f.name: content[f.name] for f in dataclasses.fields(Config)}
        return Config(**{**fields, "settings": Settings(**fields["settings"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not a config of hyperboloid: {error!r}.") from error
