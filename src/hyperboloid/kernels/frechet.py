"""Stub."""

from __future__ import annotations

from torch import Tensor

from .adjacency import Adjacency
from .dispatch import lorentz_aggregate


def frechet_aggregate(u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """Stub."""
    return lorentz_aggregate(u, adj, beta, weight)
