"""Hyperbolic neural network (Ganea et al., NeurIPS '18): features alone, without the graph, in hyperbolic space."""

from __future__ import annotations

from torch import Tensor, nn

from hyperboloid.geometry import Curvature

from .conv import check_probabilities
from .encoder import Network
from .features import Features, drop_features
from .graph_input import GraphInput
from .linear import GyroLinear


class HNNLayer(nn.Module):
    r"""One layer :math:`(W \otimes v) \oplus b`, without its activation: HGCN's transformation and no aggregation.

    It is called like a convolution, ignores the graph, and takes and gives normal coordinates of the hyperboloid.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width of the output.
        beta: curvature −1/β of this layer to start from.
        train_beta: learn β.
        bias: translate by b.
        dropout: probability of dropping an input feature.
        drop_connect: probability of dropping an entry of W.

    Shapes:
        - input: nodes ``(N, in_channels)``, sparse :class:`SparseFeatures`, or None for one-hot features
        - output: ``(N, out_channels)``
    """

    per_model = ("dropout",)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        beta: float = 1.0,
        train_beta: bool = True,
        bias: bool = True,
        dropout: float = 0.0,
        drop_connect: float = 0.0,
    ) -> None:
        super().__init__()
        check_probabilities(dropout=dropout, drop_connect=drop_connect)
        self.dropout = dropout
        self.curvature = Curvature(beta, trainable=train_beta)
        self.lin = GyroLinear(in_channels, out_channels, bias=bias, drop_connect=drop_connect)

    def reset_parameters(self) -> None:
        """Start again: Xavier weights, zero bias, the β asked for."""
        self.curvature.reset_parameters()
        self.lin.reset_parameters()

    def forward(self, x: Features, edge_index: GraphInput, edge_weight: Tensor | None = None) -> Tensor:
        """Transform each node by itself; see the class for shapes."""
        out: Tensor = self.lin(drop_features(x, self.dropout, self.training), self.curvature())
        return out


class HNN(Network):
    """:class:`HNNLayer` layers with activations in between."""

    conv = HNNLayer
