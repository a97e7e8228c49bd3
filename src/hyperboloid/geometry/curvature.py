"""The curvature of a hyperboloid as a constrained, optionally trainable number."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from hyperboloid.errors import InputError

#: β never falls below this: √β stays far from float32's rounding, and radii ‖v‖/√β stay finite.
BETA_MIN = 1e-4


class Curvature(nn.Module):
    r"""β > 0 of the hyperboloid :math:`\langle x, x\rangle_L = -\beta`, whose curvature is :math:`K = -1/\beta`.

    β = BETA_MIN + softplus(raw), and ``raw`` starts at the inverse of that, so asking for 1.0 gives 1.0.
    The optimiser should not decay it: pulling ``raw`` to 0 has no meaning.

    Args:
        beta: the value to start from.
        trainable: False keeps it there.
    """

    def __init__(self, beta: float = 1.0, *, trainable: bool = True) -> None:
        super().__init__()
        if not math.isfinite(beta) or beta <= BETA_MIN:
            raise InputError(f"beta must be a number above {BETA_MIN}, not {beta}: the curvature is -1/beta.")
        self.initial_beta = beta
        self.trainable = trainable
        self.raw = nn.Parameter(torch.empty(()), requires_grad=trainable)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Back to the value asked for."""
        above = self.initial_beta - BETA_MIN
        with torch.no_grad():
            self.raw.fill_(above + math.log(-math.expm1(-above)))

    @property
    def beta(self) -> Tensor:
        """β, a scalar tensor that carries the gradient."""
        return BETA_MIN + nn.functional.softplus(self.raw)

    @property
    def K(self) -> Tensor:
        """The sectional curvature −1/β."""
        return -1 / self.beta

    def forward(self) -> Tensor:
        """The same as :attr:`beta`."""
        return self.beta

    def extra_repr(self) -> str:
        """The value now, and whether it can move."""
        return f"beta={float(self.beta.detach()):.4g}, trainable={self.trainable}"


BetaLike = float | Tensor | Curvature


def check_beta(beta: BetaLike) -> None:
    """Refuse a number that is no β."""
    if isinstance(beta, (int, float)) and not beta > 0:
        raise InputError(f"beta must be positive, not {beta}: the curvature is -1/beta.")


def beta_tensor(beta: BetaLike, like: Tensor) -> Tensor:
    """β as a tensor with the dtype and device of ``like``."""
    if isinstance(beta, Curvature):
        beta = beta.beta
    return torch.as_tensor(beta, dtype=like.dtype, device=like.device)
