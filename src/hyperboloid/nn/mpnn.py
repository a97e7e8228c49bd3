"""Message passing network (Gilmer et al., ICML '17): edge network, GRU, set2set."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import Set2Set

from .graph_batch import GraphBatch
from .graph_model import GraphModel, GraphSizes, NodeEmbedding, summed
from .settings import ModelSettings

#: Steps of set2set.
READ_STEPS = 3


class MPNN(GraphModel):
    r"""T steps of :math:`h_i \leftarrow \mathrm{GRU}(\sum_j A(e_{ij}) h_j,\ h_i)` with shared weights, then set2set.

    A is the edge network, a matrix for the features of an edge. Edges have a kind and nothing else, so its R different
    matrices are computed once for a batch instead of one for each edge as in PyG's ``NNConv``; the sums are the same.

    Args:
        sizes: of data and task.
        channels: width d of the nodes' states, and of the edge network.
        num_steps: T.
    """

    def __init__(self, sizes: GraphSizes, channels: int, num_steps: int = 4) -> None:
        super().__init__()
        self.num_steps = num_steps
        self.relations = sizes.relations
        self.embedding = NodeEmbedding(sizes, channels)
        self.edge_network = nn.Sequential(
            nn.Linear(sizes.relations, channels), nn.ReLU(), nn.Linear(channels, channels * channels)
        )
        self.gru = nn.GRUCell(channels, channels)
        self.read = Set2Set(channels, READ_STEPS)
        self.out = nn.Sequential(nn.Linear(2 * channels, channels), nn.ReLU(), nn.Linear(channels, sizes.targets))

    @classmethod
    def from_settings(cls, sizes: GraphSizes, settings: ModelSettings) -> MPNN:
        """The network that a training run asks for."""
        return cls(sizes, settings.dim, settings.layers)

    def matrices(self) -> Tensor:
        """The edge network of each relation ``(R, d, d)``."""
        weight = self.gru.weight_ih
        channels = weight.size(1)
        every = torch.eye(self.relations, dtype=weight.dtype, device=weight.device)
        out: Tensor = self.edge_network(every).view(-1, channels, channels)
        return out.mT  # NNConv multiplies from the other side

    def forward(self, batch: GraphBatch) -> Tensor:
        """Predictions ``(B, targets)``."""
        h, matrices = self.embedding(batch), self.matrices()
        for _ in range(self.num_steps):
            h = self.gru(summed(h, matrices, batch), h)
        out: Tensor = self.out(self.read(h, batch.graph.long(), dim_size=batch.num_graphs))
        return out
