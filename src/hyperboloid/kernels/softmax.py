"""Softmax over the rows of a graph for float32 on a GPU, of one model or of many."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .adjacency import Adjacency
from .fused import with_models


class _Softmax(torch.autograd.Function):
    """Of scores ``(M, E)`` of a graph's entries."""

    @staticmethod
    def forward(score: Tensor, adj: Adjacency) -> tuple[Tensor]:
        from .gpu_softmax import softmax

        return (softmax(score, adj),)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.adj = inputs[1]
        ctx.save_for_backward(*output)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        from .gpu_softmax import softmax_gradient

        (alpha,) = ctx.saved_tensors
        return softmax_gradient(grad, alpha, ctx.adj), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return with_models(_Softmax.apply, 1, info, in_dims, args)


def kernel_softmax(score: Tensor, adj: Adjacency) -> Tensor:
    """See :func:`hyperboloid.kernels.row_softmax`."""
    out: Tensor = _Softmax.apply(score.unsqueeze(0), adj)[0]
    return out.squeeze(0)
