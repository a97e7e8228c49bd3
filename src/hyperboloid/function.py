"""Torch's functions that bring their own gradient, called with less ado."""

from __future__ import annotations

import inspect
from typing import Any

import torch


class Function(torch.autograd.Function):
    """Torch looks at the parameters of ``forward`` in every call, which takes longer than many a forward does.

    Here they are looked up once for each class.
    """

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        forward = cls.__dict__.get("forward")
        if isinstance(forward, staticmethod):
            forward.__func__.__signature__ = inspect.signature(forward.__func__)  # type: ignore[attr-defined]
