"""The Poincaré ball in the usual convention of the field (Ganea et al., geoopt): radius √β, λ_0 = 2."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .curvature import BetaLike, beta_tensor
from .normal import NormalCoordinates
from .numerics import from_boundary, inside, polar
from .precision import in_single


@in_single
class PoincareBall:
    r"""D^{d,α} = {p : α‖p‖² < 1} with α = 1/β, the image of H^{d,β} under :meth:`Lorentz.to_poincare`.

    Because λ_0 = 2 here, normal coordinates are *twice* :meth:`log0`. Maps that commute with that factor (matrices,
    ReLU, LeakyReLU) agree with the hyperboloid's; ELU or tanh do not (the condition in Theorem 4.3).

    Args:
        beta: a float, a tensor (a scalar) or a :class:`Curvature`; the curvature is −1/β.
    """

    def __init__(self, beta: BetaLike = 1.0) -> None:
        self._beta = beta
        #: the same space in normal coordinates
        self.normal = NormalCoordinates(beta)

    def _root(self, like: Tensor) -> Tensor:
        return beta_tensor(self._beta, like).sqrt()

    def exp0(self, w: Tensor) -> Tensor:
        """√β tanh(‖w‖/√β) w/‖w‖ (Eq. 23) ``(…, d)``."""
        root = self._root(w)
        length, direction = polar(w)
        return (root * torch.tanh(length / root)).unsqueeze(-1) * direction

    def log0(self, p: Tensor) -> Tensor:
        """Inverse of :meth:`exp0` (Eq. 24) ``(…, d)``."""
        root = self._root(p)
        length, direction = polar(p)
        return (root * torch.atanh(inside(length / root))).unsqueeze(-1) * direction

    def from_normal(self, v: Tensor) -> Tensor:
        """The point with normal coordinates v ``(…, d)``."""
        return self.exp0(v / 2)

    def to_normal(self, p: Tensor) -> Tensor:
        """Normal coordinates of a point ``(…, d)``."""
        return 2 * self.log0(p)

    def dist(self, p: Tensor, q: Tensor) -> Tensor:
        """Intrinsic distance ``(…)``."""
        return self.normal.dist(self.to_normal(p), self.to_normal(q))

    def sqdist(self, p: Tensor, q: Tensor) -> Tensor:
        """Squared intrinsic distance ``(…)``."""
        return self.dist(p, q).square()

    def add(self, p: Tensor, q: Tensor) -> Tensor:
        """Möbius addition p ⊕ q ``(…, d)``."""
        alpha = 1 / beta_tensor(self._beta, p)
        pq = alpha * (p * q).sum(-1, keepdim=True)
        pp = alpha * p.square().sum(-1, keepdim=True)
        qq = alpha * q.square().sum(-1, keepdim=True)
        return ((1 + 2 * pq + qq) * p + (1 - pp) * q) / (1 + 2 * pq + pp * qq)

    def pointwise(self, f: Callable[[Tensor], Tensor], p: Tensor) -> Tensor:
        """Möbius version exp_0(f(log_0 p)) of a map on R^d."""
        return self.exp0(f(self.log0(p)))

    def matvec(self, matrix: Tensor, p: Tensor) -> Tensor:
        """Möbius matrix-vector product, ``(…, d)`` to ``(…, m)``."""
        return self.pointwise(lambda w: w @ matrix.mT, p)

    def midpoint(self, p: Tensor, weight: Tensor | None = None) -> Tensor:
        """Gyromidpoint ½ ⊗ (Σ w λ p / Σ w (λ − 1)) with λ = 2/(1 − α‖p‖²), ``(…, m, d)`` to ``(…, d)``."""
        if weight is None:
            weight = torch.ones_like(p[..., 0])
        conformal = 2 / from_boundary(p.square().sum(-1) / beta_tensor(self._beta, p))
        top = ((weight * conformal).unsqueeze(-1) * p).sum(-2)
        bottom = (weight * (conformal - 1)).sum(-1, keepdim=True)
        return self.exp0(self.log0(top / bottom) / 2)
