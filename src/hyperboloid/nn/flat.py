"""PyG's own convolutions as layers of our networks: the linear map goes first and is ours, the rest is PyG's.

Convolution and linear map commute, so this changes no value. It lets one-hot and sparse features, DropConnect and the
reproducible random masks work for Euclidean networks exactly as they do for hyperbolic ones.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from hyperboloid.errors import InputError
from hyperboloid.kernels import Adjacency

from .conv import check_probabilities
from .features import Features, drop_features
from .graph_input import GraphInput, resolve_graph
from .linear import TangentLinear


class Through(nn.Identity):
    """Stands in for a linear map that has been applied already."""

    def reset_parameters(self) -> None:
        """Nothing to reset."""


def refuse_weights(weight: Tensor | None, name: str) -> None:
    """Refuse edge weights where a convolution would ignore them; a sparse matrix of ones says nothing."""
    if weight is not None and bool((weight != 1).any()):
        raise InputError(f"{name} has no place for edge weights: leave them out, or choose another model.")


class PyGLayer(nn.Module):
    """A linear map, then a PyG convolution without its own.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width of the output.
        conv: the convolution, its linear map replaced by :class:`Through`.
        self_loops: let every node be its own neighbour.
        dropout: probability of dropping an input feature.
        drop_connect: probability of dropping an entry of the linear map.

    Shapes:
        - input: nodes ``(N, in_channels)``, sparse :class:`SparseFeatures`, or None for one-hot features; the graph as
          edge index ``(2, E)``, ``EdgeIndex``, torch.sparse ``adj_t`` or :class:`Adjacency`; edge weights ``(E,)``
        - output: ``(N, out_channels)``
    """

    per_model = ("dropout",)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        conv: MessagePassing,
        *,
        self_loops: bool,
        dropout: float = 0.0,
        drop_connect: float = 0.0,
    ) -> None:
        super().__init__()
        check_probabilities(dropout=dropout, drop_connect=drop_connect)
        self.lin = TangentLinear(in_channels, out_channels, bias=False, drop_connect=drop_connect)
        self.conv = conv
        self.self_loops = self_loops
        self.dropout = dropout

    def reset_parameters(self) -> None:
        """Start again."""
        for part in self.children():
            part.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Features, edge_index: GraphInput, edge_weight: Tensor | None = None) -> Tensor:
        """Convolve; see the class for shapes."""
        return self.convolve(*self.prepare(x, edge_index, edge_weight))

    def prepare(
        self, x: Features, edge_index: GraphInput, edge_weight: Tensor | None
    ) -> tuple[Features, Tensor, Adjacency, Tensor | None]:
        """What the convolution works on: the nodes, the transformed nodes, the graph and its weights."""
        x = drop_features(x, self.dropout, self.training)
        u: Tensor = self.lin(x)
        adj, weight = resolve_graph(edge_index, edge_weight, (u.size(0), u.size(0)), self_loops=self.self_loops)
        return x, u, adj, weight

    def convolve(self, x: Features, u: Tensor, adj: Adjacency, weight: Tensor | None) -> Tensor:
        """Output of the convolution for transformed nodes ``u`` ``(N, out_channels)``."""
        out: Tensor = self.conv(u, adj.edge_index, weight)
        return out
