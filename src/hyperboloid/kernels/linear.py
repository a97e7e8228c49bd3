"""The linear map; on a GPU by the products of `gpu_linear.py`, for many models on a CPU by those of `cpu_linear.py`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hyperboloid.function import Function

from .backend import chosen_backend, kernels_for
from .mapped import in_front


def _backend(t: Tensor) -> Any:
    """The module that multiplies."""
    return kernels_for(t, "gpu_linear", "cpu_linear")


class _Linear(Function):
    """X Wᵀ ``(M, N, d)`` for X ``(M, N, k)`` and W ``(M, d, k)``, or of a single pair without M."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        out: Tensor = _backend(x).row_product(x, weight)
        return out

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
        out: Tensor = _backend(x).tall_product(a, x)
        return out

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
    return x.dtype == torch.float32 and chosen_backend(x) == "triton" and _plain(x, weight)


def _plain(x: Tensor, weight: Tensor | None) -> bool:
    """Whether features ``(N, k)`` are an ordinary matrix of float32 or float64, and a weight ``(d, k)`` fits."""
    if weight is not None and (weight.dtype, weight.device, weight.size(-1)) != (x.dtype, x.device, x.size(-1)):
        return False
    ordinary = x.dtype in (torch.float32, torch.float64) and x.dim() == 2 and x.layout == torch.strided
    return ordinary and not torch.is_autocast_enabled(x.device.type)


def _of_many_on_cpu(x: Tensor, weight: Tensor) -> bool:
    """Whether these are of many models on a CPU; of a single one torch's own product is as fast."""
    if chosen_backend(x) != "cpu":
        return False
    return any(torch._C._functorch.is_batchedtensor(t) for t in (x, weight)) and _plain(x, weight)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b ``(N, d)`` for ``(N, k)``, ``(d, k)`` and ``(d,)``."""
    if takes_kernels(x, weight) or _of_many_on_cpu(x, weight):
        out: Tensor = _Linear.apply(x, weight)
        return out if bias is None else out + bias
    return torch.nn.functional.linear(x, weight, bias)
