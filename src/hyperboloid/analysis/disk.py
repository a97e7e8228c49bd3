"""Embeddings in two dimensions: on the Poincaré disk with its geodesics, or in the plane."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from hyperboloid.geometry import Lorentz, PoincareBall


def disk_coordinates(v: Tensor, beta: float) -> Tensor:
    """Points ``(N, 2)`` of the unit disk for normal coordinates ``(N, d)``.

    Beyond two dimensions the two principal axes of the tangent space at the origin are kept (tangent PCA), after the
    space is moved so that the centroid of all points lies in the middle. Each point keeps its distance from the middle,
    which is what says how deep it lies in the tree; only directions are projected.
    """
    v = v.double()
    centre = Lorentz(beta).normal.centroid(v)
    v = Lorentz(beta).normal.log_at(centre.expand_as(v), v)
    radius, wide = v.norm(dim=1, keepdim=True), v.size(1) > 2
    v = v @ principal_axes(v)
    if wide:
        v = v / v.norm(dim=1, keepdim=True).clamp_min(1e-12) * radius
    return PoincareBall(1.0).from_normal(v / beta**0.5)


def plane_coordinates(v: Tensor) -> Tensor:
    """Points ``(N, 2)`` of the plane for points ``(N, d)`` of Euclidean space: their two principal components."""
    v = v.double()
    return (v - v.mean(0)) @ principal_axes(v)


def principal_axes(v: Tensor) -> Tensor:
    """The two principal axes ``(d, 2)`` of points ``(N, d)``; in one or two dimensions the axes as they are."""
    if v.size(1) <= 2:
        return torch.eye(v.size(1), 2, dtype=v.dtype)
    centred = v - v.mean(0)
    _, axes = torch.linalg.eigh(centred.T @ centred)  # by ascending variance
    return axes[:, -2:].flip(1)


def geodesic(a: np.ndarray, b: np.ndarray, steps: int = 16) -> np.ndarray:
    """Points ``(E, steps, 2)`` along the geodesics from ``a`` to ``b``, both ``(E, 2)`` in the unit disk."""
    ball, straight = PoincareBall(1.0), torch.linspace(0, 1, steps, dtype=torch.float64)
    p, q = torch.as_tensor(a), torch.as_tensor(b)
    along = ball.log0(ball.add(-p, q)).unsqueeze(1) * straight.view(1, -1, 1)
    return ball.add(p.unsqueeze(1).expand_as(along), ball.exp0(along)).numpy()
