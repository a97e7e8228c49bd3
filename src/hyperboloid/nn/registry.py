"""The models by name: what `--model` accepts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hyperboloid.errors import InputError

if TYPE_CHECKING:
    from .encoder import Encoder
    from .graph_model import GraphModel
    from .settings import ModelSettings

    Chosen = TypeVar("Chosen", bound=ModelSettings)

Network = TypeVar("Network")


@dataclass(frozen=True)
class Model(Generic[Network]):
    """One line of the registry.

    Attributes:
        path: ``module:class`` of the network; the class has ``from_settings(sizes, settings)``.
        fixed: settings that make it this model, such as an ablation's.
    """

    path: str
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> type[Network]:
        """Import the network's class."""
        module, name = self.path.split(":")
        network: type[Network] = getattr(import_module(module), name)
        return network

    def settle(self, settings: Chosen) -> Chosen:
        """The settings with this model's fixed ones."""
        return dataclasses.replace(settings, **self.fixed)


#: Models that embed or classify the nodes of one graph.
MODELS: dict[str, Model[Encoder]] = {
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

#: Models that predict numbers for whole graphs.
GRAPH_MODELS: dict[str, Model[GraphModel]] = {
    "hgnn_l": Model("hyperboloid.nn.hgnn:HGNN", {"geometry": "lorentz"}),
    "hgnn_l_scaled": Model("hyperboloid.nn.hgnn:HGNN", {"geometry": "lorentz_scaled"}),
    "hgnn_h": Model("hyperboloid.nn.hgnn:HGNN", {"geometry": "hyperboloid"}),
    "hgnn_p": Model("hyperboloid.nn.hgnn:HGNN", {"geometry": "ball"}),
    "mpnn": Model("hyperboloid.nn.mpnn:MPNN"),
    "ggnn": Model("hyperboloid.nn.ggnn:GGNN"),
}


def base_name(name: str) -> str:
    """The first model of the same architecture: ``lgcn`` for its ablations, a model without variants itself."""
    path = get_model(name).path
    lines: list[tuple[str, Model[Any]]] = [*MODELS.items(), *GRAPH_MODELS.items()]
    return next(other for other, model in lines if model.path == path)


def get_model(name: str) -> Model[Any]:
    """The model called ``name``, of either kind."""
    found = MODELS.get(name) or GRAPH_MODELS.get(name)
    if found is None:
        raise InputError(f"There is no model '{name}'; choose one of: {', '.join((*MODELS, *GRAPH_MODELS))}.")
    return found


def default_model(task: str) -> str:
    """The paper's own model for a task."""
    return "hgnn_l" if task == "graph" else "lgcn"


def check_task(model: str, task: str) -> None:
    """Refuse a model of whole graphs for a task on nodes, and the other way round."""
    get_model(model)
    if model in GRAPH_MODELS and task != "graph":
        raise InputError(f"{model} predicts numbers for whole graphs: give --task graph, or choose another model.")
    if model not in GRAPH_MODELS and task == "graph":
        raise InputError(
            f"{model} embeds the nodes of one graph: for --task graph choose one of {', '.join(GRAPH_MODELS)}."
        )
