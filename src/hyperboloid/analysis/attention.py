"""What a model's layers attend to: a node's neighbours one by one, and the whole graph in a few numbers."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from hyperboloid.errors import InputError
from hyperboloid.graphs.graph import UNLABELLED
from hyperboloid.training.experiment import Run

#: How often labels are shuffled for the control.
SHUFFLES = 20
#: What attention that is uniform but for rounding may differ by from a share.
ROUNDING = 1e-5


@dataclass(frozen=True, eq=False)
class Attention:
    """The weights of one layer, on the graph that messages passed along when the run was evaluated.

    Attributes:
        source: ``(E,)`` the node that is attended to; self loops are among the entries.
        target: ``(E,)`` the node that attends.
        weight: ``(E,)`` float64, summing to 1 over each target.
        num_nodes: N.
    """

    source: Tensor
    target: Tensor
    weight: Tensor
    num_nodes: int

    def sum(self, values: Tensor) -> Tensor:
        """Sum of values ``(E,)`` over each target ``(N,)``."""
        return values.new_zeros(self.num_nodes).index_add_(0, self.target, values)


@dataclass(frozen=True)
class SameLabel:
    """Attention on neighbours of a node's own label, as means over the nodes that can choose.

    A node can choose if it has labelled neighbours of its own and of another label, and attends to any of them at all;
    itself is left out, and so are neighbours without a label.

    Attributes:
        nodes: how many nodes can choose.
        attention: share of their attention that goes to neighbours of the same label.
        share: share of their neighbours that have the same label, which is what uniform attention gives.
        control: mean of attention − share with shuffled labels.
        control_std: its standard deviation over the shuffles.
    """

    nodes: int
    attention: float
    share: float
    control: float
    control_std: float

    @property
    def excess(self) -> float:
        """Attention beyond the share."""
        return self.attention - self.share

    @property
    def beyond_chance(self) -> bool:
        """Whether the excess is more than two standard deviations above what shuffled labels give."""
        return self.excess > self.control + 2 * self.control_std + ROUNDING


@dataclass(frozen=True)
class LayerSummary:
    """One layer across the graph.

    Attributes:
        layer: its number, from 1.
        entropy: mean of H(weights)/log(neighbours and itself), 1 for uniform attention; nodes with neighbours only.
        self_share: mean weight of a node itself, over the same nodes.
        self_uniform: what uniform attention would give.
        same_label: None where the graph has no labels, or nobody can choose.
    """

    layer: int
    entropy: float
    self_share: float
    self_uniform: float
    same_label: SameLabel | None

    def as_json(self) -> dict[str, Any]:
        """In types that JSON has."""
        return asdict(self)


@torch.no_grad()
def attention_weights(run: Run) -> list[Attention]:
    """The weights of every layer.

    Raises:
        InputError: the model has no attention.
    """
    encoder, task = run.encoder, run.task
    if not encoder.attends:
        raise InputError(
            f"The run in {run.folder} is of model '{run.config.model}', which weighs neighbours without attention: "
            "train one that attends, such as lgcn, hat or gat."
        )
    found = []
    for (source, target), weight in encoder.attention(task.x, task.edge_index, task.edge_weight):
        layer = Attention(source, target, weight.double(), run.graph.num_nodes)
        total = layer.sum(layer.weight)  # 1, unless edge weights are multiplied in
        found.append(Attention(source, target, layer.weight / total[target], layer.num_nodes))
    return found


def neighbours(layers: list[Attention], node: int) -> tuple[Tensor, Tensor]:
    """What a node attends to: itself first, then its neighbours by number ``(K,)``; weights ``(layers, K)``."""
    rows = []
    for layer in layers:
        entries = (layer.target == node).nonzero().squeeze(1)
        source, weight = layer.source[entries], layer.weight[entries]
        order = torch.argsort(torch.where(source == node, -1, source))
        rows.append((source[order], weight[order]))
    return rows[0][0], torch.stack([weight for _, weight in rows])


def summarize(layers: list[Attention], y: Tensor | None, seed: int = 0) -> list[LayerSummary]:
    """What each layer does across the graph.

    Args:
        layers: their weights.
        y: labels ``(N,)``, −1 where unknown, or None.
        seed: of the shuffles.
    """
    return [_summary(number, layer, y, seed) for number, layer in enumerate(layers, start=1)]


def _summary(number: int, layer: Attention, y: Tensor | None, seed: int) -> LayerSummary:
    count = layer.sum(torch.ones_like(layer.weight))
    social = count > 1
    if not social.any():
        raise InputError("No node has a neighbour, so there is nothing to attend to.")
    entropy = layer.sum(-torch.xlogy(layer.weight, layer.weight))[social] / count[social].log()
    own = layer.sum(layer.weight * (layer.source == layer.target))[social]
    return LayerSummary(
        number,
        float(entropy.mean()),
        float(own.mean()),
        float((1 / count[social]).mean()),
        None if y is None else _same_label(layer, y, seed),
    )


def _same_label(layer: Attention, y: Tensor, seed: int) -> SameLabel | None:
    found = _means(layer, y)
    if found is None:
        return None
    nodes, attention, share = found
    generator = torch.Generator().manual_seed(seed)
    labelled = (y != UNLABELLED).nonzero().squeeze(1)
    chance = []
    for _ in range(SHUFFLES):
        shuffled = y.clone()
        shuffled[labelled] = y[labelled[torch.randperm(labelled.numel(), generator=generator)]]
        control = _means(layer, shuffled)
        if control is not None:
            chance.append(control[1] - control[2])
    if len(chance) < 2:
        return None
    return SameLabel(nodes, attention, share, statistics.mean(chance), statistics.stdev(chance))


def _means(layer: Attention, y: Tensor) -> tuple[int, float, float] | None:
    """Nodes that can choose, their attention on the same label, and the share of their neighbours that have it."""
    source, target = y[layer.source], y[layer.target]
    counted = ((layer.source != layer.target) & (source != UNLABELLED) & (target != UNLABELLED)).double()
    same = counted * (source == target)
    neighbours, alike = layer.sum(counted), layer.sum(same)
    attention, to_alike = layer.sum(counted * layer.weight), layer.sum(same * layer.weight)
    chooses = (alike > 0) & (alike < neighbours) & (attention > 0)
    if not chooses.any():
        return None
    share = (alike[chooses] / neighbours[chooses]).mean()
    return int(chooses.sum()), float((to_alike[chooses] / attention[chooses]).mean()), float(share)
