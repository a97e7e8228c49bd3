"""Cross-entropy of edges and of as many non-edges."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from .dispatch import chosen_backend


class _EdgeLoss(torch.autograd.Function):
    """Of models ``(…, P)``, on a GPU: one pass there and one back, where torch takes ten."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        from .gpu_training import edge_losses

        loss, slopes = edge_losses(logits)
        ctx.save_for_backward(slopes)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (slopes,) = ctx.saved_tensors
        gradient: Tensor = grad.unsqueeze(-1) * slopes
        return gradient


@cache
def _signs(dtype: torch.dtype, device: torch.device) -> Tensor:
    """Of edges and of non-edges ``(2, 1)``."""
    return torch.tensor([[-1.0], [1.0]], dtype=dtype, device=device)


def edge_loss(logits: Tensor) -> Tensor:
    """Mean cross-entropy of edges plus that of non-edges, ``(…, P)`` to ``(…)``.

    Args:
        logits: that there is an edge; first those of P/2 edges, then those of as many non-edges.
    """
    if chosen_backend(logits) == "triton" and logits.numel():
        loss: Tensor = _EdgeLoss.apply(logits)
        return loss
    return F.softplus(logits.unflatten(-1, (2, -1)) * _signs(logits.dtype, logits.device)).mean(-1).sum(-1)
