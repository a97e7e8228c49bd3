"""Finding where the first non-finite number came from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from hyperboloid.errors import TrainingError


def finite(tensors: list[Tensor]) -> bool:
    """Whether every number of every tensor is finite."""
    return all(bool(torch.isfinite(t).all()) for t in tensors)


def blame(encoder: nn.Module, rerun: Callable[[], object], epoch: int) -> TrainingError:
    """Run the failed step once more and name the first parameter or layer that holds a non-finite number.

    Args:
        encoder: the model, its parameters as they were when the step failed.
        rerun: a function that repeats the forward pass and the backward pass.
        epoch: for the message.
    """
    for name, parameter in encoder.named_parameters():
        if not finite([parameter]):
            return TrainingError(f"Epoch {epoch}: parameter {name} is not finite; try a smaller learning rate.")
    found: list[str] = []

    def look(name: str) -> Any:
        def hook(module: nn.Module, _inputs: Any, output: Any) -> None:
            if isinstance(output, Tensor) and not finite([output]):
                found.append(f"{name} ({type(module).__name__})")

        return hook

    handles = [m.register_forward_hook(look(name)) for name, m in encoder.named_modules() if name]
    try:
        rerun()
    finally:
        for handle in handles:
            handle.remove()
    if found:
        return TrainingError(
            f"Epoch {epoch}: the output of layer {found[0]} is not finite; try a smaller learning rate."
        )
    for name, parameter in encoder.named_parameters():
        if parameter.grad is not None and not finite([parameter.grad]):
            return TrainingError(f"Epoch {epoch}: the gradient of {name} is not finite; try a smaller learning rate.")
    return TrainingError(f"Epoch {epoch}: the loss is not finite; try a smaller learning rate.")
