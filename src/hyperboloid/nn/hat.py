"""Hyperbolic graph attention network (Zhang et al., IEEE Trans. Big Data '21) on the Poincaré ball."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from hyperboloid.geometry import Lorentz
from hyperboloid.kernels import Adjacency, pair_sqdist, row_softmax, weighted_sum

from .ball import BallNetwork
from .conv import HyperbolicConv, check_probabilities
from .features import DroppedFeatures
from .linear import TangentLinear


class HATConv(HyperbolicConv):
    r"""One HAT layer, without its activation, in the ball's tangent coordinates w = log_0(p).

    .. math::
        p_j &= W \otimes x_j, \qquad \alpha_{ij} = \mathrm{softmax}_j\big(-d(p_i, p_j)\big) \\
        x_i' &= \exp_0\Big(\sum_{j \in N(i) \cup \{i\}} \alpha_{ij} \log_0(p_j) + b\Big)

    with :math:`d(p, q) = 2\sqrt\beta\, \mathrm{artanh}(\|{-p} \oplus q\|/\sqrt\beta)`. The published code's Möbius
    addition ⊕ is wrong unless d = 2; here the distance is computed from w, where nothing is added. The sum in the
    tangent space of the origin is the paper's fast form of ⊕_j α_ij ⊗ p_j, which would depend on the order of the
    neighbours. For the convention of the ball see :mod:`hyperboloid.nn.ball`.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width d of the output.
        bias: add b.
        drop_connect: probability of dropping an entry of W.
        **common: arguments of every :class:`HyperbolicConv`, whose shapes hold too.
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, bias: bool = True, drop_connect: float = 0.0, **common: Any
    ) -> None:
        super().__init__(in_channels, out_channels, mean="origin", **common)
        check_probabilities(drop_connect=drop_connect)
        self.lin = TangentLinear(in_channels, out_channels, bias=False, drop_connect=drop_connect)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None

    def reset_parameters(self) -> None:
        """Start again: Xavier weights, zero bias, the β asked for."""
        super().reset_parameters()
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    @property
    def attends(self) -> bool:
        """Always."""
        return True

    def transform(self, x: DroppedFeatures, beta: Tensor) -> Tensor:
        """W ⊗ x."""
        out: Tensor = self.lin(x)
        return out

    def weights(self, target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, keep: Tensor | None) -> Tensor:
        """Attention by intrinsic distance."""
        if target is u:
            pairs, which = adj.unordered
            score = _score(pair_sqdist(u, pairs, beta / 4)).index_select(0, which)
        else:
            ends = target.index_select(0, adj.row), u.index_select(0, adj.col)
            score = _score(Lorentz(beta / 4).normal.sqdist(*ends))
        return row_softmax(score, adj, keep)

    def aggregate(self, target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
        """Mean in the tangent space of the origin, and b."""
        return self._shifted(super().aggregate(target, u, adj, beta, weight))

    def attend(
        self, target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, keep: Tensor | None, given: Tensor | None
    ) -> Tensor:
        """The same by attention, whose weights sum to 1 already unless others are multiplied in."""
        if given is not None:
            return super().attend(target, u, adj, beta, keep, given)
        return self._shifted(weighted_sum(u, adj, self.weights(target, u, adj, beta, keep)))

    def _shifted(self, out: Tensor) -> Tensor:
        return out if self.bias is None else out + self.bias


def _score(square: Tensor) -> Tensor:
    """−d from the square of d/2, of a node to itself without a gradient."""
    return -2 * square.clamp_min(torch.finfo(square.dtype).tiny).sqrt()


class HAT(BallNetwork):
    """The hyperbolic graph attention network: :class:`HATConv` layers with activations in between."""

    conv = HATConv
    layer_settings = ("bias", "dropout", "att_dropout", "drop_connect")
