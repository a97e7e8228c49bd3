"""Sums of logarithms over a graph's rows for float32 on a GPU, of one model or of many."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .adjacency import Adjacency
from .fused import with_models


class _Tangent(torch.autograd.Function):
    """Of rows ``(M, num_rows, d)``, columns ``(M, num_cols, d)``, β ``(M,)``, weights and entries ``(M, …, E)``."""

    @staticmethod
    def forward(*tensors: Tensor) -> tuple[Tensor, ...]:
        from .gpu_tangent import tangent_sums

        return tangent_sums(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)  # no zeros for what is not differentiable
        ctx.save_for_backward(*inputs, *output[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        from .gpu_tangent import tangent_gradients

        return *tangent_gradients(grad, *ctx.saved_tensors), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return with_models(_Tangent.apply, 5, info, in_dims, args)


def tangent_aggregate(target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.tangent_aggregate`."""
    given = (target, u, beta.reshape(()), weight.to(u.dtype), adj.ends)
    out: Tensor = _Tangent.apply(*(t.unsqueeze(0) for t in given))[0]
    return out.squeeze(0)
