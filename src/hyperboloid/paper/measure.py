"""What Tables 1 and 2 are measured by, in float64: distance from the manifold, and distance from the minimum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from hyperboloid.geometry import Lorentz
from hyperboloid.geometry.numerics import polar, rcoth_minus_1, sinhc

#: A property counts as held up to this; rounding lies near 1e-15, what fails lies above 1e-2.
TOLERANCE = 1e-9
#: Dimension of the spaces.
DIM = 8
#: The largest radius ‖v‖/√β of the points drawn, and β.
CASES = ((0.5, 0.4), (1.0, 1.0), (2.0, 2.5), (4.0, 1.0))

#: Newton's steps at most; from the mean at the origin eight or so are usual.
MAX_STEPS = 50

#: Which distance is squared: the Lorentzian d_L (Eq. 17) or the intrinsic d_H (Eq. 7).
Distance = Literal["lorentz", "intrinsic"]


def random_points(*shape: int, radius: float, beta: float) -> Tensor:
    """Normal coordinates ``(*shape, d)``: directions uniform, radii uniform up to ``radius``·√β."""
    v = torch.randn(*shape, DIM, dtype=torch.float64)
    r = radius * beta**0.5 * torch.rand(*shape, 1, dtype=torch.float64)
    return r * v / torch.linalg.vector_norm(v, dim=-1, keepdim=True)


def largest(values: Iterable[float]) -> float:
    """The largest of some numbers, NaN if one of them is: Python's own max might lose it."""
    return float(torch.tensor(list(values), dtype=torch.float64).max())


def hyperboloid_violation(x: Tensor, beta: float) -> float:
    """Largest |⟨x, x⟩_L + β|/(x_0² + ‖x⃗‖² + β) of points ``(…, d+1)``: 0 on the hyperboloid, never above 1.

    Divided so, rounding gives 1e-16 at any radius. A point with x_0 ≤ 0 counts 1: it is not on this sheet.
    """
    time, space = x[..., 0], x[..., 1:].square().sum(-1)
    violation = (space - time.square() + beta).abs() / (space + time.square() + beta)
    return float(torch.where(time <= 0, 1, violation).max())


def ball_violation(p: Tensor, beta: float) -> float:
    """Largest max(0, ‖p‖²/β − 1) of points ``(…, d)``: 0 in the ball of radius √β."""
    return float((p.square().sum(-1) / beta - 1).clamp_min(0).max())


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of weighted points whose means are asked for, in normal coordinates.

    Attributes:
        members: ``(g, m, d)``.
        weight: ``(g, m)``, 0 for places that are not taken.
        beta: of their space.
    """

    members: Tensor
    weight: Tensor
    beta: float
    _least: dict[Distance, Tensor] = field(default_factory=dict, init=False)

    def objective(self, c: Tensor, distance: Distance) -> Tensor:
        """Σ_j w_j d²(c, x_j) for a candidate of each group, ``(g, d)`` to ``(g,)``."""
        normal = Lorentz(self.beta).normal
        squared = normal.lorentz_sqdist if distance == "lorentz" else normal.sqdist
        return (self.weight * squared(c.unsqueeze(-2), self.members)).sum(-1)

    def minimum(self, distance: Distance) -> Tensor:
        """The points ``(g, d)`` with the least objective, found once."""
        if distance not in self._least:
            self._least[distance] = minimum(self.members, self.weight, self.beta, distance)
        return self._least[distance]

    def excess(self, mean: Tensor, distance: Distance) -> float:
        """Largest part by which the objective at given means ``(g, d)`` exceeds its minimum over the whole space."""
        least = self.objective(self.minimum(distance), distance)
        return float((self.objective(mean, distance) / least - 1).clamp_min(0).max())


def minimum(members: Tensor, weight: Tensor, beta: float, distance: Distance) -> Tensor:
    r"""The point c with the least :meth:`Groups.objective`, ``(g, m, d)`` to ``(g, d)``, by Newton's method.

    With t_j = log_c(x_j), θ_j = ‖t_j‖/√β and P_j the projection onto t_j, half the objective has

    .. math::
        -\nabla &= \sum_j w_j t_j \ (d_H^2), & \quad \sum_j w_j \tfrac{\sinh θ_j}{θ_j} t_j \ (d_L^2) \\
        H &= \sum_j w_j (P_j + θ_j \coth θ_j (1 - P_j)), & \quad \sum_j w_j \cosh θ_j

    Only log and exp are used, so that no formula for a mean is checked by itself. Both objectives are strictly convex
    along geodesics: where the gradient vanishes, there is the minimum.
    """
    normal, root = Lorentz(beta).normal, beta**0.5
    weight = (weight / weight.sum(-1, keepdim=True)).unsqueeze(-1)
    c = (weight * members).sum(-2)
    for _ in range(MAX_STEPS):
        t = normal.log_at(c.unsqueeze(-2), members)
        length, direction = polar(t)
        theta = (length / root).unsqueeze(-1)
        pull, across = (sinhc(theta), theta.cosh()) if distance == "lorentz" else (1, 1 + rcoth_minus_1(theta))
        along = across if distance == "lorentz" else torch.ones_like(across)
        hessian = torch.diag_embed((weight * across).sum(-2).expand_as(c))
        hessian += (weight * (along - across) * direction).mT @ direction
        step = torch.linalg.solve(hessian, (weight * pull * t).sum(-2))
        # a full step may overshoot where θ coth θ changes on its way; shortened, it is shorter than √β
        c = normal.exp_at(c, step / (1 + torch.linalg.vector_norm(step, dim=-1, keepdim=True) / root))
        if step.abs().max() <= 1e-10 * root:
            return c
    raise ArithmeticError(f"the minimum was not found: the last step was {float(step.abs().max()):.1e}")
