r"""How a neighbourhood is averaged: four means of weighted points, all in normal coordinates.

Each takes the rows' own points ``target`` ``(num_rows, d)``, the neighbours' ``u`` ``(num_cols, d)``, the graph, β, and
non-negative weights ``(E,)`` of which only ratios within a row matter, and gives ``(num_rows, d)``.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from hyperboloid.errors import InputError
from hyperboloid.geometry import Lorentz
from hyperboloid.kernels import (
    Adjacency,
    frechet_aggregate,
    lorentz_aggregate,
    row_normalize,
    tangent_aggregate,
    weighted_sum,
)

Mean = Callable[[Tensor, Tensor, Adjacency, Tensor, Tensor], Tensor]


def centroid(target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """The point with the least sum of squared Lorentzian distances (Theorem 4.2), in closed form."""
    return lorentz_aggregate(u, adj, beta, weight)


def frechet(target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """The point with the least sum of squared intrinsic distances, found by iteration."""
    return frechet_aggregate(u, adj, beta, weight)


def tangent(target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """exp_{x_i}(Σ_j w_ij log_{x_i}(x_j)) (Eq. 9): the mean in the tangent space of the node itself."""
    step = tangent_aggregate(target, u, adj, beta, row_normalize(weight, adj))
    return Lorentz(beta).normal.exp_at(target, step)


def origin(target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """exp_0(Σ_j w_ij log_0(x_j)): the mean in the tangent space of the origin, a plain average here."""
    return weighted_sum(u, adj, row_normalize(weight, adj))


MEANS: dict[str, Mean] = {f.__name__: f for f in (centroid, frechet, tangent, origin)}


def get_mean(name: str) -> Mean:
    """The mean called ``name``."""
    if name not in MEANS:
        raise InputError(f"There is no mean '{name}'; choose one of: {', '.join(MEANS)}.")
    return MEANS[name]
