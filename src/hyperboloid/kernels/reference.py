r"""Lorentzian neighbourhood aggregation (section 4.3 of the paper), in plain torch: slow, obvious, anywhere.

.. math::  \mu_{ij} = -d_L^2(\exp_0 a_i, \exp_0 a_j) \qquad
           v_i' = \log_0 \mathrm{centroid}_j(\exp_0 u_j;\ w_{ij}\,\mathrm{softmax}_j\,\mu_{ij})
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from hyperboloid.geometry import Lorentz
from hyperboloid.geometry.centroid import centroid, widen
from hyperboloid.geometry.frechet import LogarithmView, View, frechet_mean

from .adjacency import Adjacency


def lorentz_attention(
    query: Tensor, key: Tensor, adj: Adjacency, beta: Tensor, keep: Tensor | None, cap: float
) -> Tensor:
    """See :func:`hyperboloid.kernels.lorentz_attention`."""
    square = Lorentz(beta).normal.lorentz_sqdist(query.index_select(0, adj.row), key.index_select(0, adj.col))
    return row_softmax(-square.clamp(max=cap), adj, keep)


def row_softmax(score: Tensor, adj: Adjacency, keep: Tensor | None) -> Tensor:
    """See :func:`hyperboloid.kernels.row_softmax`."""
    score = kept_scores(score, keep)
    # the largest kept score of each row; empty rows have no entry to shift
    largest = _row_max(score.detach(), adj)
    largest = torch.where(torch.isfinite(largest), largest, 0)
    weight = torch.exp(score - largest.index_select(0, adj.row))
    return row_normalize(weight, adj)


def kept_scores(score: Tensor, keep: Tensor | None) -> Tensor:
    """−∞ for entries that are not kept; None keeps all."""
    return score if keep is None else score.masked_fill(~keep, -torch.inf)


def row_sum(t: Tensor, adj: Adjacency) -> Tensor:
    """Sums of entries over each row, ``(E, …)`` to ``(num_rows, …)``."""
    return t.new_zeros(adj.num_rows, *t.shape[1:]).index_add(0, adj.row, t)


def row_normalize(weight: Tensor, adj: Adjacency) -> Tensor:
    """Weights ``(E,)`` that sum to 1 over each row, or to 0 where all are 0."""
    total = row_sum(weight, adj)
    return weight / torch.where(total > 0, total, 1).index_select(0, adj.row)


def lorentz_aggregate(u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.lorentz_aggregate`, here for weights alone."""
    return centroid(
        u,
        weight,
        beta,
        total=lambda t: row_sum(t, adj),
        spread=lambda t: t.index_select(0, adj.row),
        take=lambda t: t.index_select(0, adj.col),
    )


def tangent_aggregate(target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.tangent_aggregate`."""
    at, to = target.index_select(0, adj.row), u.index_select(0, adj.col)
    return row_sum(weight.unsqueeze(-1) * Lorentz(beta).normal.log_at(at, to), adj)


def frechet_aggregate(u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.frechet_aggregate`."""

    def view(mean: Tensor, u: Tensor, weight: Tensor, beta: Tensor) -> LogarithmView:
        logarithm = Lorentz(beta).normal.log_at(mean.index_select(0, adj.row), u.index_select(0, adj.col))
        return LogarithmView(
            logarithm, weight, beta.sqrt(), lambda t: row_sum(t, adj), lambda t: t.index_select(0, adj.row)
        )

    return frechet_by(view, tangent_aggregate, u, adj, beta, weight)


def frechet_by(
    view: Callable[[Tensor, Tensor, Tensor, Tensor], View],
    tangent: Callable[[Tensor, Tensor, Adjacency, Tensor, Tensor], Tensor],
    u: Tensor,
    adj: Adjacency,
    beta: Tensor,
    weight: Tensor,
) -> Tensor:
    """Fréchet means of all rows by one backend's view from the means, and its differentiable sum of logarithms."""
    dtype = u.dtype
    u, weight, beta = widen(u, row_normalize(weight, adj), beta)
    fixed = u.detach(), weight.detach(), beta.detach()
    return frechet_mean(
        lorentz_aggregate(fixed[0], adj, fixed[2], fixed[1]),
        fixed[2].sqrt(),
        Lorentz(fixed[2]).normal.exp_at,
        lambda mean: view(mean, *fixed),
        lambda mean: tangent(mean, u, adj, beta, weight),
    ).to(dtype)


def _row_max(t: Tensor, adj: Adjacency) -> Tensor:
    """The largest entry of each row, ``(E,)`` to ``(num_rows,)``; −∞ for an empty row."""
    return t.new_full((adj.num_rows,), -torch.inf).scatter_reduce(0, adj.row, t, "amax")
