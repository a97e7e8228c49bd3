"""Gradients by hand, which cannot be differentiated once more, and say so."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from hyperboloid.function import Function

Backward = Callable[..., Any]


class _Last(Function):
    """The first ``count`` tensors as they are; where any of them is differentiated, it is refused."""

    generate_vmap_rule = True

    @staticmethod
    def forward(count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(t.clone() for t in tensors[:count])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> Any:
        raise RuntimeError(
            "This gradient is computed by hand and cannot be differentiated once more; centroids, sums and distances "
            "over a graph have a second derivative under hyperboloid.kernels.use_backend('reference')."
        )


class _Opened:
    """A context whose tensors have been unpacked; under checkpointing they are to be had once only."""

    def __init__(self, ctx: Any) -> None:
        self._ctx = ctx
        self.saved_tensors = ctx.saved_tensors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)


def first_order(backward: Backward) -> Backward:
    """A ``backward`` whose results may not be differentiated.

    Unlike torch's ``once_differentiable`` it refuses that too where the gradient that comes in needs none itself, as
    after a sum. There torch takes the results for constants, and second derivatives are silently wrong.
    """

    @wraps(backward)
    def refusing(ctx: Any, *grads: Any) -> Any:
        if not torch.is_grad_enabled():
            return backward(ctx, *grads)
        ctx = _Opened(ctx)
        with torch.no_grad():
            found = backward(ctx, *grads)
        results = found if isinstance(found, tuple) else (found,)
        places = [i for i, t in enumerate(results) if t is not None]
        # what they depend on makes them need a gradient
        sources = [t for t in (*grads, *ctx.saved_tensors) if isinstance(t, Tensor) and t.is_floating_point()]
        last = _Last.apply(len(places), *(results[i] for i in places), *sources)
        out = list(results)
        for i, t in zip(places, last, strict=True):
            out[i] = t
        return tuple(out) if isinstance(found, tuple) else out[0]

    return refusing
