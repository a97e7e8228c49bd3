"""The hyperboloid with β = 1 as textbooks write it, in float arithmetic as it comes, to compare with.

Points and tangent vectors have d + 1 coordinates, time first. Nothing here is used anywhere else.
"""

from __future__ import annotations

import torch
from torch import Tensor


def inner(x: Tensor, y: Tensor) -> Tensor:
    """⟨x, y⟩_L = −x_0 y_0 + Σ x_i y_i (Eq. 1) ``(…, 1)``."""
    product = x * y
    return product[..., 1:].sum(-1, keepdim=True) - product[..., :1]


def dist(x: Tensor, y: Tensor) -> Tensor:
    """arcosh(−⟨x, y⟩_L) (Eq. 7) ``(…)``."""
    return torch.acosh(-inner(x, y)).squeeze(-1)


def exp(x: Tensor, v: Tensor) -> Tensor:
    """cosh‖v‖ x + sinh‖v‖ v/‖v‖ (Eq. 5) ``(…, d+1)``."""
    length = inner(v, v).sqrt()
    return torch.cosh(length) * x + torch.sinh(length) * v / length


def log(x: Tensor, y: Tensor) -> Tensor:
    """d(x, y) w/‖w‖ with w = y + ⟨x, y⟩_L x (Eq. 6) ``(…, d+1)``."""
    w = y + inner(x, y) * x
    return dist(x, y).unsqueeze(-1) * w / inner(w, w).sqrt()


def centroid(x: Tensor) -> Tensor:
    """s/√(−⟨s, s⟩_L) with s = Σ x_j (Eq. 16), ``(…, m, d+1)`` to ``(…, d+1)``."""
    s = x.sum(-2)
    return s / (-inner(s, s)).sqrt()
