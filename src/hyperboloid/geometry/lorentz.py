"""The hyperboloid (Lorentz) model: points of Minkowski space, and the paper's operations on them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .curvature import BetaLike, beta_tensor
from .normal import NormalCoordinates, log0_of_space
from .numerics import from_boundary, max_radius, polar, sinhc
from .precision import in_single


def inner(x: Tensor, y: Tensor) -> Tensor:
    """Lorentzian scalar product −x_0 y_0 + Σ x_i y_i (Eq. 1), ``(…, d+1)`` to ``(…)``."""
    return (x[..., 1:] * y[..., 1:]).sum(-1) - x[..., 0] * y[..., 0]


@in_single
class Lorentz:
    r"""H^{d,β} = {x : ⟨x, x⟩_L = −β, x_0 > 0}, curvature −1/β, origin (√β, 0, …, 0) (Eq. 2).

    Points and tangent vectors have d + 1 coordinates, time first. Layers of this library work in normal coordinates
    instead (:attr:`normal`); the operations here go through them wherever the textbook form would cancel.

    Args:
        beta: a positive float, a tensor (a scalar) or a :class:`Curvature`.
    """

    def __init__(self, beta: BetaLike = 1.0) -> None:
        self._beta = beta
        #: the same space in normal coordinates
        self.normal = NormalCoordinates(beta)

    def __repr__(self) -> str:
        return f"Lorentz(beta={self._beta!r})"

    def beta(self, like: Tensor) -> Tensor:
        """β as a tensor with the dtype and device of ``like``."""
        return beta_tensor(self._beta, like)

    def origin(self, d: int, like: Tensor) -> Tensor:
        """The origin of H^d, ``(d+1,)``."""
        return self.exp0(torch.zeros(d, dtype=like.dtype, device=like.device))

    def inner(self, x: Tensor, y: Tensor) -> Tensor:
        """Lorentzian scalar product (Eq. 1) ``(…)``."""
        return inner(x, y)

    def check(self, x: Tensor, *, tol: float = 1e-5) -> bool:
        """Whether all points lie on the hyperboloid: x_0 = √(β + ‖x⃗‖²) to a relative ``tol``.

        The relative form is the one that means something far out, where ⟨x, x⟩_L is a difference of huge numbers.
        """
        root = self.beta(x).sqrt()
        time = torch.hypot(root.expand_as(x[..., 0]), torch.linalg.vector_norm(x[..., 1:], dim=-1))
        return bool(((x[..., 0] - time).abs() <= tol * time).all())

    # ---- to and from normal coordinates

    def exp0(self, v: Tensor) -> Tensor:
        """exp at the origin of (0, v) (Eq. 10), ``(…, d)`` to ``(…, d+1)``."""
        root = self.beta(v).sqrt()
        r = (torch.linalg.vector_norm(v, dim=-1, keepdim=True) / root).clamp(max=max_radius(v.dtype))
        return torch.cat([root * torch.cosh(r), sinhc(r) * v], dim=-1)

    def log0(self, x: Tensor) -> Tensor:
        """Inverse of :meth:`exp0`, ``(…, d+1)`` to ``(…, d)``; by arsinh of the space part, never arcosh."""
        return log0_of_space(x[..., 1:], self.beta(x).sqrt())

    # ---- maps at any point

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """exp_x(v) (Eq. 5) of a tangent vector v at x ``(…, d+1)``."""
        root = self.beta(x).sqrt()
        length = self.tangent_norm(x, v).unsqueeze(-1)
        r = length / root
        return torch.cosh(r) * x + sinhc(r) * v

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """log_x(y) (Eq. 6), the tangent vector at x that exp_x takes to y ``(…, d+1)``."""
        theta = self.dist(x, y).unsqueeze(-1) / self.beta(x).sqrt()
        # y + ⟨x, y⟩x/β = (y − x) − (cosh θ − 1) x: no difference of large numbers when y is near x, and none is too
        # large when it is far
        return (y - x) / sinhc(theta.clamp(max=max_radius(x.dtype))) - theta * torch.tanh(theta / 2) * x

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        """Parallel transport of v from the tangent space of x to that of y ``(…, d+1)``."""
        beta = self.beta(x)
        total = 2 * beta + self.lorentz_sqdist(x, y) / 2
        return v + (inner(y, v) / total).unsqueeze(-1) * (x + y)

    def tangent_norm(self, x: Tensor, v: Tensor) -> Tensor:
        """‖v‖_L of a tangent vector at x ``(…)``: across x⃗ it counts fully, along x⃗ shrunk by √β/x_0."""
        _, direction = polar(x[..., 1:])
        along = (v[..., 1:] * direction).sum(-1)
        across = v[..., 1:] - along.unsqueeze(-1) * direction
        shrunk = along * self.beta(x).sqrt() / x[..., 0]
        return torch.linalg.vector_norm(torch.cat([across, shrunk.unsqueeze(-1)], dim=-1), dim=-1)

    # ---- distances and centroid

    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        """Intrinsic distance d_H (Eq. 7) ``(…)``."""
        return self.normal.dist(self.log0(x), self.log0(y))

    def sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        """d_H² ``(…)``."""
        return self.dist(x, y).square()

    def lorentz_sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        """Squared Lorentzian distance −2β − 2⟨x, y⟩_L (Eq. 17) ``(…)``."""
        return self.normal.lorentz_sqdist(self.log0(x), self.log0(y))

    def centroid(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        """Centroid of the squared Lorentzian distance (Eq. 16), ``(…, m, d+1)`` to ``(…, d+1)``."""
        return self.exp0(self.normal.centroid(self.log0(x), weight))

    # ---- the paper's Lorentzian versions (Definitions 4.1 to 4.3)

    def pointwise(self, f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """f^⊗(x) = exp_0(f(log_0 x)) (Definition 4.1, Eq. 12), for any f on R^d."""
        return self.exp0(f(self.log0(x)))

    def matvec(self, matrix: Tensor, x: Tensor) -> Tensor:
        """M ⊗ x (Definition 4.2, Eq. 13) with an m × d matrix, ``(…, d+1)`` to ``(…, m+1)``."""
        return self.pointwise(lambda v: v @ matrix.mT, x)

    def change_curvature(self, x: Tensor, to: Lorentz) -> Tensor:
        """The point of ``to`` with the same normal coordinates (Eq. 11) ``(…, d+1)``."""
        return to.exp0(self.log0(x))

    # ---- isometries

    def to_poincare(self, x: Tensor) -> Tensor:
        """√β x⃗/(√β + x_0) (Eq. 25), a point of the ball of radius √β, ``(…, d+1)`` to ``(…, d)``."""
        root = self.beta(x).sqrt()
        return root * x[..., 1:] / (root + x[..., :1])

    def from_poincare(self, p: Tensor) -> Tensor:
        """Inverse of :meth:`to_poincare` (Eq. 26), ``(…, d)`` to ``(…, d+1)``."""
        beta = self.beta(p)
        square = p.square().sum(-1, keepdim=True)
        return torch.cat([(1 + square / beta) * beta.sqrt(), 2 * p], dim=-1) / from_boundary(square / beta)

    def to_klein(self, x: Tensor) -> Tensor:
        """√β x⃗/x_0, a point of the Klein ball of radius √β, ``(…, d+1)`` to ``(…, d)``."""
        return self.beta(x).sqrt() * x[..., 1:] / x[..., :1]

    def from_klein(self, k: Tensor) -> Tensor:
        """Inverse of :meth:`to_klein`, ``(…, d)`` to ``(…, d+1)``."""
        beta = self.beta(k)
        time = beta.sqrt() * from_boundary(k.square().sum(-1, keepdim=True) / beta).rsqrt()
        return torch.cat([time, time * k / beta.sqrt()], dim=-1)
