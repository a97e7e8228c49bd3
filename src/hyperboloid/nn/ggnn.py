"""Gated graph network (Li et al., ICLR '16) with a matrix for each kind of edge and a gated sum as read-out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hyperboloid.kernels.sums import sum_aggregate

from .graph_batch import GraphBatch
from .graph_model import GraphModel, GraphSizes, NodeEmbedding, RelationalLinear
from .settings import ModelSettings


class GGNN(GraphModel):
    r"""T steps of :math:`h_i \leftarrow \mathrm{GRU}(\sum_r \sum_j W_r h_j,\ h_i)` with shared weights, then

    .. math::  y = \mathrm{lin}\Big(\sum_i \mathrm{sigmoid}(f(h_i, x_i)) \odot \tanh(g(h_i, x_i))\Big)

    where x are the nodes' first states. With one relation the steps are those of PyG's ``GatedGraphConv``, whose edges
    have no kinds. The publication has a tanh around the sum, which could not hold a property that grows with the graph.

    Args:
        sizes: of data and task.
        channels: width d.
        num_steps: T.
    """

    def __init__(self, sizes: GraphSizes, channels: int, num_steps: int = 4) -> None:
        super().__init__()
        self.num_steps = num_steps
        self.embedding = NodeEmbedding(sizes, channels)
        self.lin = RelationalLinear(channels, sizes.relations)
        self.gru = nn.GRUCell(channels, channels)
        self.gate = nn.Linear(2 * channels, channels)
        self.value = nn.Linear(2 * channels, channels)
        self.out = nn.Linear(channels, sizes.targets)

    @classmethod
    def from_settings(cls, sizes: GraphSizes, settings: ModelSettings) -> GGNN:
        """The network that a training run asks for."""
        return cls(sizes, settings.dim, settings.layers)

    def states(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """First and last states of the nodes, both ``(N, d)``."""
        x = h = self.embedding(batch)
        for _ in range(self.num_steps):
            h = self.gru(sum_aggregate(self.lin(h, batch), batch.adj), h)
        return x, h

    def forward(self, batch: GraphBatch) -> Tensor:
        """Predictions ``(B, targets)``."""
        x, h = self.states(batch)
        both = torch.cat([h, x], dim=-1)
        out: Tensor = self.out(batch.sum(torch.sigmoid(self.gate(both)) * torch.tanh(self.value(both))))
        return out
