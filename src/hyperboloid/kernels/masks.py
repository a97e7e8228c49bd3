"""Random masks by kernels, of one model or of many: `gpu_random.py` and `cpu_random.py`.

A mask is a function of its key, so that the gradient of dropout draws it again and nothing is kept. Under
:func:`torch.func.vmap` one call serves all models.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hyperboloid.function import Function

from .backend import kernels_for
from .mapped import for_each


def _backend(p: Tensor) -> Any:
    """The module that computes it."""
    return kernels_for(p, "gpu_random", "cpu_random")


def _is_wrapped(t: Tensor | None) -> bool:
    """Whether it is of many models, or otherwise torch.func's."""
    return t is not None and torch._C._functorch.is_functorch_wrapped_tensor(t)


class _KeepMask(Function):
    @staticmethod
    def forward(key: Tensor | None, number: int, p: Tensor, count: int) -> Tensor:
        out: Tensor = _backend(p).keep_mask(key, number, p, count)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(info: Any, in_dims: Any, key: Tensor | None, number: int, p: Tensor, count: int) -> tuple[Tensor, int]:
        key, p = (for_each(t, in_dims[at], info.batch_size) for t, at in ((key, 0), (p, 2)))
        return _KeepMask.apply(key, number, p, count), 0


class _Dropout(Function):
    @staticmethod
    def forward(x: Tensor, key: Tensor | None, number: int, p: Tensor) -> Tensor:
        out: Tensor = _backend(p).dropout(x, key, number, p)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, key, ctx.number, p = inputs
        ctx.save_for_backward(key, p)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        key, p = ctx.saved_tensors
        again = _Dropout.apply if torch.is_grad_enabled() or _is_wrapped(grad) else _backend(p).dropout
        return again(grad, key, ctx.number, p), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, key: Tensor | None, number: int, p: Tensor) -> tuple[Tensor, int]:
        x, key, p = (for_each(t, in_dims[at], info.batch_size) for t, at in ((x, 0), (key, 1), (p, 3)))
        return _Dropout.apply(x, key, number, p), 0


def keep_mask(key: Tensor | None, number: int, p: Tensor, count: int) -> Tensor:
    """A mask ``(count,)`` that is False with probability ``p``.

    Args:
        key: scalar; None if ``number`` is the mask's key.
        number: an int32 that is folded into the key.
        p: scalar.
        count: number of elements.
    """
    draw = _KeepMask.apply if _is_wrapped(key) or _is_wrapped(p) else _backend(p).keep_mask  # which takes less ado
    out: Tensor = draw(key, number, p, count)
    return out


def dropout(x: Tensor, key: Tensor | None, number: int, p: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.random.dropout`; ``key``, ``number`` and ``p`` are those of :func:`keep_mask`."""
    out: Tensor = _Dropout.apply(x, key, number, p)
    return out
