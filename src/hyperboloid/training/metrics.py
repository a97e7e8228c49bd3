"""What a model is judged by."""

from __future__ import annotations

import torch
from torch import Tensor


def roc_auc(positive: Tensor, negative: Tensor) -> float:
    """Area under the ROC curve: the chance that a positive scores above a negative, ties counting half.

    Args:
        positive: scores ``(P,)``.
        negative: scores ``(Q,)``.
    """
    ranked = negative.sort().values
    below = torch.searchsorted(ranked, positive)
    not_above = torch.searchsorted(ranked, positive, right=True)
    return float((below + not_above).double().mean()) / (2 * ranked.numel())


def accuracy(logits: Tensor, y: Tensor) -> float:
    """Share of rows of ``logits`` ``(N, C)`` whose largest entry is the class ``y`` ``(N,)``."""
    return float((logits.argmax(-1) == y).double().mean())
