"""Graph convolutional network (Kipf & Welling, ICLR '17); its values are those of PyG's ``GCNConv``.

Kipf's sum over neighbours makes a node's vector the longer the higher its degree. A classifier may profit from that; to
a decoder that goes by distances a leaf and its hub, which are then far apart, are no link. So neighbours may also be
averaged, as published codes of hyperbolic GCNs do in their Euclidean baselines.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from hyperboloid.errors import InputError
from hyperboloid.kernels import Adjacency, row_normalize, weighted_sum

from .encoder import Network
from .features import DroppedFeatures
from .flat import FlatConv

#: How a sum over neighbours is normalised: by the roots of both degrees, or by the sum of the weights.
NORMALIZATIONS = ("symmetric", "rows")


def check_normalization(name: str) -> None:
    """Refuse what is none."""
    if name not in NORMALIZATIONS:
        raise InputError(f"normalization must be one of {', '.join(NORMALIZATIONS)}, not {name!r}.")


def symmetric_weights(adj: Adjacency, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Weights of the entries ``(E,)`` over the roots of both nodes' degrees; those of all are 1 if None are given."""
    if weight is None:
        return adj.known((symmetric_weights, dtype), lambda: _kipf(adj, None, dtype))
    return _kipf(adj, weight.to(dtype), dtype)


def _kipf(adj: Adjacency, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    normalized: Tensor = gcn_norm(adj.edge_index, weight, adj.num_rows, add_self_loops=False, dtype=dtype)[1]
    return normalized


def row_weights(adj: Adjacency, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Weights of the entries ``(E,)`` over their row's sum; those of all are 1 if None are given."""
    if weight is None:
        return adj.known((row_weights, dtype), lambda: row_normalize(torch.ones_like(adj.row, dtype=dtype), adj))
    return row_normalize(weight.to(dtype), adj)


class GCNLayer(FlatConv):
    r"""One layer :math:`\tilde D^{-1/2} (A + I) \tilde D^{-1/2} X W + b`, without its activation.

    With rows normalised it is :math:`\tilde D^{-1} (A + I) X W + b`.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width of the output.
        bias: add b.
        normalization: ``symmetric`` or ``rows``.
        **common: arguments of every :class:`FlatConv`, whose shapes hold too.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        bias: bool = True,
        normalization: str = "symmetric",
        **common: Any,
    ) -> None:
        super().__init__(in_channels, out_channels, self_loops=True, bias=out_channels if bias else None, **common)
        check_normalization(normalization)
        self.normalization = normalization

    def convolve(self, x: DroppedFeatures, u: Tensor, adj: Adjacency, weight: Tensor | None) -> Tensor:
        """Sum the neighbours under the normalisation."""
        if self.normalization == "symmetric":
            return weighted_sum(u, adj, symmetric_weights(adj, weight, u.dtype))
        return weighted_sum(u, adj, row_weights(adj, weight, u.dtype))

    def extra_repr(self) -> str:
        """Its normalisation."""
        return f"normalization={self.normalization!r}"


class GCN(Network):
    """:class:`GCNLayer` layers with activations in between."""

    conv = GCNLayer
    layer_settings = (*Network.layer_settings, "normalization")
    hyperbolic = False
