"""The models by name: what `--model` accepts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from hyperboloid.errors import InputError

if TYPE_CHECKING:
    from .encoder import Encoder
    from .settings import ModelSettings

    Chosen = TypeVar("Chosen", bound=ModelSettings)


@dataclass(frozen=True)
class Model:
    """One line of the registry.

    Attributes:
        path: ``module:class`` of the encoder; the class has ``from_settings(sizes, settings)``.
        fixed: settings that make it this model, such as an ablation's.
    """

    path: str
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> type[Encoder]:
        """Import the encoder's class."""
        module, name = self.path.split(":")
        encoder: type[Encoder] = getattr(import_module(module), name)
        return encoder

    def settle(self, settings: Chosen) -> Chosen:
        """The settings with this model's fixed ones."""
        return dataclasses.replace(settings, **self.fixed)


MODELS: dict[str, Model] = {
    "lgcn": Model("hyperboloid.nn.lgcn:LGCN"),
    "lgcn_no_beta": Model("hyperboloid.nn.lgcn:LGCN", {"train_beta": False}),
    "lgcn_no_att": Model("hyperboloid.nn.lgcn:LGCN", {"attention": False}),
    "lgcn_no_att_no_centroid": Model("hyperboloid.nn.lgcn:LGCN", {"attention": False, "mean": "tangent"}),
    "lgcn_f": Model("hyperboloid.nn.lgcn:LGCN", {"mean": "frechet"}),
    "hgcn": Model("hyperboloid.nn.hgcn:HGCN"),
    "hgcn_c": Model("hyperboloid.nn.hgcn:HGCN", {"mean": "centroid"}),
    "kgcn": Model("hyperboloid.nn.kgcn:KGCN"),
    "hat": Model("hyperboloid.nn.hat:HAT"),
    "hnn": Model("hyperboloid.nn.hnn:HNN"),
    "gcn": Model("hyperboloid.nn.gcn:GCN"),
    "gat": Model("hyperboloid.nn.gat:GAT"),
    "graphsage": Model("hyperboloid.nn.graphsage:GraphSAGE"),
    "mlp": Model("hyperboloid.nn.mlp:MLP"),
    "deepwalk": Model("hyperboloid.nn.deepwalk:DeepWalk"),
    "poincare_emb": Model("hyperboloid.nn.poincare_emb:PoincareEmbedding"),
}


def base_name(name: str) -> str:
    """The first model of the same architecture: ``lgcn`` for its ablations, a model without variants itself."""
    path = get_model(name).path
    return next(other for other, model in MODELS.items() if model.path == path)


def get_model(name: str) -> Model:
    """The model called ``name``."""
    if name not in MODELS:
        raise InputError(f"There is no model '{name}'; choose one of: {', '.join(MODELS)}.")
    return MODELS[name]
