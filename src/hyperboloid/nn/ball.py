r"""What networks on the Poincaré ball share: the convention λ_0 = 2 of the field.

Their layers work on w = log_0(p), the ball's own tangent coordinates. Because λ_0 = 2, normal coordinates are 2w, and

.. math::  d_\beta(2w, 2w') = 2\, d_{\beta/4}(w, w'), \qquad \mathrm{mean}_\beta(2w) = 2\, \mathrm{mean}_{\beta/4}(w):

in w the ball of β is the hyperboloid of β/4, seen at half its size. Features enter as w, so the same features lie twice
as far from the origin as on the hyperboloid, and an activation that is not homogeneous (ELU, tanh) acts at half the
size; with ReLU, LeakyReLU and no bias the two conventions give the same network on scaled features (Theorem 4.3).
"""

from __future__ import annotations

from torch import Tensor

from .encoder import Network
from .features import Features
from .graph_input import GraphInput


class BallNetwork(Network):
    """A network whose layers take and give w = log_0(p); the output is in normal coordinates, as everywhere else."""

    def forward(self, x: Features, edge_index: GraphInput, edge_weight: Tensor | None = None) -> Tensor:
        """Normal coordinates of the nodes ``(N, out_channels)``; for arguments see the layers."""
        return 2 * super().forward(x, edge_index, edge_weight)

    def _enter(self, x: Features) -> Features:
        v = super()._enter(x)
        if self.input_beta is None:
            return v
        assert isinstance(v, Tensor)
        return v / 2  # points of a hyperboloid come in normal coordinates
