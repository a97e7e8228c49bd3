"""GraphSAGE (Hamilton et al., NeurIPS '17) with mean aggregation; its values are those of PyG's ``SAGEConv``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hyperboloid.kernels import Adjacency, weighted_sum

from .encoder import Network
from .features import DroppedFeatures
from .flat import FlatConv, refuse_weights
from .gcn import row_weights
from .linear import TangentLinear


class SAGELayer(FlatConv):
    r"""One layer :math:`\mathrm{mean}_{j \in N(i)} W_l x_j + W_r x_i + b`, without its activation.

    All neighbours are used, none sampled: the paper's graphs are small. It has no place for edge weights.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width of the output.
        bias: add b.
        drop_connect: probability of dropping an entry of W_l or W_r.
        **common: arguments of every :class:`FlatConv`, whose shapes hold too.
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, bias: bool = True, drop_connect: float = 0.0, **common: Any
    ) -> None:
        super().__init__(in_channels, out_channels, self_loops=False, bias=None, drop_connect=drop_connect, **common)
        self.own = TangentLinear(in_channels, out_channels, bias=bias, drop_connect=drop_connect)

    def convolve(self, x: DroppedFeatures, u: Tensor, adj: Adjacency, weight: Tensor | None) -> Tensor:
        """The neighbours' mean and the node itself."""
        refuse_weights(weight, "GraphSAGE")
        # its weights are exact where u is not
        mean = weighted_sum(u, adj, row_weights(adj, None, torch.promote_types(u.dtype, torch.float32)))
        out: Tensor = mean + self.own(x)
        return out


class GraphSAGE(Network):
    """:class:`SAGELayer` layers with activations in between."""

    conv = SAGELayer
    hyperbolic = False
    edge_weights = False
