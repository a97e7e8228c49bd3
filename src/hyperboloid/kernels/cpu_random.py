"""Random masks on a CPU: one compiled pass, where torch takes a dozen. The numbers are those of `random.py`."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .cpu_loops import Array, _inline
from .random import BITS, hash32
from .threads import loop, over_models, over_range


@_inline
def hashed(x: int) -> np.uint32:
    """:func:`hyperboloid.kernels.random.hash32` of a number, of which the lower 32 bits count."""
    h = np.uint32(x)
    h = np.uint32(h ^ (h >> np.uint32(16))) * np.uint32(0x7FEB352D)
    h = np.uint32(h)
    h = np.uint32(h ^ (h >> np.uint32(15))) * np.uint32(0x846CA68B)
    h = np.uint32(h)
    return np.uint32(h ^ (h >> np.uint32(16)))


@loop
def _mask(first: int, last: int, key: int, shift: int, least: int, out: Array) -> None:
    """Whether the upper bits of the hash of key + 0, key + 1, … are at least ``least``."""
    part = out[first:last]  # whose indices are never negative, as numba sees: only then is the loop vectorised
    for i in range(part.shape[0]):
        part[i] = (hashed(key + first + i) >> np.uint32(shift)) >= np.uint32(least)


@loop
def _dropped(first: int, last: int, x: Array, key: int, shift: int, least: int, share: float, out: Array) -> None:
    """Numbers x over ``share`` where the mask is True, else 0 times x."""
    given, part = x[first:last], out[first:last]
    for i in range(part.shape[0]):
        keep = (hashed(key + first + i) >> np.uint32(shift)) >= np.uint32(least)
        part[i] = given[i] * np.float32(keep) / share


def _models(key: Tensor | None, number: int, p: Tensor) -> tuple[tuple[int, ...], Array, Array, Array]:
    """The shape of the models, and of each the key of its mask, the least bits that are kept, and p."""
    of_p = p.numpy()
    keys = np.array(number) if key is None else hash32(hash32(key) + number).numpy()
    least = np.ceil(of_p.astype(np.float64) * (1 << BITS)).astype(np.int64)
    keys, least, of_p = np.broadcast_arrays(keys, least, of_p)
    return keys.shape, keys.ravel(), least.ravel(), of_p.ravel()


def keep_mask(key: Tensor | None, number: int, p: Tensor, count: int) -> Tensor:
    """See :func:`hyperboloid.kernels.masks.keep_mask`; with keys or p of models ``(M,)`` the masks have that axis."""
    shape, keys, least, _ = _models(key, number, p)
    out = torch.empty(*shape, count, dtype=torch.bool, device=p.device)
    masks = out.view(len(keys), count).numpy()

    def one(m: int) -> None:
        over_range(_mask, count, 8, keys[m], 32 - BITS, least[m], masks[m])

    over_models(one, len(keys), 8 * count)
    return out


def dropout(x: Tensor, key: Tensor | None, number: int, p: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.masks.dropout`; with keys or p of models ``(M,)`` x has that axis, too."""
    _, keys, least, of_p = _models(key, number, p)
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    count = x.numel() // max(len(keys), 1)
    given, left = (t.reshape(len(keys), count).numpy() for t in (x.detach(), out))
    shares = (1 - of_p).astype(left.dtype)

    def one(m: int) -> None:
        over_range(_dropped, count, 8, given[m], keys[m], 32 - BITS, least[m], shares[m], left[m])

    over_models(one, len(keys), 8 * count)
    return out
