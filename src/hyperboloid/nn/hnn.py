"""Hyperbolic neural network (Ganea et al., NeurIPS '18): features alone, without the graph, in hyperbolic space."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from hyperboloid.geometry import Curvature

from .encoder import Network
from .features import DroppedFeatures
from .linear import GyroLinear
from .mlp import LinearLayer


class HNNLayer(LinearLayer):
    r"""One layer :math:`(W \otimes v) \oplus b`, without its activation: HGCN's transformation and no aggregation.

    It is called like a convolution, ignores the graph, and takes and gives normal coordinates of the hyperboloid.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width of the output.
        beta: curvature −1/β of this layer to start from.
        train_beta: learn β.
        **common: arguments of :class:`LinearLayer`, whose shapes hold too.
    """

    linear = GyroLinear

    def __init__(
        self, in_channels: int, out_channels: int, *, beta: float = 1.0, train_beta: bool = True, **common: Any
    ) -> None:
        super().__init__(in_channels, out_channels, **common)
        self.curvature = Curvature(beta, trainable=train_beta)

    def transform(self, x: DroppedFeatures) -> Tensor:
        """(W ⊗ v) ⊕ b."""
        out: Tensor = self.lin(x, self.curvature())
        return out


class HNN(Network):
    """:class:`HNNLayer` layers with activations in between."""

    conv = HNNLayer
