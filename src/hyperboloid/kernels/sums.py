"""Weighted sums of neighbours over the rows of a graph: by kernels on a GPU, by sparse matrix products elsewhere."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hyperboloid.first_order import first_order
from hyperboloid.function import Function
from hyperboloid.geometry.precision import is_autocast

from .adjacency import Adjacency
from .fused import with_models
from .mapped import for_each


class _KernelSum(Function):
    """Of models: columns ``(M, num_cols, d)`` and weights ``(M, E)`` of a graph."""

    @staticmethod
    def forward(u: Tensor, weight: Tensor, adj: Adjacency) -> tuple[Tensor]:
        from .gpu_sums import weighted_sums

        return (weighted_sums(u, weight, adj),)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.adj = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from .gpu_sums import column_gradient, weight_gradient

        (u, weight), needed = ctx.saved_tensors, ctx.needs_input_grad
        to_u = column_gradient(grad, weight, ctx.adj) if needed[0] else None
        return to_u, weight_gradient(grad, u, ctx.adj) if needed[1] else None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return with_models(_KernelSum.apply, 2, info, in_dims, args)


class _MatrixSum(Function):
    @staticmethod
    def forward(u: Tensor, weight: Tensor, adj: Adjacency) -> Tensor:
        return adj.matrix(weight) @ u

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.adj = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (u, weight), adj, needed = ctx.saved_tensors, ctx.adj, ctx.needs_input_grad
        grad, to_u, to_weight = grad.contiguous(), None, None
        if needed[0]:
            to_u = adj.matrix(weight, transposed=True) @ grad
        if needed[1] and (
            grad.device.type != "cpu" or any(torch._C._functorch.is_functorch_wrapped_tensor(t) for t in (grad, u))
        ):
            to_weight = (grad.index_select(0, adj.row) * u.index_select(0, adj.col)).sum(-1)
        elif needed[1]:
            from .cpu_sums import weight_gradient

            to_weight = weight_gradient(grad, u, adj)
        return to_u, to_weight, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, u: Tensor, weight: Tensor, adj: Adjacency) -> tuple[Tensor, int]:
        models = info.batch_size
        u = for_each(u, in_dims[0], models)
        if in_dims[1] is None:  # one product with [u_1 … u_M]
            d = u.size(-1)
            side_by_side = u.movedim(0, 1).reshape(adj.num_cols, models * d)
            return _MatrixSum.apply(side_by_side, weight, adj).view(adj.num_rows, models, d), 1
        weights = weight.movedim(in_dims[1], 0)
        return torch.stack([_MatrixSum.apply(*own, adj) for own in zip(u, weights, strict=True)]), 0


def kernel_sum(u: Tensor, adj: Adjacency, weight: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.weighted_sum`, for float32 on a GPU."""
    out: Tensor = _KernelSum.apply(u.unsqueeze(0), weight.unsqueeze(0), adj)[0]
    return out.squeeze(0)


def matrix_sum(u: Tensor, adj: Adjacency, weight: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.weighted_sum`, for float32 and float64 anywhere."""
    if is_autocast(u):  # there are no sparse products of halves
        with torch.autocast(u.device.type, enabled=False):
            return matrix_sum(u, adj, weight)
    out: Tensor = _MatrixSum.apply(u, weight, adj)
    return out


def sum_aggregate(u: Tensor, adj: Adjacency) -> Tensor:
    """Σ_j u_j over every row's neighbours, ``(num_cols, d)`` to ``(num_rows, d)``."""
    return matrix_sum(u, adj, u.new_ones(adj.col.shape))
