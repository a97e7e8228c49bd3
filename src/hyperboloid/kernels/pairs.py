"""Squared distances of pairs of nodes for float32, of one model or of many, by kernels that gather and scatter."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from hyperboloid.first_order import first_order
from hyperboloid.function import Function

from .backend import kernels_for
from .fused import keep_for_gradient, with_models


def _backend(t: Tensor) -> Any:
    """The module that computes it."""
    return kernels_for(t, "gpu_pairs", "cpu_pairs")


class _PairSquares(Function):
    """Of models ``(M, N, d)``, each with its pairs ``(M, 2, P)`` and β ``(M,)``; and what the gradient needs."""

    @staticmethod
    def forward(z: Tensor, pairs: Tensor, beta: Tensor, lorentz: bool) -> tuple[Tensor, ...]:
        out: tuple[Tensor, ...] = _backend(z).pair_squares(z, pairs, beta, lorentz)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.lorentz = inputs
        keep_for_gradient(ctx, tensors, output)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        z, pairs, beta, *needed = ctx.saved_tensors
        to_z, to_beta = _backend(z).pair_gradients(grad, z, pairs, beta, ctx.lorentz, *needed)
        return to_z, None, to_beta, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return with_models(_PairSquares.apply, 3, info, in_dims, args)


class _FlatSquares(Function):
    """Of models ``(M, N, d)`` with their pairs ``(M, 2, P)``."""

    @staticmethod
    def forward(z: Tensor, pairs: Tensor) -> tuple[Tensor]:
        return (_backend(z).flat_pair_squares(z, pairs),)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _backend(grad).flat_pair_gradients(grad, *ctx.saved_tensors), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return with_models(_FlatSquares.apply, 2, info, in_dims, args)


def flat_squares(z: Tensor, pairs: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.pair_sqdist`, for flat space."""
    out: Tensor = _FlatSquares.apply(z.unsqueeze(0), pairs.unsqueeze(0))[0]
    return out.squeeze(0)


def pair_squares(z: Tensor, pairs: Tensor, beta: Tensor, lorentz: bool) -> Tensor:
    """See :func:`hyperboloid.kernels.pair_sqdist`."""
    out: Tensor = _PairSquares.apply(z.unsqueeze(0), pairs.unsqueeze(0), beta.reshape(1), lorentz)[0]
    return out.squeeze(0)
