"""What a model is judged by; leading axes hold many models at once."""

from __future__ import annotations

import torch
from torch import Tensor


def roc_auc(positive: Tensor, negative: Tensor) -> Tensor:
    """Area under the ROC curve ``(…)``: the chance that a positive scores above a negative, ties counting half.

    Args:
        positive: scores ``(…, P)``.
        negative: scores ``(…, Q)``.
    """
    ranked, positive = negative.sort(dim=-1).values.contiguous(), positive.contiguous()
    below = torch.searchsorted(ranked, positive)
    not_above = torch.searchsorted(ranked, positive, right=True)
    return (below + not_above).double().mean(-1) / (2 * ranked.size(-1))


def accuracy(logits: Tensor, y: Tensor) -> Tensor:
    """Share ``(…)`` of rows of ``logits`` ``(…, N, C)`` whose largest entry is the class ``y`` ``(N,)``."""
    return (logits.argmax(-1) == y).double().mean(-1)
