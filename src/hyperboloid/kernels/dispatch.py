"""One way to each sparse operation; which backend computes it depends on where the tensors are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal

import torch
from torch import Tensor

from hyperboloid.geometry.rows import RowKernels, offer

from . import reference
from .adjacency import Adjacency

Backend = Literal["reference", "cpu", "triton"]

_forced: ContextVar[Backend | None] = ContextVar("backend", default=None)


@contextmanager
def use_backend(name: Backend) -> Iterator[None]:
    """Compute everything inside by one backend, as far as it goes; what it does not have is the reference's."""
    token = _forced.set(name)
    try:
        yield
    finally:
        _forced.reset(token)


def _backend(t: Tensor) -> Backend:
    """Which backend takes this."""
    if torch.compiler.is_compiling():  # a compiler needs operations that it can see into
        return "reference"
    forced = _forced.get()
    if forced is not None:
        return forced
    if t.dtype not in (torch.float32, torch.float64):
        return "reference"
    if t.device.type == "cpu":
        return "cpu"
    return "triton" if t.device.type == "cuda" and _has_triton() else "reference"


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def _implementation(name: str, t: Tensor) -> Any:
    """The function called ``name`` of the backend that takes ``t``."""
    backend = _backend(t)
    if backend == "cpu":
        from . import cpu

        return getattr(cpu, name)
    if backend == "triton":
        from . import gpu

        return getattr(gpu, name, None) or getattr(reference, name)
    return getattr(reference, name)


@cache
def _rows() -> RowKernels:
    from . import gpu

    return gpu.Rows()


offer(lambda t: _rows() if _backend(t) == "triton" else None)


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
    out: Tensor = _implementation("lorentz_attention", query)(query, key, adj, beta, keep=keep)
    return out


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
    out: Tensor = _implementation("lorentz_aggregate", u)(u, adj, beta, weight)
    return out


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
    out: Tensor = _implementation("tangent_aggregate", u)(target, u, adj, beta, weight)
    return out


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
    out: Tensor = _implementation("frechet_aggregate", u)(u, adj, beta, weight)
    return out
