"""GraphSAGE (Hamilton et al., NeurIPS '17) with mean aggregation, PyG's :class:`~torch_geometric.nn.SAGEConv`."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.nn import SAGEConv

from hyperboloid.kernels import Adjacency

from .encoder import Network
from .features import Features
from .linear import TangentLinear
from .pyg import PyGLayer, Through, refuse_weights


class SAGELayer(PyGLayer):
    r"""One layer :math:`\mathrm{mean}_{j \in N(i)} W_l x_j + W_r x_i + b`, without its activation.

    All neighbours are used, none sampled: the paper's graphs are small. It has no place for edge weights.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width of the output.
        bias: add b.
        drop_connect: probability of dropping an entry of W_l or W_r.
        **common: arguments of every :class:`PyGLayer`, whose shapes hold too.
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, bias: bool = True, drop_connect: float = 0.0, **common: Any
    ) -> None:
        conv = SAGEConv(out_channels, out_channels)
        conv.lin_l, conv.lin_r = Through(), Through()
        super().__init__(in_channels, out_channels, conv, self_loops=False, drop_connect=drop_connect, **common)
        self.own = TangentLinear(in_channels, out_channels, bias=bias, drop_connect=drop_connect)

    def convolve(self, x: Features, u: Tensor, adj: Adjacency, weight: Tensor | None) -> Tensor:
        """The neighbours' mean and the node itself."""
        refuse_weights(weight, "GraphSAGE")
        out: Tensor = self.conv((u, self.own(x)), adj.edge_index)
        return out


class GraphSAGE(Network):
    """:class:`SAGELayer` layers with activations in between."""

    conv = SAGELayer
    hyperbolic = False
    edge_weights = False
