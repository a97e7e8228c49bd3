"""Sums of neighbours over the rows of a graph, by sparse matrix products in both directions."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .adjacency import Adjacency

with warnings.catch_warnings():  # torch announces once that its CSR layout may still change: here, where nobody listens
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], [], [], (1, 1), check_invariants=False)


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, adj: Adjacency) -> Tensor:
        ctx.adj = adj
        return _matrix(adj.rowptr, adj.col, (adj.num_rows, adj.num_cols), u) @ u

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        adj: Adjacency = ctx.adj
        colptr, row, _ = adj.transposed
        return _matrix(colptr, row, (adj.num_cols, adj.num_rows), grad) @ grad, None


def _matrix(start: Tensor, index: Tensor, size: tuple[int, int], like: Tensor) -> Tensor:
    ones = torch.ones(index.shape, dtype=like.dtype, device=like.device)
    return torch.sparse_csr_tensor(start, index, ones, size, check_invariants=False)


def sum_aggregate(u: Tensor, adj: Adjacency) -> Tensor:
    """Σ_j u_j over every row's neighbours, ``(num_cols, d)`` to ``(num_rows, d)``."""
    out: Tensor = _Sum.apply(u, adj)
    return out
