"""Sums of neighbours over the rows of a graph: by sparse matrix products, and weighted ones by kernels on a GPU."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .adjacency import Adjacency
from .fused import with_models

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


class _WeightedSum(torch.autograd.Function):
    """Of models: columns ``(M, num_cols, d)`` and weights ``(M, E)`` of a graph, on a GPU."""

    @staticmethod
    def forward(u: Tensor, weight: Tensor, adj: Adjacency) -> tuple[Tensor]:
        from .gpu_sums import weighted_sums

        return (weighted_sums(u, weight, adj.ends, adj.num_rows),)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.adj = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from .gpu_sums import weighted_gradients

        u, weight = ctx.saved_tensors
        return *weighted_gradients(grad, u, weight, ctx.adj), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return with_models(_WeightedSum.apply, 2, info, in_dims, args)


def weighted_by_kernel(u: Tensor, adj: Adjacency, weight: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.weighted_sum`, for float32 on a GPU."""
    out: Tensor = _WeightedSum.apply(u.unsqueeze(0), weight.to(u.dtype).unsqueeze(0), adj)[0]
    return out.squeeze(0)


def _matrix(start: Tensor, index: Tensor, size: tuple[int, int], like: Tensor) -> Tensor:
    ones = torch.ones(index.shape, dtype=like.dtype, device=like.device)
    return torch.sparse_csr_tensor(start, index, ones, size, check_invariants=False)


def sum_aggregate(u: Tensor, adj: Adjacency) -> Tensor:
    """Σ_j u_j over every row's neighbours, ``(num_cols, d)`` to ``(num_rows, d)``."""
    out: Tensor = _Sum.apply(u, adj)
    return out
