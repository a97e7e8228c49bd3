"""Multi-layer perceptron: what the features alone can do, without the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor, nn

from .conv import check_probabilities
from .encoder import Network
from .features import DroppedFeatures, Features, drop_features
from .graph_input import GraphInput
from .linear import TangentLinear


class LinearLayer(nn.Module):
    r"""One layer :math:`v' = W v + b`, without its activation; it is called like a convolution and ignores the graph.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width of the output.
        bias: add b.
        dropout: probability of dropping an input feature.
        drop_connect: probability of dropping an entry of W.

    Shapes:
        - input: nodes ``(N, in_channels)``, sparse :class:`SparseFeatures`, or None for one-hot features
        - output: ``(N, out_channels)``
    """

    per_model = ("dropout",)
    #: the linear map
    linear: ClassVar[Callable[..., nn.Module]] = TangentLinear

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        drop_connect: float = 0.0,
    ) -> None:
        super().__init__()
        check_probabilities(dropout=dropout, drop_connect=drop_connect)
        self.in_channels = in_channels
        self.dropout = dropout
        self.lin = type(self).linear(in_channels, out_channels, bias=bias, drop_connect=drop_connect)

    def reset_parameters(self) -> None:
        """Start again: initial weights, zero bias, the β asked for where there is one."""
        for part in self.children():
            part.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Features, edge_index: GraphInput, edge_weight: Tensor | None = None) -> Tensor:
        """Transform each node by itself; see the class for shapes."""
        like = next(self.parameters())
        return self.transform(drop_features(x, self.dropout, self.training, like, self.in_channels))

    def transform(self, x: DroppedFeatures) -> Tensor:
        """W v + b."""
        out: Tensor = self.lin(x)
        return out


class MLP(Network):
    """:class:`LinearLayer` layers with activations in between."""

    conv = LinearLayer
    hyperbolic = False
