"""Hyperbolic space in normal coordinates: a point x is written v = log_0(x), a plain vector of R^d.

Everything here is a function of vectors ``(…, d)`` and β, in forms that do not cancel (docs/mathematics.md).
"""

from __future__ import annotations

import torch
from torch import Tensor

from .centroid import centroid, widen
from .chord import chord, differences
from .curvature import BetaLike, beta_tensor, check_beta
from .frechet import LogarithmView, frechet_mean
from .numerics import arc, asinh, max_chord, max_radius, polar, scaled_norm, sinhc, tiny


def log0_of_space(space: Tensor, root: Tensor) -> Tensor:
    """Normal coordinates of the point whose space part is ``space`` ``(…, d)``: √β arsinh(‖s‖/√β) s/‖s‖."""
    length = scaled_norm(space).clamp_min(tiny(space.dtype)).unsqueeze(-1)
    return root * asinh(length / root) * (space / length)


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

        This is the gyrovector difference ⊖u ⊕ v, the space part of y after the boost that brings x to the origin:
        z = −[sinh Δr + τ sinh r_v (cosh r_u − 1)] û − sinh r_v Δû with τ = ‖Δû‖²/2 (docs/mathematics.md, 1.4).
        """
        beta = beta_tensor(self._beta, u)
        u, v = torch.broadcast_tensors(u, v)
        root = beta.sqrt()
        r_u = torch.linalg.vector_norm(u, dim=-1) / root
        r_v = torch.linalg.vector_norm(v, dim=-1) / root
        # Directions blow up near the origin, products cancel far from it: each form where it is good.
        near = (torch.minimum(r_u, r_v) < 1).unsqueeze(-1)
        stand_in = root.detach()
        plain = _boost_near(u / root, torch.where(near, v, 0) / root)
        careful = _boost_far(torch.where(near, stand_in, u), torch.where(near, stand_in, v), root)
        return torch.where(near, log0_of_space(root * plain, root), careful)

    def exp_at(self, u: Tensor, t: Tensor) -> Tensor:
        """Normal coordinates of exp_x(t) for x = exp_0(u) and t a tangent vector carried to the origin ``(…, d)``.

        The inverse of :meth:`log_at`. Since u ⊕ t = ⊖(⊖u ⊕ ⊖t), it is −log_at(u, −t).
        """
        return -self.log_at(u, -t)


def _boost_near(u: Tensor, v: Tensor) -> Tensor:
    """Space part of B(−u) exp_0(v) at β = 1: smooth everywhere, exact while u or v is near the origin."""
    cut = max_radius(u.dtype)
    r_u = torch.linalg.vector_norm(u, dim=-1, keepdim=True).clamp(max=cut)
    r_v = torch.linalg.vector_norm(v, dim=-1, keepdim=True).clamp(max=cut)
    space = sinhc(r_v) * v
    # (cosh r − 1)/r² = sinhc(r/2)²/2
    along = sinhc(r_u / 2).square() / 2 * (u * space).sum(-1, keepdim=True)
    return space + (along - sinhc(r_u) * torch.cosh(r_v)) * u


def _boost_far(u: Tensor, v: Tensor, root: Tensor) -> Tensor:
    """⊖u ⊕ v where both lie well away from the origin, (θ/sinh θ) √β z with θ = d_H/√β = arsinh ‖z‖."""
    diff = differences(u, v)
    d_dir = diff.turn / diff.longer.unsqueeze(-1)
    cut = max_radius(u.dtype)
    r_u, r_v = (diff.length / root).clamp(max=cut)
    d_r = (diff.d_n / root).clamp(-cut, cut)
    theta = 2 * asinh(chord(u, v, root.square()) / (2 * root))
    # Far apart, z is taken over e^(r_u), which keeps its products finite, and only its direction is used.
    close = theta < 1
    shrink = torch.where(close, 1, torch.exp(-r_u))
    lift = torch.where(close, torch.cosh(r_u), (1 + torch.exp(-2 * r_u)) / 2)
    # Exactly û·Δû = τ; the rounding beside it is taken out, for sinh would enlarge it. Then τ sinh r_v cosh r_u is
    # taken as a square, because sinh · cosh alone would overflow in the gradient.
    own = u / diff.length[0].unsqueeze(-1)
    across = d_dir - (d_dir * own).sum(-1, keepdim=True) * own
    turned = (torch.sqrt(torch.sinh(r_v)) * torch.sqrt(lift)).unsqueeze(-1) * d_dir
    radial = torch.sinh(d_r) * shrink + turned.square().sum(-1) / 2
    z = -radial.unsqueeze(-1) * own - (torch.sinh(r_v) * shrink).unsqueeze(-1) * across
    scale = z.detach().abs().amax(dim=-1, keepdim=True)
    _, unit = polar(z / torch.where(scale > 0, scale, 1))
    theta = theta.unsqueeze(-1)
    close = close.unsqueeze(-1)
    return root * torch.where(close, z / sinhc(torch.where(close, theta, 0)), theta * unit)
