"""Features that dropout thins out, not before a linear map multiplies them.

Models that are trained as one program share their features, but each drops its own. On a GPU the products of
`gpu_linear.py` draw a model's mask as they read the features, so that no model has a copy of them; elsewhere, and where
features have a gradient, dropout is done at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hyperboloid.function import Function

from . import masks
from .linear import linear, takes_kernels
from .mapped import for_each, in_front
from .random import LateMask, dropout, late_mask


@dataclass(frozen=True, eq=False)
class DroppedRows:
    """What dropout will leave of features.

    Attributes:
        x: all of them ``(N, k)``.
        mask: what is left of them.
    """

    x: Tensor
    mask: LateMask

    def at_once(self) -> Tensor:
        """What is left of them ``(N, k)``, as a tensor; a compiled program draws another mask, as always."""
        if torch.compiler.is_compiling():
            return dropout(self.x, self.mask.p, training=True)
        return _dropped(self.x, *self.mask)

    def matmul(self, weight: Tensor) -> Tensor:
        """X W for a dense ``(k, d)`` matrix W; differentiable in W."""
        weight = weight.t()
        if torch.compiler.is_compiling() or not takes_kernels(self.x, weight):
            return linear(self.at_once(), weight)  # which says what does not fit
        out: Tensor = _DroppedLinear.apply(self.x, weight, *self.mask)
        return out


def late_dropout(x: Tensor, p: float | Tensor, training: bool) -> Tensor | DroppedRows:
    """:func:`hyperboloid.kernels.dropout` of features ``(N, k)`` that a linear map is to take, which may do it."""
    constant = not x.requires_grad and not torch._C._functorch.is_functorch_wrapped_tensor(x)
    # what was made in inference mode cannot be kept for a gradient
    if training and constant and not torch.compiler.is_compiling() and not x.is_inference() and takes_kernels(x):
        mask = late_mask(p, x.device)
        return x if mask is None else DroppedRows(x, mask)
    return dropout(x, p, training)


def _dropped(x: Tensor, key: Tensor | None, number: int, p: Tensor) -> Tensor:
    """What dropout leaves ``(…, N, k)``; also of models of models, and of features that are not shared."""
    shape = torch.broadcast_shapes(x.shape[:-2], p.shape, () if key is None else key.shape)
    return masks.dropout(x.expand(*shape, *x.shape[-2:]), key, number, p.expand(shape))


class _DroppedLinear(Function):
    """Drop(X) Wᵀ ``(M, N, d)`` for X ``(N, k)`` and W ``(M, d, k)``, or of a single model without M."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, key: Tensor | None, number: int, p: Tensor) -> Tensor:
        from . import gpu_linear, gpu_random

        return gpu_linear.row_product(x, weight, gpu_random.Models(key, p, number))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, _, key, ctx.number, p = inputs
        ctx.save_for_backward(x, key, p)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, key, p = ctx.saved_tensors
        return None, _DroppedTall.apply(grad, x, key, ctx.number, p), None, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, x: Tensor, weight: Tensor, key: Tensor | None, number: int, p: Tensor
    ) -> tuple[Tensor, int]:
        weight, key, p = (for_each(t, in_dims[at], info.batch_size) for t, at in ((weight, 1), (key, 2), (p, 4)))
        if in_dims[0] is not None or weight.dim() > 3:
            return _dropped(in_front(x, in_dims[0]), key, number, p) @ weight.mT, 0
        return _DroppedLinear.apply(x, weight, key, number, p), 0


class _DroppedTall(Function):
    """Aᵀ Drop(X) ``(M, c, k)`` of tall ``(M, N, c)`` and ``(N, k)``, or of a single model without M."""

    @staticmethod
    def forward(a: Tensor, x: Tensor, key: Tensor | None, number: int, p: Tensor) -> Tensor:
        from . import gpu_linear, gpu_random

        return gpu_linear.tall_product(a, x, gpu_random.Models(key, p, number))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, x, key, ctx.number, p = inputs
        ctx.save_for_backward(x, key, p)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, key, p = ctx.saved_tensors
        return _DroppedLinear.apply(x, grad, key, ctx.number, p), None, None, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, a: Tensor, x: Tensor, key: Tensor | None, number: int, p: Tensor
    ) -> tuple[Tensor, int]:
        a, key, p = (for_each(t, in_dims[at], info.batch_size) for t, at in ((a, 0), (key, 2), (p, 4)))
        if in_dims[1] is not None or a.dim() > 3:
            return a.mT @ _dropped(in_front(x, in_dims[1]), key, number, p), 0
        return _DroppedTall.apply(a, x, key, number, p), 0
