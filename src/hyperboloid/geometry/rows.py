"""Operations on rows of vectors, one β for many rows: how they take an axis of models, and who is faster at them.

Geometry is plain torch. Where a compiled kernel does the same, `kernels` offers it here, and chord and gyrovector
sum ask for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

Gradients = tuple[Tensor, Tensor, Tensor]


class RowKernel(NamedTuple):
    """An operation on rows: ``values(u, v, β)``, and ``gradients(u, v, β, grad)`` in u, v and β ``(numel,)``."""

    values: Callable[[Tensor, Tensor, Tensor], Tensor]
    gradients: Callable[[Tensor, Tensor, Tensor, Tensor], Gradients]


Operation = Literal["chord", "sqdist", "gyro"]


def _none(operation: Operation, u: Tensor) -> RowKernel | None:
    return None


_choose: Callable[[Operation, Tensor], RowKernel | None] = _none


def offer(choose: Callable[[Operation, Tensor], RowKernel | None]) -> None:
    """Let ``choose`` say which kernel, if any, does an operation on rows that lie where its second argument lies."""
    global _choose
    _choose = choose


def kernel_for(operation: Operation, u: Tensor, beta: Tensor) -> RowKernel | None:
    """A kernel for these rows, if there is one: β must belong to equally many rows each."""
    shape = (*[1] * (u.dim() - 1 - beta.dim()), *beta.shape)  # as broadcasting aligns it
    while shape and shape[-1] == 1:
        shape = shape[:-1]
    return _choose(operation, u) if shape == u.shape[: len(shape)] else None


def has_kernel(operation: Operation, u: Tensor) -> bool:
    """Whether there are kernels for an operation on rows that lie where ``u`` lies."""
    return _choose(operation, u) is not None


def gradient_kernel_for(operation: Operation, u: Tensor, beta: Tensor) -> RowKernel | None:
    """The same for a gradient: one that shall be differentiated once more is plain torch's."""
    return None if torch.is_grad_enabled() else kernel_for(operation, u, beta)


def batched(function: Any, info: Any, in_dims: Any, u: Tensor, v: Tensor, beta: Tensor) -> tuple[Tensor, int]:
    """A vmap rule for ``function(u, v, beta)``: the mapped axis becomes one more leading axis of rows."""
    u, v, beta = (
        t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)
        for t, dim in zip((u, v, beta), in_dims, strict=True)
    )
    beta = beta.reshape(info.batch_size, *[1] * (u.dim() - 1 - beta.dim()), *beta.shape[1:])
    return function.apply(u.contiguous(), v.contiguous(), beta.contiguous()), 0
