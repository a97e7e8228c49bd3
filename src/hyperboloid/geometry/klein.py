"""The Klein (projective) ball: geodesics are straight lines, and means are weighted averages."""

from __future__ import annotations

import torch
from torch import Tensor

from .curvature import BetaLike, beta_tensor
from .normal import NormalCoordinates
from .numerics import from_boundary, inside, polar
from .precision import in_single


@in_single
class Klein:
    """The ball of radius √β, image of H^{d,β} under :meth:`Lorentz.to_klein`; curvature −1/β.

    Args:
        beta: a float, a tensor (a scalar) or a :class:`Curvature`.
    """

    def __init__(self, beta: BetaLike = 1.0) -> None:
        self._beta = beta
        #: the same space in normal coordinates
        self.normal = NormalCoordinates(beta)

    def from_normal(self, v: Tensor) -> Tensor:
        """√β tanh(‖v‖/√β) v/‖v‖ ``(…, d)``."""
        root = beta_tensor(self._beta, v).sqrt()
        length, direction = polar(v)
        return (root * torch.tanh(length / root)).unsqueeze(-1) * direction

    def to_normal(self, k: Tensor) -> Tensor:
        """Normal coordinates of a point ``(…, d)``."""
        root = beta_tensor(self._beta, k).sqrt()
        length, direction = polar(k)
        return (root * torch.atanh(inside(length / root))).unsqueeze(-1) * direction

    def dist(self, k: Tensor, j: Tensor) -> Tensor:
        """Intrinsic distance ``(…)``."""
        return self.normal.dist(self.to_normal(k), self.to_normal(j))

    def midpoint(self, k: Tensor, weight: Tensor | None = None) -> Tensor:
        """Einstein midpoint Σ w γ k / Σ w γ with γ = 1/√(1 − ‖k‖²/β), ``(…, m, d)`` to ``(…, d)``."""
        gamma = from_boundary(k.square().sum(-1) / beta_tensor(self._beta, k)).rsqrt()
        weight = gamma if weight is None else weight * gamma
        return (weight.unsqueeze(-1) * k).sum(-2) / weight.sum(-1, keepdim=True)
