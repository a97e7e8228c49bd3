"""The tasks: what a model sees, what it is trained for, and how it is judged."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn

from hyperboloid.errors import InputError
from hyperboloid.graphs import Graph
from hyperboloid.graphs.splits import NegativeSampler, split_links, split_nodes
from hyperboloid.kernels import Key, edge_loss, fold
from hyperboloid.nn import Encoder
from hyperboloid.nn.decoders import Distance, FermiDirac
from hyperboloid.nn.encoder import Sizes
from hyperboloid.nn.features import Features, compress
from hyperboloid.nn.registry import get_model

from .features import scaled_features, suitable_scaling
from .metrics import accuracy, roc_auc
from .settings import Settings

Part = Literal["val", "test"]
PARTS: tuple[Part, ...] = ("val", "test")
_NEGATIVES = 0x4E454741  # tells the draw of negatives from the masks of the same epoch


class Score(NamedTuple):
    """How well a model does on one part of the data; the larger tuple is better, so an error counts negative."""

    metric: float
    negative_loss: float


class BaseTask(ABC):
    """Data, split into parts, with a score: what every task has, whether its data is one graph or many."""

    name: ClassVar[str]
    metric: ClassVar[str]
    #: loss of a model that has not begun to learn, see ``patience.py``; 0 where no loss tells
    plateau: float = 0.0
    dtype: torch.dtype
    device: torch.device

    @property
    @abstractmethod
    def split_name(self) -> str:
        """The split in words."""

    @property
    def left_out(self) -> str:
        """What of the data is not learned from, and why; usually nothing."""
        return ""

    @abstractmethod
    def build(self, model: str, settings: Settings) -> nn.Module:
        """The model of this name that the settings ask for, with as many inputs and outputs as the data has."""

    @abstractmethod
    def score(self, encoder: Any, part: Part) -> Score:
        """Score on a part; call inside ``torch.no_grad()`` with the model in evaluation mode."""

    @staticmethod
    def shown(metric: float) -> float:
        """A score's metric as it is told: the same number, unless it is an error, which counts negative."""
        return metric


class Task(BaseTask):
    """A graph, split into parts, with a loss and a score.

    Args:
        graph: the data.
        settings: of the run.
        split: seed of the split.
        dtype: of the features.
        device: where to compute.
    """

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
        """The graph that messages may pass along; weights that are all 1 say nothing."""
        if edge_weight is not None and bool((edge_weight == 1).all()):
            edge_weight = None
        self.edge_index = edge_index.to(self.device)
        self.edge_weight = None if edge_weight is None else edge_weight.to(self.device, self.dtype)

    @property
    def sizes(self) -> Sizes:
        """What it asks of an encoder."""
        return Sizes(self.graph.num_nodes, None if self.graph.x is None else self.graph.num_features, self.classes)

    def build(self, model: str, settings: Settings) -> Encoder:
        """The encoder at its start."""
        line = get_model(model)
        encoder: type[Encoder] = line.load()
        if self.edge_weight is not None and not encoder.edge_weights:
            raise InputError(f"{model} has no place for edge weights: leave them out, or choose another model.")
        return encoder.from_settings(self.sizes, line.settle(settings))

    @property
    @abstractmethod
    def classes(self) -> int | None:
        """Number of classes whose logits the encoder gives; None where it gives embeddings."""

    @abstractmethod
    def examples(self, seed: Key, epoch: Key) -> Tensor:
        """What one epoch trains on, fixed by (seed, epoch); with a leading axis for seeds ``(M,)``."""

    @abstractmethod
    def part(self, part: Part) -> Tensor:
        """What a model is judged by."""

    @abstractmethod
    def logits(self, encoder: Encoder, z: Tensor, examples: Tensor) -> Tensor:
        """Logits of examples, for the encoder's output ``z`` ``(N, out_channels)``."""

    @abstractmethod
    def losses(self, logits: Tensor, part: Part | None) -> Tensor:
        """Loss of the logits of a part, or of an epoch's examples; leading axes of many models are kept."""

    @abstractmethod
    def metrics(self, logits: Tensor, part: Part) -> Tensor:
        """Metric of the logits of a part; leading axes of many models are kept."""

    @abstractmethod
    def guess(self, part: Part) -> float:
        """Metric of the same answer to everything, the best there is."""

    def size(self, part: Part) -> int:
        """Edges or nodes of a part; for links half of its pairs are no edges."""
        return self.part(part).size(-1) // (1 if self.classes else 2)

    def loss(self, encoder: Encoder, seed: Key, epoch: Key) -> Tensor:
        """Training loss of one epoch; (seed, epoch) fix what is sampled."""
        return self.losses(self.logits(encoder, self.encode(encoder), self.examples(seed, epoch)), None)

    def judged(self, encoder: Encoder, part: Part) -> tuple[Tensor, Tensor]:
        """Metric and loss on a part, scalars; call inside ``torch.no_grad()`` with the encoder in evaluation mode."""
        logits = self.logits(encoder, self.encode(encoder), self.part(part))
        return self.metrics(logits, part), self.losses(logits, part)

    def score(self, encoder: Encoder, part: Part) -> Score:
        """The same as a score."""
        metric, loss = self.judged(encoder, part)
        return Score(float(metric), -float(loss))


def loss_in_one_place() -> float:
    """Loss of links if all points lie in one place: every squared distance is 0, and every logit r/t."""
    decoder = FermiDirac()
    logit = decoder.r / decoder.t
    return math.log1p(math.exp(-logit)) + math.log1p(math.exp(logit))


class LinkTask(Task):
    """Link prediction: 85/5/10 of the edges, validation and test edges hidden from the model; ROC AUC."""

    name = "link"
    metric = "auc"
    plateau = loss_in_one_place()

    def __init__(self, graph: Graph, settings: Settings, split: int, dtype: torch.dtype, device: str) -> None:
        super().__init__(graph, settings, split, dtype, device)
        self.split = split_links(graph, split)
        self._set_graph(self.split.edge_index, self.split.edge_weight)
        self.distance = cast(Distance, settings.distance)
        self._sampler = NegativeSampler(self.split.train.to(self.device), graph.num_nodes)
        pairs = {"val": (self.split.val, self.split.val_neg), "test": (self.split.test, self.split.test_neg)}
        self._parts = {part: torch.cat(both, dim=1).to(self.device) for part, both in pairs.items()}

    @property
    def split_name(self) -> str:
        """Shares and seed."""
        return f"85/5/10, seed {self.split_seed}"

    @property
    def classes(self) -> None:
        """The embeddings are the output."""
        return None

    def examples(self, seed: Key, epoch: Key) -> Tensor:
        """Pairs ``(…, 2, P)``: the training edges, then as many fresh non-edges."""
        return self._sampler.with_edges(fold(fold(seed, epoch), _NEGATIVES))

    def part(self, part: Part) -> Tensor:
        """Pairs ``(2, P)``: the edges of the part, then its fixed non-edges."""
        return self._parts[part]

    def logits(self, encoder: Encoder, z: Tensor, examples: Tensor) -> Tensor:
        """Logits ``(P,)`` of pairs ``(2, P)`` of embedded nodes."""
        return encoder.pair_logits(z, examples, self.distance)

    def losses(self, logits: Tensor, part: Part | None) -> Tensor:
        """Cross-entropy of edges and of as many non-edges, ``(…, P)`` to ``(…)``."""
        return edge_loss(logits)

    def metrics(self, logits: Tensor, part: Part) -> Tensor:
        """AUC against the fixed non-edges of the part, ``(…, P)`` to ``(…)``."""
        return roc_auc(*logits.chunk(2, dim=-1))

    def guess(self, part: Part) -> float:
        """One half: all pairs tie."""
        return 0.5


class NodeTask(Task):
    """Node classification: the outputs of the last layer are the logits; accuracy, ties broken by the loss."""

    name = "node"
    metric = "accuracy"

    def __init__(self, graph: Graph, settings: Settings, split: int, dtype: torch.dtype, device: str) -> None:
        super().__init__(graph, settings, split, dtype, device)
        self.split = split_nodes(graph, split, masks=settings.masks)
        self._set_graph(graph.edge_index, graph.edge_weight)
        assert graph.y is not None  # split_nodes has refused a graph without labels
        y, parts = graph.y, {"train": self.split.train, "val": self.split.val, "test": self.split.test}
        self._nodes = {part: nodes.to(self.device) for part, nodes in parts.items()}
        self._labels = {part: y[nodes].to(self.device) for part, nodes in parts.items()}
        self.plateau = math.log(graph.num_classes)  # all classes are equally likely

    @property
    def split_name(self) -> str:
        """The name of a split that came with the data, or sizes and seed."""
        return self.split.name

    @property
    def classes(self) -> int:
        """The graph's."""
        return self.graph.num_classes

    def examples(self, seed: Key, epoch: Key) -> Tensor:
        """The training nodes ``(T,)``, the same in every epoch; ``(M, T)`` for seeds ``(M,)``."""
        return self._nodes["train"].expand(*(seed.shape if isinstance(seed, Tensor) else ()), -1)

    def part(self, part: Part) -> Tensor:
        """Its nodes ``(V,)``."""
        return self._nodes[part]

    def logits(self, encoder: Encoder, z: Tensor, examples: Tensor) -> Tensor:
        """Logits ``(V, C)`` of nodes ``(V,)``: their rows of the output."""
        return z.index_select(0, examples)

    def losses(self, logits: Tensor, part: Part | None) -> Tensor:
        """Cross-entropy on the nodes of the part, ``(…, V, C)`` to ``(…)``."""
        y = self._labels[part or "train"]
        return -logits.log_softmax(-1).gather(-1, y.expand(logits.shape[:-1]).unsqueeze(-1)).squeeze(-1).mean(-1)

    def metrics(self, logits: Tensor, part: Part) -> Tensor:
        """Accuracy on the nodes of the part, ``(…, V, C)`` to ``(…)``."""
        return accuracy(logits, self._labels[part])

    def guess(self, part: Part) -> float:
        """Share of the part's largest class."""
        y = self._labels[part]
        return float(y.bincount().max()) / len(y)


#: Tasks on the nodes of one graph; for all tasks see `every_task.py`.
TASKS: dict[str, type[Task]] = {task.name: task for task in (LinkTask, NodeTask)}


def get_task(name: str) -> type[Task]:
    """The task on one graph that is called ``name``."""
    if name not in TASKS:
        raise InputError(f"There is no task '{name}'; choose one of: {', '.join(TASKS)}.")
    return TASKS[name]
