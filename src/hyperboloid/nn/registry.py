"""The models by name: what `--model` accepts."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from hyperboloid.errors import InputError

if TYPE_CHECKING:
    from .encoder import Encoder


@dataclass(frozen=True)
class Model:
    """One line of the registry.

    Attributes:
        path: ``module:class`` of the encoder; the class has ``from_settings(in_channels, out_channels, settings)``.
    """

    path: str

    def load(self) -> type[Encoder]:
        """Import the encoder's class."""
        module, name = self.path.split(":")
        encoder: type[Encoder] = getattr(import_module(module), name)
        return encoder


MODELS: dict[str, Model] = {
    "lgcn": Model("hyperboloid.nn.lgcn:LGCN"),
}


def get_model(name: str) -> Model:
    """The model called ``name``."""
    if name not in MODELS:
        raise InputError(f"There is no model '{name}'; choose one of: {', '.join(MODELS)}.")
    return MODELS[name]
