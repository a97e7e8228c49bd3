"""Flat space, with the names that the hyperbolic models use: the limit β → ∞ of them all."""

from __future__ import annotations

import torch
from torch import Tensor


class Euclidean:
    """R^d. Its points are their own normal coordinates."""

    @property
    def normal(self) -> Euclidean:
        """Flat space in normal coordinates: itself."""
        return self

    def __repr__(self) -> str:
        return "Euclidean()"

    def exp0(self, v: Tensor) -> Tensor:
        """The identity."""
        return v

    def log0(self, x: Tensor) -> Tensor:
        """The identity."""
        return x

    def dist(self, u: Tensor, v: Tensor) -> Tensor:
        """‖u − v‖ ``(…)``; subgradient 0 at u = v."""
        return torch.linalg.vector_norm(u - v, dim=-1)

    def sqdist(self, u: Tensor, v: Tensor) -> Tensor:
        """‖u − v‖² ``(…)``."""
        return (u - v).square().sum(-1)

    def centroid(self, u: Tensor, weight: Tensor | None = None) -> Tensor:
        """Weighted mean, ``(…, m, d)`` to ``(…, d)``."""
        if weight is None:
            return u.mean(-2)
        return (weight.unsqueeze(-1) * u).sum(-2) / weight.sum(-1, keepdim=True)
