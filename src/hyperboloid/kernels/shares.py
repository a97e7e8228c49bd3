"""Shares in the rows of a graph, of weights or of exponentials, for float32 on a GPU, of one model or of many."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from hyperboloid.first_order import first_order
from hyperboloid.function import Function

from .adjacency import Adjacency
from .fused import with_models


class _Shares(Function):
    """Of values ``(M, E)`` of a graph's entries."""

    @staticmethod
    def forward(values: Tensor, adj: Adjacency, softmax: bool) -> tuple[Tensor]:
        from .gpu_shares import shares

        return (shares(values, adj, softmax),)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        values, ctx.adj, ctx.softmax = inputs
        ctx.save_for_backward(output[0] if ctx.softmax else values)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        from .gpu_shares import shares_gradient

        (known,) = ctx.saved_tensors
        return shares_gradient(grad, known, ctx.adj, ctx.softmax), None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return with_models(_Shares.apply, 1, info, in_dims, args)


class _Attention(Function):
    """Of numbers of rows ``(M, num_rows)`` and of columns ``(M, num_cols)``."""

    @staticmethod
    def forward(target: Tensor, source: Tensor, adj: Adjacency, slope: float) -> tuple[Tensor]:
        from .gpu_shares import attention

        return (attention(target, source, adj, slope),)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        target, source, ctx.adj, ctx.slope = inputs
        ctx.save_for_backward(output[0], target, source)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        from .gpu_shares import attention_gradients

        share, target, source = ctx.saved_tensors
        return *attention_gradients(grad, share, target, source, ctx.adj, ctx.slope), None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return with_models(_Attention.apply, 2, info, in_dims, args)


def kernel_attention(target: Tensor, source: Tensor, adj: Adjacency, slope: float) -> Tensor:
    """See :func:`hyperboloid.kernels.additive_attention`."""
    out: Tensor = _Attention.apply(target.unsqueeze(0), source.unsqueeze(0), adj, slope)[0]
    return out.squeeze(0)


def kernel_shares(values: Tensor, adj: Adjacency, *, softmax: bool) -> Tensor:
    """See :func:`hyperboloid.kernels.row_softmax`, or :func:`hyperboloid.kernels.row_normalize`."""
    out: Tensor = _Shares.apply(values.unsqueeze(0), adj, softmax)[0]
    return out.squeeze(0)
