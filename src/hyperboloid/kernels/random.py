"""Random masks from a counter-based hash of (seed, epoch, call, element).

There is no generator state: a model draws the same masks alone, in a batch of models, on any device, and after a
resumed run. Inside :func:`random_stream` the masks follow its seed and epoch; outside, torch's global generator.
"""

from __future__ import annotations

import math
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
    from .dispatch import chosen_backend

    if chosen_backend(x) == "triton":
        from . import gpu_random

        return gpu_random.hash32(x)
    x = x ^ ((x >> 16) & 0xFFFF)
    x = x * _signed(0x7FEB352D)
    x = x ^ ((x >> 15) & 0x1FFFF)
    x = x * _signed(0x846CA68B)
    return x ^ ((x >> 16) & 0xFFFF)


def hash32_int(x: int) -> int:
    """:func:`hash32` of one number, its bits given and returned as 0 … 2³² − 1; a tensor of one would take longer."""
    x ^= x >> 16
    x = x * 0x7FEB352D & 0xFFFFFFFF
    x ^= x >> 15
    x = x * 0x846CA68B & 0xFFFFFFFF
    return x ^ (x >> 16)


Key = int | Tensor  # the bits of an int32: a plain number, or a tensor where every model of a batch has its own


def fold(key: Key, number: Key) -> Key:
    """A new key from a key and a number."""
    if isinstance(key, Tensor):
        return hash32(hash32(key) + number)
    if isinstance(number, Tensor):
        return hash32(number + _signed(hash32_int(key & 0xFFFFFFFF)))
    return hash32_int((hash32_int(key & 0xFFFFFFFF) + number) & 0xFFFFFFFF)


def random_numbers(key: Key, count: int, device: torch.device) -> Tensor:
    """Whole numbers from 0 to 2⁶² − 1, ``(count,)`` int64, or ``(M, count)`` for keys ``(M,)``."""
    start = key.to(device).unsqueeze(-1) if isinstance(key, Tensor) else _signed(key)
    bits = hash32(torch.arange(2 * count, dtype=torch.int32, device=device) + start).long() & 0x7FFFFFFF
    return bits[..., :count] << 31 | bits[..., count:]


class _Stream:
    """The masks of one training step: the n-th call gets the n-th key."""

    def __init__(self, seed: Key, epoch: Key) -> None:
        self._key = fold(seed, epoch)
        self._calls = 0

    def next_key(self) -> Key:
        self._calls += 1
        return fold(self._key, self._calls)


_active: ContextVar[_Stream | None] = ContextVar("random_stream", default=None)


@contextmanager
def random_stream(seed: Key, epoch: Key) -> Iterator[None]:
    """Draw every mask inside from (seed, epoch) alone; tensors are int32."""
    token = _active.set(_Stream(seed, epoch))
    try:
        yield
    finally:
        _active.reset(token)


def keep_mask(shape: torch.Size | tuple[int, ...], p: float | Tensor, device: torch.device) -> Tensor | None:
    """A bool tensor that is False with probability ``p``, element by element; None when p is the number 0.

    A stream gives its key in any case, so that one call's mask does not depend on another call's probability. A
    compiled program cannot see the stream: its masks follow torch's own generator.
    """
    nothing = not isinstance(p, Tensor) and p == 0
    if torch.compiler.is_compiling():
        return None if nothing else torch.rand(shape, device=device) >= p
    stream = _active.get()
    if stream is None and nothing:
        return None
    key = int(torch.randint(2**32, ())) if stream is None else stream.next_key()
    if nothing:
        return None
    count = torch.Size(shape).numel()
    if isinstance(key, int) and not isinstance(p, Tensor) and device.type == "cpu":
        from . import cpu_loops

        mask = cpu_loops.keep_mask(count, key, 32 - _BITS, math.ceil(p * (1 << _BITS)))
        return torch.from_numpy(mask).view(shape)
    start = key.to(device) if isinstance(key, Tensor) else _signed(key)
    bits = hash32(torch.arange(count, dtype=torch.int32, device=device) + start) >> (32 - _BITS)
    return ((bits & ((1 << _BITS) - 1)) >= p * (1 << _BITS)).view(shape)


def dropout(x: Tensor, p: float | Tensor, training: bool) -> Tensor:
    """Zero elements of ``x`` with probability ``p`` and scale the rest by 1/(1 − p)."""
    keep = keep_mask(x.shape, p, x.device) if training else None
    return x if keep is None else x * keep / (1 - p)
