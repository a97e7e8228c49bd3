"""Cross-entropy of edges and of as many non-edges."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from hyperboloid.errors import InputError
from hyperboloid.function import Function

from .backend import chosen_backend
from .mapped import in_front


class _EdgeLoss(Function):
    """Of models ``(…, P)``, on a GPU: one pass there and one back, where torch takes ten; and its slopes ``(…, P)``."""

    @staticmethod
    def forward(logits: Tensor) -> tuple[Tensor, Tensor]:
        from .gpu_training import edge_losses

        return edge_losses(logits)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*inputs, output[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> Tensor:
        logits, slopes = ctx.saved_tensors
        if torch.is_grad_enabled():  # a gradient that is differentiated once more is plain torch's
            signs = _signs(logits.dtype, logits.device)
            each = torch.sigmoid(logits.unflatten(-1, (2, -1)) * signs) * signs
            slopes = each.flatten(-2) / (logits.size(-1) // 2)
        gradient: Tensor = grad.unsqueeze(-1) * slopes
        return gradient

    @staticmethod
    def vmap(info: Any, in_dims: Any, logits: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        return _EdgeLoss.apply(in_front(logits, in_dims[0])), (0, 0)


@cache
def _signs(dtype: torch.dtype, device: torch.device) -> Tensor:
    """Of edges and of non-edges ``(2, 1)``."""
    return torch.tensor([[-1.0], [1.0]], dtype=dtype, device=device)


def edge_loss(logits: Tensor) -> Tensor:
    """Mean cross-entropy of edges plus that of non-edges, ``(…, P)`` to ``(…)``.

    Args:
        logits: that there is an edge; first those of P/2 edges, then those of as many non-edges.
    """
    if logits.size(-1) % 2:
        raise InputError(f"edge_loss takes as many edges as non-edges, not {logits.size(-1)} pairs in all.")
    if chosen_backend(logits) == "triton" and logits.numel() and logits.dtype in (torch.float32, torch.float64):
        loss: Tensor = _EdgeLoss.apply(logits)[0]
        return loss
    return F.softplus(logits.unflatten(-1, (2, -1)) * _signs(logits.dtype, logits.device)).mean(-1).sum(-1)
