"""Sums of logarithms over a graph's rows for float32 on a GPU, of one model or of many."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from hyperboloid.first_order import first_order
from hyperboloid.function import Function

from .adjacency import Adjacency
from .fused import keep_for_gradient, with_models


class _Tangent(Function):
    """Of rows ``(M, num_rows, d)``, columns ``(M, num_cols, d)``, β ``(M,)`` and weights ``(M, E)`` of a graph.

    Rows are None if they are the columns.
    """

    @staticmethod
    def forward(*args: Any) -> tuple[Tensor, ...]:
        from .gpu_tangent import tangent_sums

        return tangent_sums(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.adj = inputs
        keep_for_gradient(ctx, tensors, output)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        from .gpu_tangent import tangent_gradients

        x, y, beta, weight, *needed = ctx.saved_tensors
        return *tangent_gradients(grad, x, y, beta, weight, ctx.adj, *needed), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return with_models(_Tangent.apply, 4, info, in_dims, args)


def tangent_aggregate(target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.tangent_aggregate`."""
    given = (None if target is u else target, u, beta.reshape(()), weight.to(u.dtype))
    out: Tensor = _Tangent.apply(*(t if t is None else t.unsqueeze(0) for t in given), adj)[0]
    return out.squeeze(0)
