r"""The Fréchet mean: the point with the least sum of squared *intrinsic* distances, in normal coordinates.

.. math::  \mu = \arg\min_x \sum_j w_j\, d_H^2(x, x_j)
           \quad\Longleftrightarrow\quad \sum_j w_j \log_\mu(x_j) = 0

There is no closed form. Newton's method starts at the centroid and solves for its step by conjugate gradients, because
the Hessian need not be formed: with θ_j = d_H(μ, x_j)/√β and t_j the direction of log_μ(x_j),

.. math::  H δ = \sum_j w_j \big(θ_j \coth θ_j\, δ + (1 - θ_j \coth θ_j) \langle t_j, δ\rangle t_j\big),

a multiple of the identity plus one rank for each point, so that few iterations are enough. The sum of squared distances
is convex along geodesics, hence the mean is unique. The gradient is that of the equation above (implicit
differentiation): one more solve with the same H, whatever the number of iterations was.

Far out, where three points hardly notice that they are not on a tree, Newton's step overshoots; it is halved until the
sum of logarithms, the gradient, has become shorter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from hyperboloid.first_order import first_order
from hyperboloid.function import Function

from .numerics import polar, rcoth_minus_1, sinhc

#: Newton's method ends where no mean would move farther than this part of √β …
TOLERANCE = 1e-9
#: … or after so many steps: three to seven are usual up to r = 12, far beyond it even 50 are too few.
MAX_STEPS = 50
#: How exactly its steps, and the gradient, are solved for, relative to the right-hand side.
STEP_ERROR, GRADIENT_ERROR = 1e-3, 1e-9


class View(Protocol):
    """The points of each group as seen from its mean.

    Attributes:
        pull: Σ_j w_j log_μ(x_j), carried to the origin ``(…, g, d)``.
    """

    pull: Tensor

    def hessian(self, x: Tensor) -> Tensor:
        """H x for tangent vectors x carried to the origin ``(…, g, d)``."""


class LogarithmView:
    """The view through given logarithms, for any way of grouping points.

    Args:
        logarithm: log_μ(x_j) of each member, carried to the origin ``(…, m, d)``.
        weight: of each member ``(…, m)``, summing to 1 in every group.
        root: √β.
        total: sums members into groups, ``(…, m, d)`` to ``(…, g, d)``.
        spread: gives each member its group's row, ``(…, g, d)`` to ``(…, m, d)``.
    """

    def __init__(
        self,
        logarithm: Tensor,
        weight: Tensor,
        root: Tensor,
        total: Callable[[Tensor], Tensor],
        spread: Callable[[Tensor], Tensor],
    ) -> None:
        length, self._direction = polar(logarithm)
        excess = weight * rcoth_minus_1(length / root)
        self._diagonal = total((weight + excess).unsqueeze(-1))
        self._excess, self._total, self._spread = excess, total, spread
        self.pull = total(weight.unsqueeze(-1) * logarithm)

    def hessian(self, x: Tensor) -> Tensor:
        """H x ``(…, g, d)``."""
        along = self._excess * (self._direction * self._spread(x)).sum(-1)
        return self._diagonal * x - self._total(along.unsqueeze(-1) * self._direction)


def frechet_mean(
    start: Tensor,
    root: Tensor,
    exp_at: Callable[[Tensor, Tensor], Tensor],
    view: Callable[[Tensor], View],
    pull: Callable[[Tensor], Tensor],
) -> Tensor:
    """Fréchet means of groups of points, differentiable in all that ``pull`` depends on.

    Args:
        start: where to begin, normal coordinates ``(…, g, d)``, in double precision.
        root: √β.
        exp_at: of the space, see :meth:`NormalCoordinates.exp_at`.
        view: how the points look from given means.
        pull: the same as ``view(mean).pull``, with a gradient in points, weights and β.
    """
    with torch.no_grad():
        mean, last = _newton(start, root, exp_at, view)
    out: Tensor = _Implicit.apply(pull(mean), mean, root.detach(), last)
    return out


def _newton(
    mean: Tensor, root: Tensor, exp_at: Callable[[Tensor, Tensor], Tensor], view: Callable[[Tensor], View]
) -> tuple[Tensor, View]:
    """The means, and the view from there."""
    close = TOLERANCE * root
    seen = view(mean)
    size = _length(seen.pull)
    part = torch.ones_like(size)
    step = _solve(seen.hessian, seen.pull, STEP_ERROR)
    for _ in range(MAX_STEPS):
        if bool((_length(step) <= close).all()):
            break
        tried = exp_at(mean, part * step)
        seen = view(tried)
        left = _length(seen.pull)
        better = (left <= (1 - part / 4) * size) | (left <= close)
        part = torch.where(better, (2 * part).clamp(max=1), part / 2)
        if bool(better.all()):
            mean = tried
        else:
            mean = torch.where(better, tried, mean)
            seen = view(mean)
        size = _length(seen.pull)
        step = _solve(seen.hessian, seen.pull, STEP_ERROR)
    return mean, seen


def _length(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x, dim=-1, keepdim=True)


def _solve(product: Callable[[Tensor], Tensor], right: Tensor, error: float) -> Tensor:
    """x with H x = right, by conjugate gradients in all groups at once ``(…, g, d)``."""
    x, residual, direction = torch.zeros_like(right), right, right
    square = residual.square().sum(-1, keepdim=True)
    goal = error**2 * square
    for _ in range(2 * right.size(-1) + 10):
        if bool((square <= goal).all()):
            break
        image = product(direction)
        curvature = (direction * image).sum(-1, keepdim=True)
        # a group that is solved, or has no members, stays where it is
        length = torch.where(curvature > 0, square / torch.where(curvature > 0, curvature, 1), 0)
        x, residual = x + length * direction, residual - length * image
        smaller = residual.square().sum(-1, keepdim=True)
        direction = residual + torch.where(square > 0, smaller / torch.where(square > 0, square, 1), 0) * direction
        square = smaller
    return x


class _Implicit(Function):
    """The means as a function of the pull that vanishes there: −H dμ + d pull = 0."""

    @staticmethod
    def forward(ctx: Any, pull: Tensor, mean: Tensor, root: Tensor, last: View) -> Tensor:
        ctx.save_for_backward(mean, root, pull)
        ctx.last = last
        return mean.clone()

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        mean, root, _ = ctx.saved_tensors
        # from normal coordinates to the orthonormal frame at the mean: across the radius lengths are sinh r/r larger
        length, direction = polar(mean)
        along = (grad * direction).sum(-1, keepdim=True) * direction
        framed = along + (grad - along) / sinhc(length / root).unsqueeze(-1)
        return _solve(ctx.last.hessian, framed, GRADIENT_ERROR), None, None, None
