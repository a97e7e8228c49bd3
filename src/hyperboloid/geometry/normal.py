"""Hyperbolic space in normal coordinates: a point x is written v = log_0(x), a plain vector of R^d.

Everything here is a function of vectors ``(…, d)`` and β, in forms that do not cancel (docs/mathematics.md).
"""

from __future__ import annotations

import torch
from torch import Tensor

from .centroid import centroid, widen
from .chord import chord, square_by_kernel
from .curvature import BetaLike, beta_tensor, check_beta
from .frechet import LogarithmView, frechet_mean
from .gyro import gyro_sum
from .numerics import arc, asinh, max_chord, scaled_norm, tiny
from .precision import in_single
from .rows import has_kernel


def log0_of_space(space: Tensor, root: Tensor) -> Tensor:
    """Normal coordinates of the point whose space part is ``space`` ``(…, d)``: √β arsinh(‖s‖/√β) s/‖s‖."""
    length = scaled_norm(space).clamp_min(tiny(space.dtype)).unsqueeze(-1)
    return root * asinh(length / root) * (space / length)


@in_single
class NormalCoordinates:
    """The hyperboloid H^{d,β} seen from its origin; made by :attr:`Lorentz.normal`.

    Args:
        beta: a float, a tensor or a :class:`Curvature`.
    """

    def __init__(self, beta: BetaLike) -> None:
        check_beta(beta)
        self._beta = beta

    def dist(self, u: Tensor, v: Tensor) -> Tensor:
        """Intrinsic distance d_H (Eq. 7), as 2√β arsinh(d_L/(2√β)) ``(…)``; subgradient 0 at u = v."""
        beta = beta_tensor(self._beta, u)
        return arc(chord(u, v, beta), 2 * beta.sqrt())

    def sqdist(self, u: Tensor, v: Tensor) -> Tensor:
        """d_H² ``(…)``."""
        if has_kernel("sqdist", u):
            return square_by_kernel(u, v, beta_tensor(self._beta, u))
        return self.dist(u, v).square()

    def lorentz_sqdist(self, u: Tensor, v: Tensor) -> Tensor:
        """Squared Lorentzian distance −2β − 2⟨x, y⟩_L (Eq. 17) ``(…)``.

        It grows like e^(r_u + r_v): where its square root passes 1e15 (1e140 in float64) it stays there, gradient 0.
        """
        return chord(u, v, beta_tensor(self._beta, u)).clamp(max=max_chord(u.dtype)).square()

    def centroid(self, u: Tensor, weight: Tensor | None = None) -> Tensor:
        """Centroid (Eq. 16) of the m points of each batch, ``(…, m, d)`` to ``(…, d)``.

        Args:
            u: normal coordinates ``(…, m, d)``.
            weight: non-negative ``(…, m)``; None for equal weights. Only ratios matter.
        """
        if weight is None:
            weight = torch.ones_like(u[..., 0])
        beta = beta_tensor(self._beta, u)
        return centroid(u, weight, beta, lambda t: t.sum(-2, keepdim=True), lambda t: t).squeeze(-2)

    def frechet(self, u: Tensor, weight: Tensor | None = None) -> Tensor:
        """Fréchet mean of the m points of each batch, ``(…, m, d)`` to ``(…, d)``; see `geometry/frechet.py`.

        Args:
            u: normal coordinates ``(…, m, d)``.
            weight: non-negative ``(…, m)``; None for equal weights. Only ratios matter.
        """
        if weight is None:
            weight = torch.ones_like(u[..., 0])
        dtype = u.dtype
        u, weight, beta = widen(u, weight, beta_tensor(self._beta, u))
        share = weight.detach().sum(-1, keepdim=True)
        weight = weight / torch.where(share > 0, share, 1)
        space, root = NormalCoordinates(beta), beta.sqrt()

        def total(t: Tensor) -> Tensor:
            return t.sum(-2, keepdim=True)

        def view(mean: Tensor) -> LogarithmView:
            return LogarithmView(space.log_at(mean, u), weight, root, total, lambda t: t)

        start = space.centroid(u, weight).detach().unsqueeze(-2)
        mean = frechet_mean(start, root, space.exp_at, view, lambda mean: view(mean).pull)
        return mean.squeeze(-2).to(dtype)

    def log_at(self, u: Tensor, v: Tensor) -> Tensor:
        """log_x(y) for x = exp_0(u), y = exp_0(v), carried to the origin along the geodesic ``(…, d)``.

        This is the gyrovector difference ⊖u ⊕ v; see `geometry/gyro.py`.
        """
        return gyro_sum(-u, v, beta_tensor(self._beta, u))

    def exp_at(self, u: Tensor, t: Tensor) -> Tensor:
        """Normal coordinates of exp_x(t) for x = exp_0(u) and t a tangent vector carried to the origin ``(…, d)``.

        The inverse of :meth:`log_at`, u ⊕ t.
        """
        return gyro_sum(u, t, beta_tensor(self._beta, u))
