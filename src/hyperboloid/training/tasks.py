"""The tasks: what a model sees, what it is trained for, and how it is judged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, NamedTuple, cast

import torch
from torch import Tensor
from torch.nn import functional as F

from hyperboloid.errors import InputError
from hyperboloid.graphs import Graph
from hyperboloid.graphs.splits import NegativeSampler, split_links, split_nodes
from hyperboloid.nn import Encoder
from hyperboloid.nn.decoders import Distance
from hyperboloid.nn.encoder import Sizes
from hyperboloid.nn.features import Features, compress

from .features import scaled_features, suitable_scaling
from .metrics import accuracy, roc_auc
from .settings import Settings

Part = Literal["val", "test"]


class Score(NamedTuple):
    """How well a model does on one part of the data; the larger tuple is better."""

    metric: float
    negative_loss: float


class Task(ABC):
    """A graph, split into parts, with a loss and a score.

    Args:
        graph: the data.
        settings: of the run.
        split: seed of the split.
        dtype: of the features.
        device: where to compute.
    """

    name: ClassVar[str]
    metric: ClassVar[str]

    def __init__(self, graph: Graph, settings: Settings, split: int, dtype: torch.dtype, device: str) -> None:
        self.graph = graph
        self.split_seed = split
        self.device = torch.device(device)
        #: how features are scaled, here and on any other graph the model is shown
        self.scaling = suitable_scaling(graph) if settings.scaling == "auto" else settings.scaling
        x = compress(scaled_features(graph, self.scaling, dtype, trained_on=graph))
        self.x: Features = None if x is None else x.to(self.device)
        self.dtype = dtype
        self.edge_index: Tensor
        self.edge_weight: Tensor | None

    def encode(self, encoder: Encoder) -> Tensor:
        """Output of the encoder on the graph that messages may pass along ``(N, out_channels)``."""
        out: Tensor = encoder(self.x, self.edge_index, self.edge_weight)
        return out

    def _set_graph(self, edge_index: Tensor, edge_weight: Tensor | None) -> None:
        self.edge_index = edge_index.to(self.device)
        self.edge_weight = None if edge_weight is None else edge_weight.to(self.device, self.dtype)

    @property
    @abstractmethod
    def split_name(self) -> str:
        """The split in words."""

    @property
    def sizes(self) -> Sizes:
        """What it asks of an encoder."""
        return Sizes(self.graph.num_nodes, None if self.graph.x is None else self.graph.num_features, self.classes)

    @property
    @abstractmethod
    def classes(self) -> int | None:
        """Number of classes whose logits the encoder gives; None where it gives embeddings."""

    @abstractmethod
    def loss(self, encoder: Encoder, seed: int, epoch: int) -> Tensor:
        """Training loss of one epoch; (seed, epoch) fix what is sampled."""

    @abstractmethod
    def score(self, encoder: Encoder, part: Part) -> Score:
        """Metric and loss on a part; call inside ``torch.no_grad()`` with the encoder in evaluation mode."""


class LinkTask(Task):
    """Link prediction: 85/5/10 of the edges, validation and test edges hidden from the model; ROC AUC."""

    name = "link"
    metric = "auc"

    def __init__(self, graph: Graph, settings: Settings, split: int, dtype: torch.dtype, device: str) -> None:
        super().__init__(graph, settings, split, dtype, device)
        self.split = split_links(graph, split)
        self._set_graph(self.split.edge_index, self.split.edge_weight)
        self.distance = cast(Distance, settings.distance)
        self._sampler = NegativeSampler(self.split.train, graph.num_nodes)

    @property
    def split_name(self) -> str:
        """Shares and seed."""
        return f"85/5/10, seed {self.split_seed}"

    @property
    def classes(self) -> None:
        """The embeddings are the output."""
        return None

    def logits(self, encoder: Encoder, z: Tensor, pairs: Tensor) -> Tensor:
        """Logits ``(P,)`` of pairs ``(2, P)`` of embedded nodes."""
        pairs = pairs.to(z.device)
        return encoder.link_logits(z.index_select(0, pairs[0]), z.index_select(0, pairs[1]), self.distance)

    def loss(self, encoder: Encoder, seed: int, epoch: int) -> Tensor:
        """Cross-entropy over the training edges and as many fresh non-edges."""
        count = self.split.train.size(1)
        generator = torch.Generator().manual_seed((seed << 32) + epoch)
        pairs = torch.cat([self.split.train, self._sampler.sample(count, generator)], dim=1)
        return _link_loss(self.logits(encoder, self.encode(encoder), pairs), count)

    def score(self, encoder: Encoder, part: Part) -> Score:
        """AUC against the fixed non-edges of the part."""
        positive, negative = (
            (self.split.val, self.split.val_neg) if part == "val" else (self.split.test, self.split.test_neg)
        )
        logits = self.logits(encoder, self.encode(encoder), torch.cat([positive, negative], dim=1))
        count = positive.size(1)
        return Score(roc_auc(logits[:count], logits[count:]), -float(_link_loss(logits, count)))


def _link_loss(logits: Tensor, positives: int) -> Tensor:
    """Mean cross-entropy of the first ``positives`` logits as links, plus that of the others as non-links."""
    return F.softplus(-logits[:positives]).mean() + F.softplus(logits[positives:]).mean()


class NodeTask(Task):
    """Node classification: the outputs of the last layer are the logits; accuracy, ties broken by the loss."""

    name = "node"
    metric = "accuracy"

    def __init__(self, graph: Graph, settings: Settings, split: int, dtype: torch.dtype, device: str) -> None:
        super().__init__(graph, settings, split, dtype, device)
        self.split = split_nodes(graph, split, masks=settings.masks)
        self._set_graph(graph.edge_index, graph.edge_weight)

    @property
    def split_name(self) -> str:
        """The name of a split that came with the data, or sizes and seed."""
        return self.split.name

    @property
    def classes(self) -> int:
        """The graph's."""
        return self.graph.num_classes

    def _logits_and_labels(self, encoder: Encoder, nodes: Tensor) -> tuple[Tensor, Tensor]:
        assert self.graph.y is not None  # split_nodes has refused a graph without labels
        logits = self.encode(encoder)
        return logits.index_select(0, nodes.to(logits.device)), self.graph.y[nodes].to(logits.device)

    def loss(self, encoder: Encoder, seed: int, epoch: int) -> Tensor:
        """Cross-entropy on the training nodes."""
        return F.cross_entropy(*self._logits_and_labels(encoder, self.split.train))

    def score(self, encoder: Encoder, part: Part) -> Score:
        """Accuracy on the part's nodes."""
        nodes = self.split.val if part == "val" else self.split.test
        logits, y = self._logits_and_labels(encoder, nodes)
        return Score(accuracy(logits, y), -float(F.cross_entropy(logits, y)))


TASKS: dict[str, type[Task]] = {task.name: task for task in (LinkTask, NodeTask)}


def get_task(name: str) -> type[Task]:
    """The task called ``name``."""
    if name not in TASKS:
        raise InputError(f"There is no task '{name}'; choose one of: {', '.join(TASKS)}.")
    return TASKS[name]
