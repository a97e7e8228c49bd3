"""The linear map, which torch multiplies, but for models of a GPU that each have their own features."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class _Linear(torch.autograd.Function):
    """X Wᵀ ``(M, N, d)`` for X ``(M, N, k)`` and W ``(M, d, k)``, or of a single pair without M."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        from . import gpu_linear

        return gpu_linear.row_product(x, weight, transposed=True)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        (x, weight), (to_x, to_weight) = ctx.saved_tensors, ctx.needs_input_grad
        if torch.is_grad_enabled():  # these gradients are to have some themselves
            return grad @ weight if to_x else None, grad.mT @ x if to_weight else None
        from . import gpu_linear

        of_x = gpu_linear.row_product(grad, weight, transposed=False) if to_x else None
        return of_x, gpu_linear.tall_product(grad, x) if to_weight else None

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, weight: Tensor) -> tuple[Tensor, int]:
        if in_dims[0] is None:  # features of all models: one product with all their weights side by side
            models = weight.movedim(in_dims[1], 0)
            out = x @ models.flatten(0, 1).mT
            return out.unflatten(-1, models.shape[:2]), x.dim() - 1
        x = x.movedim(in_dims[0], 0)
        if in_dims[1] is None:  # nodes of all models, as if they were of one
            return _Linear.apply(x.flatten(0, 1), weight).unflatten(0, x.shape[:2]), 0
        return _Linear.apply(x, weight.movedim(in_dims[1], 0)), 0


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b ``(N, d)`` for ``(N, k)``, ``(d, k)`` and ``(d,)``."""
    from .dispatch import chosen_backend

    fast = x.dim() == 2 and x.dtype == torch.float32 and not torch.is_autocast_enabled(x.device.type)
    if not fast or chosen_backend(x) != "triton":
        return torch.nn.functional.linear(x, weight, bias)
    out: Tensor = _Linear.apply(x, weight)
    return out if bias is None else out + bias
