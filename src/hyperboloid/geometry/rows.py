"""Operations on rows of vectors, one β for many rows: how they take an axis of models, and who is faster at them.

Geometry is plain torch. Where a compiled kernel does the same, `kernels` offers it here, and chord and gyrovector
difference ask for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from torch import Tensor

Gradients = tuple[Tensor, Tensor, Tensor]


class RowKernels(Protocol):
    """Values of rows ``(…, d)`` and gradients in u, v and β ``(numel,)``; β belongs to equally many rows each."""

    def chord(self, u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
        """d_L ``(…)``."""

    def chord_gradients(self, u: Tensor, v: Tensor, beta: Tensor, grad: Tensor) -> Gradients:
        """Gradients of d_L."""

    def gyro(self, u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
        """⊖u ⊕ v ``(…, d)``."""

    def gyro_gradients(self, u: Tensor, v: Tensor, beta: Tensor, grad: Tensor) -> Gradients:
        """Gradients of ⊖u ⊕ v."""


def _none(u: Tensor) -> RowKernels | None:
    return None


_choose: Callable[[Tensor], RowKernels | None] = _none


def offer(choose: Callable[[Tensor], RowKernels | None]) -> None:
    """Let ``choose`` say which kernels, if any, take rows that lie where its argument lies."""
    global _choose
    _choose = choose


def kernels_for(u: Tensor, beta: Tensor) -> RowKernels | None:
    """Kernels for these rows, where there are some and β belongs to equally many rows each."""
    shape = (*[1] * (u.dim() - 1 - beta.dim()), *beta.shape)  # as broadcasting aligns it
    while shape and shape[-1] == 1:
        shape = shape[:-1]
    return _choose(u) if shape == u.shape[: len(shape)] else None


def batched(function: Any, info: Any, in_dims: Any, u: Tensor, v: Tensor, beta: Tensor) -> tuple[Tensor, int]:
    """A vmap rule for ``function(u, v, beta)``: the mapped axis becomes one more leading axis of rows."""
    u, v, beta = (
        t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)
        for t, dim in zip((u, v, beta), in_dims, strict=True)
    )
    beta = beta.reshape(info.batch_size, *[1] * (u.dim() - 1 - beta.dim()), *beta.shape[1:])
    return function.apply(u.contiguous(), v.contiguous(), beta.contiguous()), 0
