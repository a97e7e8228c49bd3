"""Half precision: its numbers end too soon to compute with, so all of it is computed in float32."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

Space = TypeVar("Space", bound=type)

HALVES = (torch.float16, torch.bfloat16)


def single(t: Tensor) -> Tensor:
    """t, in float32 if it is of half precision."""
    return t.float() if t.dtype in HALVES else t


def narrowed(out: Tensor, dtype: torch.dtype) -> Tensor:
    """Results in the half precision of what was given, but for autocast, where such operations give float32."""
    halved = dtype in HALVES and out.is_floating_point() and not torch.is_autocast_enabled(out.device.type)
    return out.to(dtype) if halved else out


def in_single(space: Space) -> Space:
    """A class whose methods compute in float32 what they are given in half precision."""
    for name, method in list(vars(space).items()):
        if callable(method) and not name.startswith("_"):
            setattr(space, name, _in_single(method))
    return space


def _in_single(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        given = next((a.dtype for a in args if isinstance(a, Tensor) and a.dtype in HALVES), None)
        if given is None:
            return method(self, *args, **options)
        wide = [single(a) if isinstance(a, Tensor) else a for a in args]
        options = {name: single(a) if isinstance(a, Tensor) else a for name, a in options.items()}
        out = method(self, *wide, **options)
        return narrowed(out, given) if isinstance(out, Tensor) else out

    return run
