"""Hyperbolic graph convolution (Chami et al., NeurIPS '19) on the hyperboloid."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from hyperboloid.kernels import Adjacency, additive_attention

from .conv import HyperbolicConv, check_probabilities
from .encoder import Network
from .features import DroppedFeatures
from .linear import GyroLinear


class PairAttention(nn.Module):
    r"""HGCN's attention on tangent vectors of the origin, :math:`\mathrm{softmax}_j\,\rho(a^\top [u_i \| u_j])`.

    A linear score alone would say the same of a neighbour to every node, because softmax drops what depends on i
    only; ρ is the LeakyReLU of GAT. (The published code has a sigmoid instead, and no softmax.)

    Args:
        channels: width of the nodes' features.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(2, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier-uniform."""
        nn.init.xavier_uniform_(self.weight)

    def forward(self, target: Tensor, u: Tensor, adj: Adjacency, keep: Tensor | None) -> Tensor:
        """Weights ``(E,)`` of each row's kept neighbours."""
        return additive_attention(target @ self.weight[0], u @ self.weight[1], adj, slope=0.2, keep=keep)


class HGCNConv(HyperbolicConv):
    r"""One HGCN layer, without its activation, in normal coordinates.

    .. math::
        u &= (W \otimes v) \oplus b                                                    & \text{(Eq. 8)} \\
        v_i' &= \exp_{u_i}\Big(\sum_{j \in N(i) \cup \{i\}} w_{ij} \log_{u_i}(u_j)\Big)  & \text{(Eq. 9)}

    with equal weights, or attention. Every node aggregates in its own tangent space, all of them in one sparse pass.
    ``mean="origin"`` aggregates in the tangent space of the origin, as the published code does by default, and
    ``mean="centroid"`` makes it the paper's HGCN_c. Taken literally, Eq. 8 multiplies all d + 1 coordinates and leaves
    the hyperboloid; here, as in the published code, W acts on the tangent space of the origin.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width d of the output.
        attention: learn the weights.
        mean: how neighbours are averaged, a name from :mod:`hyperboloid.nn.means`.
        bias: translate by b.
        drop_connect: probability of dropping an entry of W.
        **common: arguments of every :class:`HyperbolicConv`, whose shapes hold too.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        attention: bool = False,
        mean: str = "tangent",
        bias: bool = True,
        drop_connect: float = 0.0,
        **common: Any,
    ) -> None:
        super().__init__(in_channels, out_channels, mean=mean, **common)
        check_probabilities(drop_connect=drop_connect)
        self.lin = GyroLinear(in_channels, out_channels, bias=bias, drop_connect=drop_connect)
        self.att = PairAttention(out_channels) if attention else None

    @property
    def attends(self) -> bool:
        """Whether it was given attention."""
        return self.att is not None

    def transform(self, x: DroppedFeatures, beta: Tensor) -> Tensor:
        """(W ⊗ v) ⊕ b (Eq. 8)."""
        out: Tensor = self.lin(x, beta)
        return out

    def weights(self, target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, keep: Tensor | None) -> Tensor:
        """Equal weights, or attention."""
        if self.att is None:
            return super().weights(target, u, adj, beta, keep)
        out: Tensor = self.att(target, u, adj, keep)
        return out


class HGCN(Network):
    """The hyperbolic graph convolutional network: :class:`HGCNConv` layers with activations in between."""

    conv = HGCNConv
    layer_settings = ("attention", "mean", "bias", "dropout", "att_dropout", "drop_connect")
