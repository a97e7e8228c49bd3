"""Lorentzian graph convolution (Zhang et al., WWW '21), section 4 of the paper."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from hyperboloid.kernels import Adjacency, lorentz_aggregate, lorentz_attention

from .conv import HyperbolicConv, check_probabilities
from .encoder import Network
from .features import DroppedFeatures
from .linear import TangentLinear

#: M_att starts this much smaller than Xavier: attention is then near uniform at first and learns from there. At full
#: size softmax(−d_L²) falls onto the self loop as soon as radii grow, and stays there.
ATTENTION_GAIN = 0.01


class LGCNConv(HyperbolicConv):
    r"""One LGCN layer, without its activation.

    In normal coordinates v = log_0(x), where the Lorentzian version of a map is the map itself (Eq. 12):

    .. math::
        u &= v W^\top + b                                                              & \text{(Eq. 14)} \\
        a &= u M_{att}^\top                                                            & \\
        \mu_{ij} &= -d_L^2(\exp_0 a_i, \exp_0 a_j), \quad j \in N(i) \cup \{i\}        & \text{(Eq. 19)} \\
        v_i' &= \log_0 \mathrm{centroid}(\exp_0 u_j;\ e_{ij}\, \mathrm{softmax}_j\,\mu_{ij}) & \text{(Eq. 16, 20)}

    where :math:`e_{ij}` are given edge weights, or 1. Inputs and outputs are normal coordinates, so moving to the
    next layer's curvature (Eq. 11) is the identity and the activation (Eq. 21) is applied as it is. The bias b and the
    small start of :math:`M_{att}` are not in the paper. With ``mean="frechet"`` this is the paper's LGCN_F, with
    ``attention=False`` its LGCN∖att, and with ``mean="tangent"`` besides its LGCN∖att∖c.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width d of the output.
        attention: learn the weights; False aggregates with equal (or the given) weights.
        att_dim: rows of :math:`M_{att}`; ``out_channels`` by default, as in the paper.
        att_cap: larger :math:`d_L^2` count as this one in Eq. 19, so that no neighbour weighs less than e^−cap of the
            nearest. None is the paper's formula; 1 is what the code published with it does.
        mean: how neighbours are averaged, a name from :mod:`hyperboloid.nn.means`.
        bias: add b.
        drop_connect: probability of dropping an entry of W or :math:`M_{att}`.
        **common: arguments of every :class:`HyperbolicConv`, whose shapes hold too.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        attention: bool = True,
        att_dim: int | None = None,
        att_cap: float | None = None,
        mean: str = "centroid",
        bias: bool = True,
        drop_connect: float = 0.0,
        **common: Any,
    ) -> None:
        super().__init__(in_channels, out_channels, mean=mean, **common)
        check_probabilities(drop_connect=drop_connect)
        self.lin = TangentLinear(in_channels, out_channels, bias=bias, drop_connect=drop_connect)
        self.att_cap = att_cap
        self.att: TangentLinear | None = None
        if attention:
            self.att = TangentLinear(
                out_channels,
                out_channels if att_dim is None else att_dim,
                bias=False,
                gain=ATTENTION_GAIN,
                drop_connect=drop_connect,
            )

    @property
    def attends(self) -> bool:
        """Whether it was given attention."""
        return self.att is not None

    def transform(self, x: DroppedFeatures, beta: Tensor) -> Tensor:
        """The Lorentzian matrix-vector product, u = v Wᵀ + b (Eq. 14)."""
        out: Tensor = self.lin(x)
        return out

    def weights(self, target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, keep: Tensor | None) -> Tensor:
        """Attention by squared Lorentzian distance (Eq. 19, 20)."""
        if self.att is None:
            return super().weights(target, u, adj, beta, keep)
        return lorentz_attention(*self._features(target, u), adj, beta, keep=keep, cap=self.att_cap)

    def attend(
        self, target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, keep: Tensor | None, given: Tensor | None
    ) -> Tensor:
        """Attention and centroid in one operation (Eq. 16, 19, 20); other means take the weights first."""
        if self.mean != "centroid":
            return super().attend(target, u, adj, beta, keep, given)
        attention = None if self.att is None else self._features(target, u)
        return lorentz_aggregate(u, adj, beta, given, attention=attention, keep=keep, cap=self.att_cap)

    def _features(self, target: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        """Attention features a = u M_attᵀ of rows and columns."""
        assert self.att is not None
        key: Tensor = self.att(u)
        return (key, key) if target is u else (self.att(target), key)


class LGCN(Network):
    """The Lorentzian graph convolutional network: :class:`LGCNConv` layers with activations in between."""

    conv = LGCNConv
    distances = ("intrinsic", "lorentz")
    layer_settings = ("attention", "att_dim", "att_cap", "mean", "bias", "dropout", "att_dropout", "drop_connect")
