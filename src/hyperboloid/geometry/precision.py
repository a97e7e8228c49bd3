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
    """t, in float32 at least."""
    return t.to(torch.promote_types(t.dtype, torch.float32))


def narrowed(out: Tensor, dtype: torch.dtype) -> Tensor:
    """Results in the half precision of what was given, but for autocast, where such operations give float32."""
    if dtype not in HALVES or not out.is_floating_point() or is_autocast(out):
        return out
    return out.to(dtype)


def is_autocast(t: Tensor) -> bool:
    """Whether autocast is on where ``t`` lies."""
    kind = t.device.type
    return torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)


def in_single(space: Space) -> Space:
    """A class whose methods compute in float32 what they are given in half precision.

    Where all that they are given is, so is what they give.
    """
    for name, method in list(vars(space).items()):
        if callable(method) and not name.startswith("_"):
            setattr(space, name, _in_single(method))
    return space


def _in_single(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        given = [a.dtype for a in (*args, *options.values()) if isinstance(a, Tensor) and a.is_floating_point()]
        if not any(dtype in HALVES for dtype in given):
            return method(self, *args, **options)
        wide = [single(a) if isinstance(a, Tensor) else a for a in args]
        options = {name: single(a) if isinstance(a, Tensor) else a for name, a in options.items()}
        out = method(self, *wide, **options)
        whole = all(dtype in HALVES for dtype in given)
        return narrowed(out, given[0]) if whole and isinstance(out, Tensor) else out

    return run
