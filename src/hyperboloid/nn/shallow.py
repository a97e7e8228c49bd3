"""Shallow models: a vector for every node, learned from the edges of one graph without features or layers."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from hyperboloid.errors import InputError
from hyperboloid.geometry import Curvature

from .encoder import Encoder
from .features import Features
from .graph_input import GraphInput


class ShallowEncoder(Encoder):
    """A table of embeddings in normal coordinates, and for node classification a linear classifier on top of it.

    Subclasses say how the table starts and how an epoch learns it. The classifier is fitted from the outside, once the
    table is there.

    Args:
        num_nodes: number of nodes N.
        dim: width d of the embeddings.
        num_classes: of the classifier whose logits are the output; None where the output is the table.
        curvature: β of the hyperboloid that the table lives on; None for Euclidean space.
    """

    inductive = False
    attends = False

    def __init__(
        self, num_nodes: int, dim: int, num_classes: int | None = None, *, curvature: Curvature | None = None
    ) -> None:
        nn.Module.__init__(self)  # not Encoder's own, which stacks convolutions: here are none
        self.table = nn.Parameter(torch.empty(num_nodes, dim))
        self.classifier = None if num_classes is None else nn.Linear(dim, num_classes)
        self.curvature = curvature

    @property
    def embedding(self) -> Tensor:
        """Normal coordinates of the nodes ``(N, d)``."""
        return self.table

    def reset_parameters(self) -> None:
        """Start again; the classifier knows nothing then."""
        if self.classifier is not None:
            nn.init.zeros_(self.classifier.weight)
            nn.init.zeros_(self.classifier.bias)

    def forward(self, x: Features, edge_index: GraphInput, edge_weight: Tensor | None = None) -> Tensor:
        """Embeddings ``(N, d)``, or logits ``(N, num_classes)``; the arguments, every encoder's, are not used."""
        if self.classifier is None:
            return self.embedding
        out: Tensor = self.classifier(self.embedding)
        return out

    def train_epoch(
        self, edge_index: Tensor, edge_weight: Tensor | None = None, *, lr: float, seed: int, epoch: int, epochs: int
    ) -> float:
        """Learn the table from the training graph for one epoch, and give the mean loss.

        Args:
            edge_index: ``(2, E)`` edges in both directions, each once.
            edge_weight: ``(E,)`` positive weights, or None.
            lr: learning rate.
            seed: with ``epoch`` fixes everything that is drawn.
            epoch: the number of this epoch, from 1.
            epochs: how many there will be, for learning rates that follow a schedule.
        """
        raise NotImplementedError

    def extra_repr(self) -> str:
        """The size of the table."""
        return ", ".join(map(str, self.table.shape))


def import_extra(module: str) -> Any:
    """A module of the ``shallow`` extra, or one sentence that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        package = {"sklearn": "scikit-learn"}.get(module.partition(".")[0], module)
        raise InputError(f"This model needs {package}: install it by `pip install 'hyperboloid[shallow]'`.") from error
