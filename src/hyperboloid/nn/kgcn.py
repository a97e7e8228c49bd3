"""κ-GCN (Bachmann et al., ICML '20) in its hyperbolic setting, on the Poincaré ball."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from hyperboloid.errors import InputError
from hyperboloid.kernels import Adjacency, row_sum

from .ball import BallNetwork
from .conv import HyperbolicConv, check_probabilities
from .features import DroppedFeatures
from .gcn import check_normalization, symmetric_weights
from .linear import TangentLinear


class KGCNConv(HyperbolicConv):
    r"""One κ-GCN layer, without its activation, in the ball's tangent coordinates w = log_0(p).

    .. math::
        p_j &= W \otimes x_j, \qquad \hat A = \tilde D^{-1/2} (A + I) \tilde D^{-1/2} \\
        x_i' &= \Big(\sum_j \hat A_{ij}\Big) \otimes \mathrm{midpoint}_j(p_j;\ \hat A_{ij})

    The Möbius gyromidpoint is the Lorentz centroid seen on the ball, so it is computed as such; s ⊗ p multiplies
    log_0(p) by s. As β grows this becomes Kipf's GCN. With rows normalised, Â_ij = w_ij / Σ_k w_ik, nothing is left but
    the midpoint (for when see :mod:`hyperboloid.nn.gcn`). The bias, in the tangent space of the origin and before the
    aggregation, is not in the paper. For the convention of the ball see :mod:`hyperboloid.nn.ball`.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width d of the output.
        bias: add b.
        drop_connect: probability of dropping an entry of W.
        normalization: ``symmetric`` or ``rows``.
        **common: arguments of every :class:`HyperbolicConv`, whose shapes hold too; bipartite graphs need ``rows``.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        bias: bool = True,
        drop_connect: float = 0.0,
        normalization: str = "symmetric",
        **common: Any,
    ) -> None:
        super().__init__(in_channels, out_channels, mean="centroid", **common)
        check_probabilities(drop_connect=drop_connect)
        check_normalization(normalization)
        self.normalization = normalization
        self.lin = TangentLinear(in_channels, out_channels, bias=bias, drop_connect=drop_connect)

    def transform(self, x: DroppedFeatures, beta: Tensor) -> Tensor:
        """W ⊗ x."""
        out: Tensor = self.lin(x)
        return out

    def aggregate(self, target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
        """Midpoints under the normalisation, stretched by its row sums."""
        if self.normalization == "rows":  # which a midpoint does not see
            return super().aggregate(target, u, adj, beta / 4, weight)
        if target is not u:
            raise InputError("κ-GCN's symmetric normalisation needs one kind of nodes, not a bipartite graph.")
        normalized = symmetric_weights(adj, weight, u.dtype)
        midpoint = super().aggregate(target, u, adj, beta / 4, normalized)
        return row_sum(normalized, adj).unsqueeze(-1) * midpoint

    def extra_repr(self) -> str:
        """What distinguishes this layer beyond its parts."""
        return f"{super().extra_repr()}, normalization={self.normalization!r}"


class KGCN(BallNetwork):
    """The κ-GCN: :class:`KGCNConv` layers with activations in between."""

    conv = KGCNConv
    layer_settings = ("bias", "dropout", "att_dropout", "drop_connect", "normalization")
