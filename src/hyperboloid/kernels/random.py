"""Random masks from a counter-based hash of (seed, epoch, call, element).

There is no generator state: a model draws the same masks alone, in a batch of models, on any device, and after a
resumed run. Inside :func:`random_stream` the masks follow its seed and epoch; outside, torch's global generator.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

_BITS = 24  # a float32 in [0, 1) has this many


def _signed(constant: int) -> int:
    """A 32-bit constant as the int32 with the same bits."""
    return constant - (1 << 32) if constant >= 1 << 31 else constant


def hash32(x: Tensor) -> Tensor:
    """Mix the bits of int32 numbers: two rounds of xor-shift and multiply, all modulo 2³²."""
    x = x ^ ((x >> 16) & 0xFFFF)
    x = x * _signed(0x7FEB352D)
    x = x ^ ((x >> 15) & 0x1FFFF)
    x = x * _signed(0x846CA68B)
    return x ^ ((x >> 16) & 0xFFFF)


def fold(key: Tensor, number: int | Tensor) -> Tensor:
    """A new int32 key from a key and a number."""
    return hash32(hash32(key) + torch.as_tensor(number, dtype=torch.int32, device=key.device))


class _Stream:
    """The masks of one training step: the n-th call gets the n-th key."""

    def __init__(self, seed: int | Tensor, epoch: int) -> None:
        self._key = fold(torch.as_tensor(seed, dtype=torch.int32), epoch)
        self._calls = 0

    def next_key(self) -> Tensor:
        self._calls += 1
        return fold(self._key, self._calls)


_active: ContextVar[_Stream | None] = ContextVar("random_stream", default=None)


@contextmanager
def random_stream(seed: int | Tensor, epoch: int) -> Iterator[None]:
    """Draw every mask inside from (seed, epoch) alone."""
    token = _active.set(_Stream(seed, epoch))
    try:
        yield
    finally:
        _active.reset(token)


def keep_mask(shape: torch.Size | tuple[int, ...], p: float | Tensor, device: torch.device) -> Tensor | None:
    """A bool tensor that is False with probability ``p``, element by element; None when p is the number 0.

    The key is drawn in any case, so that one call's mask does not depend on another call's probability.
    """
    stream = _active.get()
    if stream is None:
        key = torch.randint(-(2**31), 2**31, (), dtype=torch.int64).to(torch.int32)
    else:
        key = stream.next_key()
    if not isinstance(p, Tensor) and p == 0:
        return None
    count = torch.arange(torch.Size(shape).numel(), dtype=torch.int32, device=device)
    bits = (hash32(count + key.to(device)) >> (32 - _BITS)) & ((1 << _BITS) - 1)
    return (bits >= p * (1 << _BITS)).view(shape)


def dropout(x: Tensor, p: float | Tensor, training: bool) -> Tensor:
    """Zero elements of ``x`` with probability ``p`` and scale the rest by 1/(1 − p)."""
    keep = keep_mask(x.shape, p, x.device) if training else None
    return x if keep is None else x * keep / (1 - p)
