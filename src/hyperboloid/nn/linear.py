"""Linear maps on normal coordinates, with DropConnect, and with a bias that is a translation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hyperboloid.geometry import Lorentz
from hyperboloid.kernels import DroppedRows, dropout, linear

from .features import DroppedFeatures, DroppedOneHot, SparseFeatures


class TangentLinear(nn.Module):
    r"""Lorentzian matrix-vector product :math:`W \otimes x` (Eq. 13): in normal coordinates just ``v Wᵀ + b``.

    The bias is not in the paper; it is what its published code adds in the tangent space of the origin.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width of the output.
        bias: add b.
        gain: scale of the Xavier-uniform start.
        drop_connect: probability with which single weights are dropped during training (Wan et al. 2013).
    """

    per_model = ("drop_connect",)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        bias: bool = True,
        gain: float = 1.0,
        drop_connect: float = 0.0,
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.gain = gain
        self.drop_connect = drop_connect
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier-uniform weights, zero bias."""
        nn.init.xavier_uniform_(self.weight, gain=self.gain)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: DroppedFeatures) -> Tensor:
        """Map ``(N, in_channels)`` to ``(N, out_channels)``; ``x = None`` stands for one-hot features, a lookup."""
        weight = dropout(self.weight, self.drop_connect, self.training)
        if x is None:
            out = weight.t()
        elif isinstance(x, (SparseFeatures, DroppedOneHot, DroppedRows)):
            out = x.matmul(weight.t())
        else:
            return linear(x, weight, self.bias)
        return out if self.bias is None else out + self.bias

    def extra_repr(self) -> str:
        """Widths."""
        return f"{self.in_channels}, {self.out_channels}, bias={self.bias is not None}"


class GyroLinear(nn.Module):
    r"""HNN's and HGCN's linear layer :math:`(W \otimes x) \oplus b`: the bias moves points along the manifold.

    x ⊕ b = exp_x(P_{0→x} b): b is carried from the tangent space of the origin to that of x. On flat space it is the
    usual bias; :class:`TangentLinear` adds b before the map to the manifold instead.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width of the output.
        bias: translate by b.
        drop_connect: probability with which single weights are dropped during training.
    """

    def __init__(self, in_channels: int, out_channels: int, *, bias: bool = True, drop_connect: float = 0.0) -> None:
        super().__init__()
        self.lin = TangentLinear(in_channels, out_channels, bias=False, drop_connect=drop_connect)
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier-uniform weights, zero bias."""
        self.lin.reset_parameters()
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: DroppedFeatures, beta: Tensor) -> Tensor:
        """Normal coordinates ``(N, out_channels)`` on the hyperboloid of β; ``x`` as for :class:`TangentLinear`."""
        u: Tensor = self.lin(x)
        return u if self.bias is None else Lorentz(beta).normal.exp_at(u, self.bias)
