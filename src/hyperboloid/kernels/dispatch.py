"""One way to each sparse operation; which backend computes it depends on where the tensors are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

import torch
from torch import Tensor

from . import reference
from .adjacency import Adjacency

Backend = Literal["reference", "cpu"]

_forced: ContextVar[Backend | None] = ContextVar("backend", default=None)


@contextmanager
def use_backend(name: Backend) -> Iterator[None]:
    """Compute everything inside by one backend."""
    token = _forced.set(name)
    try:
        yield
    finally:
        _forced.reset(token)


def _use_cpu(t: Tensor) -> bool:
    """Whether the CPU backend takes this."""
    if torch.compiler.is_compiling():  # a compiler needs operations that it can see into
        return False
    forced = _forced.get()
    if forced is not None:
        return forced == "cpu"
    return t.device.type == "cpu" and t.dtype in (torch.float32, torch.float64)


def lorentz_attention(
    query: Tensor, key: Tensor, adj: Adjacency, beta: Tensor, *, keep: Tensor | None = None
) -> Tensor:
    """Attention weights, softmax over each row of −d_L² (Eq. 19, 20).

    Args:
        query: attention features of the rows, normal coordinates ``(num_rows, a)``.
        key: attention features of the columns, normal coordinates ``(num_cols, a)``.
        adj: the graph.
        beta: scalar.
        keep: which entries take part ``(E,)``; None for all.

    Returns:
        ``(E,)``, summing to 1 over every row that keeps an entry.
    """
    if _use_cpu(query):
        from . import cpu

        return cpu.lorentz_attention(query, key, adj, beta, keep=keep)
    return reference.lorentz_attention(query, key, adj, beta, keep=keep)


def lorentz_aggregate(u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """Centroid of every row's neighbours (Eq. 16).

    Args:
        u: normal coordinates of the columns ``(num_cols, d)``.
        adj: the graph.
        beta: scalar.
        weight: non-negative weight of each entry ``(E,)``; only ratios within a row matter.

    Returns:
        Normal coordinates of the rows ``(num_rows, d)``; a row without weight gives the origin.
    """
    if _use_cpu(u):
        from . import cpu

        return cpu.lorentz_aggregate(u, adj, beta, weight)
    return reference.lorentz_aggregate(u, adj, beta, weight)


def tangent_aggregate(target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """Sum of every row's neighbours as seen from the row's own point, Σ_j w_ij log_{x_i}(x_j) (inside Eq. 9).

    Args:
        target: normal coordinates of the rows ``(num_rows, d)``, where the logarithms are taken.
        u: normal coordinates of the columns ``(num_cols, d)``.
        adj: the graph.
        beta: scalar.
        weight: weight of each entry ``(E,)``.

    Returns:
        Tangent vectors carried to the origin ``(num_rows, d)``, as :meth:`NormalCoordinates.log_at` gives them.
    """
    if _use_cpu(u):
        from . import cpu

        return cpu.tangent_aggregate(target, u, adj, beta, weight)
    return reference.tangent_aggregate(target, u, adj, beta, weight)


def frechet_aggregate(u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """Fréchet mean of every row's neighbours: the point with the least sum of squared intrinsic distances.

    Args:
        u: normal coordinates of the columns ``(num_cols, d)``.
        adj: the graph.
        beta: scalar.
        weight: non-negative weight of each entry ``(E,)``; only ratios within a row matter.

    Returns:
        Normal coordinates of the rows ``(num_rows, d)``; a row without weight gives the origin.
    """
    if _use_cpu(u):
        from . import cpu

        return cpu.frechet_aggregate(u, adj, beta, weight)
    return reference.frechet_aggregate(u, adj, beta, weight)
