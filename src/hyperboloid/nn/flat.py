"""What Euclidean layers share: the linear map goes first, then comes the sum over neighbours.

The two commute, so this changes no value. One-hot and sparse features, DropConnect and the reproducible random masks
work for Euclidean networks as they do for hyperbolic ones, and a batch of models writes no message of any edge.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from hyperboloid.errors import InputError
from hyperboloid.kernels import Adjacency

from .conv import check_probabilities
from .features import DroppedFeatures, Features, drop_features
from .graph_input import GraphInput, resolve_graph
from .linear import TangentLinear


def refuse_weights(weight: Tensor | None, name: str) -> None:
    """Refuse edge weights where a convolution would ignore them; a sparse matrix of ones says nothing."""
    if weight is not None and bool((weight != 1).any()):
        raise InputError(f"{name} has no place for edge weights: leave them out, or choose another model.")


class FlatConv(nn.Module):
    """A linear map, then a convolution.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        transformed: width of the transformed nodes.
        self_loops: let every node be its own neighbour.
        bias: width of the bias that is added in the end; None for none.
        dropout: probability of dropping an input feature.
        drop_connect: probability of dropping an entry of the linear map.

    Shapes:
        - input: nodes ``(N, in_channels)``, sparse :class:`SparseFeatures`, or None for one-hot features; the graph as
          edge index ``(2, E)``, ``EdgeIndex``, torch.sparse ``adj_t`` or :class:`Adjacency`; edge weights ``(E,)``
        - output: ``(N, …)``, as wide as the subclass says
    """

    per_model: ClassVar[tuple[str, ...]] = ("dropout",)

    def __init__(
        self,
        in_channels: int,
        transformed: int,
        *,
        self_loops: bool,
        bias: int | None,
        dropout: float = 0.0,
        drop_connect: float = 0.0,
    ) -> None:
        super().__init__()
        check_probabilities(dropout=dropout, drop_connect=drop_connect)
        self.lin = TangentLinear(in_channels, transformed, bias=False, drop_connect=drop_connect)
        self.bias = None if bias is None else nn.Parameter(torch.zeros(bias))
        self.self_loops = self_loops
        self.dropout = dropout

    def reset_parameters(self) -> None:
        """Start again."""
        for part in self.children():
            part.reset_parameters()  # type: ignore[operator]
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Features, edge_index: GraphInput, edge_weight: Tensor | None = None) -> Tensor:
        """Convolve; see the class for shapes."""
        return self.shifted(self.convolve(*self.prepare(x, edge_index, edge_weight)))

    def prepare(
        self, x: Features, edge_index: GraphInput, edge_weight: Tensor | None
    ) -> tuple[DroppedFeatures, Tensor, Adjacency, Tensor | None]:
        """What the convolution works on: the nodes, the transformed nodes, the graph and its weights."""
        left = drop_features(x, self.dropout, self.training, self.lin.weight, self.lin.in_channels)
        u: Tensor = self.lin(left)
        adj, weight = resolve_graph(edge_index, edge_weight, (u.size(0), u.size(0)), self_loops=self.self_loops)
        return left, u, adj, weight

    def convolve(self, x: DroppedFeatures, u: Tensor, adj: Adjacency, weight: Tensor | None) -> Tensor:
        """Output of the convolution for transformed nodes ``u`` ``(N, transformed)``."""
        raise NotImplementedError

    def shifted(self, out: Tensor) -> Tensor:
        """Add the bias."""
        return out if self.bias is None else out + self.bias
