"""The linear map; on a GPU its products are those of `gpu_linear.py`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hyperboloid.function import Function

from .mapped import in_front


class _Linear(Function):
    """X Wᵀ ``(M, N, d)`` for X ``(M, N, k)`` and W ``(M, d, k)``, or of a single pair without M."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        from . import gpu_linear

        return gpu_linear.row_product(x, weight)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        (x, weight), (to_x, to_weight) = ctx.saved_tensors, ctx.needs_input_grad
        of_x = _Linear.apply(grad, weight.mT) if to_x else None
        return of_x, _TallProduct.apply(grad, x) if to_weight else None

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, weight: Tensor) -> tuple[Tensor, int]:
        x, weight = in_front(x, in_dims[0]), in_front(weight, in_dims[1])
        if (x.dim(), weight.dim()) == (2, 3):  # features of all models
            return _Linear.apply(x.expand(weight.size(0), *x.shape), weight), 0
        if (x.dim(), weight.dim()) == (3, 2):  # nodes of all models, as if they were of one
            return _Linear.apply(x.flatten(0, 1), weight).unflatten(0, x.shape[:2]), 0
        if None in in_dims or x.dim() > 3:  # models of models
            return x @ weight.mT, 0
        return _Linear.apply(x, weight), 0


class _TallProduct(Function):
    """Aᵀ X ``(M, c, k)`` of tall ``(M, N, c)`` and ``(M, N, k)``, or of a single pair without M."""

    @staticmethod
    def forward(a: Tensor, x: Tensor) -> Tensor:
        from . import gpu_linear

        return gpu_linear.tall_product(a, x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        (a, x), (to_a, to_x) = ctx.saved_tensors, ctx.needs_input_grad
        return _Linear.apply(x, grad) if to_a else None, _Linear.apply(a, grad.mT) if to_x else None

    @staticmethod
    def vmap(info: Any, in_dims: Any, a: Tensor, x: Tensor) -> tuple[Tensor, int]:
        a, x = in_front(a, in_dims[0]), in_front(x, in_dims[1])
        return a.mT @ x if None in in_dims or a.dim() > 3 else _TallProduct.apply(a, x), 0


def takes_kernels(x: Tensor, weight: Tensor | None = None) -> bool:
    """Whether kernels of a GPU multiply features ``(N, k)``; with a weight ``(d, k)``, whether it fits, too."""
    from .dispatch import chosen_backend

    if weight is not None and (weight.dtype, weight.device, weight.size(-1)) != (x.dtype, x.device, x.size(-1)):
        return False
    plain = x.dtype == torch.float32 and x.dim() == 2 and x.layout == torch.strided
    return plain and chosen_backend(x) == "triton" and not torch.is_autocast_enabled(x.device.type)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b ``(N, d)`` for ``(N, k)``, ``(d, k)`` and ``(d,)``."""
    if takes_kernels(x, weight):
        out: Tensor = _Linear.apply(x, weight)
        return out if bias is None else out + bias
    return torch.nn.functional.linear(x, weight, bias)
