"""Random masks from a counter-based hash of (seed, epoch, call, element).

There is no generator state: a model draws the same masks alone, in a batch of models, on any device, and after a
resumed run. Inside :func:`random_stream` the masks follow its seed and epoch; outside, torch's global generator.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import NamedTuple, overload

import torch
from torch import Tensor

from hyperboloid.geometry.precision import single

from . import masks
from .backend import chosen_backend

BITS = 24  # of a random number: a float32 in [0, 1) has this many


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


def hash32_int(x: int) -> int:
    """:func:`hash32` of one number, its bits given and returned as 0 … 2³² − 1; a tensor of one would take longer."""
    x ^= x >> 16
    x = x * 0x7FEB352D & 0xFFFFFFFF
    x ^= x >> 15
    x = x * 0x846CA68B & 0xFFFFFFFF
    return x ^ (x >> 16)


Key = int | Tensor  # the bits of an int32: a plain number, or a tensor where every model of a batch has its own


@overload
def fold(key: int, number: int) -> int: ...


@overload
def fold(key: Key, number: Key) -> Key: ...


def fold(key: Key, number: Key) -> Key:
    """A new key from a key and a number."""
    if isinstance(key, Tensor):
        if chosen_backend(key) == "triton":
            from . import gpu_random

            return gpu_random.fold(key, number)
        return hash32(hash32(key) + number)
    if isinstance(number, Tensor):
        return hash32(number + _signed(hash32_int(key & 0xFFFFFFFF)))
    return hash32_int((hash32_int(key & 0xFFFFFFFF) + number) & 0xFFFFFFFF)


def random_numbers(key: Key, count: int, device: torch.device) -> Tensor:
    """Whole numbers from 0 to 2⁶² − 1, ``(count,)`` int64, or ``(M, count)`` for keys ``(M,)``."""
    start = key.to(device).unsqueeze(-1) if isinstance(key, Tensor) else _signed(key)
    bits = hash32(torch.arange(2 * count, dtype=torch.int32, device=device) + start).long() & 0x7FFFFFFF
    return bits[..., :count] << 31 | bits[..., count:]


class _Turn(NamedTuple):
    """The key of one call; ``fold(key, number)`` where models have their own, which a kernel does by itself."""

    key: Tensor | None
    number: int

    @property
    def folded(self) -> Key:
        return self.number if self.key is None else fold(self.key, self.number)


class _Stream:
    """The masks of one training step: the n-th call gets the n-th key."""

    def __init__(self, seed: Key, epoch: Key) -> None:
        self._seed, self._epoch = seed, epoch
        self._calls = 0

    @cached_property
    def _key(self) -> Key:
        return fold(self._seed, self._epoch)

    def take_turn(self, nothing: bool) -> _Turn | None:
        """The key of this call; None if it draws ``nothing``."""
        self._calls += 1
        if nothing:
            return None
        key = self._key
        return _Turn(key, self._calls) if isinstance(key, Tensor) else _Turn(None, fold(key, self._calls))


_active: ContextVar[_Stream | None] = ContextVar("random_stream", default=None)


@contextmanager
def random_stream(seed: Key, epoch: Key) -> Iterator[None]:
    """Draw every mask inside from (seed, epoch) alone; tensors are int32."""
    token = _active.set(_Stream(seed, epoch))
    try:
        yield
    finally:
        _active.reset(token)


def _take_turn(p: float | Tensor) -> _Turn | None:
    """The key of this call; None when p is the number 0, and nothing is dropped.

    A stream counts the call in any case, so that one call's mask does not depend on another call's probability.
    """
    nothing, stream = _is_zero(p), _active.get()
    if stream is not None:
        return stream.take_turn(nothing)
    return None if nothing else _Turn(None, int(torch.randint(2**32, ())))


def _is_zero(p: float | Tensor) -> bool:
    return not isinstance(p, Tensor) and p == 0


class LateMask(NamedTuple):
    """Key, number and p, from which a kernel draws a mask; a number p is as exact there as it is here."""

    key: Tensor | None
    number: int
    p: Tensor


def late_mask(p: float | Tensor, device: torch.device) -> LateMask | None:
    """A mask that a kernel is to draw, of this call; None when p is the number 0."""
    turn = _take_turn(p)
    if turn is None:
        return None
    key = None if turn.key is None else turn.key.to(device)
    exact = single(p).detach() if isinstance(p, Tensor) else torch.full((), p, dtype=torch.float64, device=device)
    return LateMask(key, _signed(turn.number), exact)


def keep_mask(shape: torch.Size | tuple[int, ...], p: float | Tensor, device: torch.device) -> Tensor | None:
    """A bool tensor that is False with probability ``p``, element by element; None when p is the number 0.

    A compiled program cannot see the stream: its masks follow torch's own generator.
    """
    if torch.compiler.is_compiling():
        return None if _is_zero(p) else torch.rand(shape, device=device) >= p
    count = torch.Size(shape).numel()
    if chosen_backend(torch.empty(0, device=device)) != "reference":
        late = late_mask(p, device)
        return None if late is None else masks.keep_mask(*late, count).view(shape)
    turn = _take_turn(p)
    if turn is None:
        return None
    key = turn.folded
    # halves cannot count what masks are drawn from
    least = single(p) * (1 << BITS) if isinstance(p, Tensor) else math.ceil(p * (1 << BITS))
    start = key.to(device) if isinstance(key, Tensor) else _signed(key)
    bits = hash32(torch.arange(count, dtype=torch.int32, device=device) + start) >> (32 - BITS)
    return ((bits & ((1 << BITS) - 1)) >= least).view(shape)


def dropout(x: Tensor, p: float | Tensor, training: bool) -> Tensor:
    """Zero elements of ``x`` with probability ``p`` and scale the rest by 1/(1 − p)."""
    if not training:
        return x
    if chosen_backend(x) != "reference" and x.dtype in (torch.float32, torch.float64):
        late = late_mask(p, x.device)
        return x if late is None else masks.dropout(x, *late)
    keep = keep_mask(x.shape, p, x.device)
    return x if keep is None else x * keep / (1 - p)
