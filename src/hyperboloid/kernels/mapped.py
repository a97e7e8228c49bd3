"""The axis of models that :func:`torch.func.vmap` maps over; what they share has none."""

from __future__ import annotations

from typing import Any


def in_front(tensor: Any, dim: int | None) -> Any:
    """A tensor with the axis in front, if it has it; what is no tensor has none."""
    return tensor if dim is None else tensor.movedim(dim, 0)


def for_each(tensor: Any, dim: int | None, models: int) -> Any:
    """A tensor with the axis in front; of one that they share all models see the same numbers; None stays None."""
    if tensor is None:
        return None
    return tensor.expand(models, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
