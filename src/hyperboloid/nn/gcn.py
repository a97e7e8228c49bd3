"""Graph convolutional network (Kipf & Welling, ICLR '17); its values are those of PyG's ``GCNConv``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from hyperboloid.kernels import Adjacency, weighted_sum

from .encoder import Network
from .features import Features
from .flat import FlatConv


def symmetric_weights(adj: Adjacency, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Weights of the entries ``(E,)`` over the roots of both nodes' degrees; those of all are 1 if None are given."""
    _, normalized = gcn_norm(adj.edge_index, weight, adj.num_rows, add_self_loops=False, dtype=dtype)
    out: Tensor = normalized
    return out


class GCNLayer(FlatConv):
    r"""One layer :math:`\tilde D^{-1/2} (A + I) \tilde D^{-1/2} X W + b`, without its activation.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width of the output.
        bias: add b.
        **common: arguments of every :class:`FlatConv`, whose shapes hold too.
    """

    def __init__(self, in_channels: int, out_channels: int, *, bias: bool = True, **common: Any) -> None:
        super().__init__(in_channels, out_channels, self_loops=True, bias=out_channels if bias else None, **common)

    def convolve(self, x: Features, u: Tensor, adj: Adjacency, weight: Tensor | None) -> Tensor:
        """Sum the neighbours under the symmetric normalisation."""
        return weighted_sum(u, adj, symmetric_weights(adj, weight, u.dtype))


class GCN(Network):
    """:class:`GCNLayer` layers with activations in between."""

    conv = GCNLayer
    hyperbolic = False
