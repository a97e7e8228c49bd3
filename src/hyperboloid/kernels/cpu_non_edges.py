"""Random non-edges as one compiled loop: in torch they are forty passes over all pairs, and a search from the start."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from .cpu_loops import Array
from .cpu_random import hashed
from .random import Key
from .threads import loop, over_models, over_range

#: Pairs that go through the phases of :func:`_random_non_edges` together; but for the search they are vectorised.
TOGETHER = 512


@loop
def _random_non_edges(
    first: int, last: int, key: int, below: Array, start: Array, shift: int, non_edges: int, low: Array, high: Array
) -> None:
    """The two ends of pairs ``(count,)`` each; ``below`` are the non-edges below each edge."""
    inverse = 1 / np.float64(non_edges)
    for begin in range(first, last, TOGETHER):
        end = min(begin + TOGETHER, last)
        lows, highs = low[begin:end], high[begin:end]
        of_upper, of_lower = key + begin, key + low.shape[0] + begin
        for p in range(lows.shape[0]):
            upper = np.int64(hashed(of_upper + p) & np.uint32(0x7FFFFFFF))
            lower = np.int64(hashed(of_lower + p) & np.uint32(0x7FFFFFFF))
            # the remainder x mod non_edges for 0 ≤ x < 2⁶²; a quotient in double precision is off by 2⁻⁵¹ of itself
            x = upper << 31 | lower
            x -= np.int64(np.float64(x) * inverse) * non_edges
            x -= np.int64(np.float64(x) * inverse) * non_edges
            x = x + non_edges if x < 0 else x
            lows[p] = x - non_edges if x >= non_edges else x
        for p in range(lows.shape[0]):
            k = lows[p]
            # the edges before the k-th non-edge have at most k non-edges below; all of those in earlier buckets do
            before, after = start[k >> shift], start[(k >> shift) + 1]
            while before < after:
                middle = (before + after) >> 1
                if below[middle] <= k:
                    before = middle + 1
                else:
                    after = middle
            lows[p] = k + before
        for p in range(lows.shape[0]):
            rank = lows[p]
            v = np.int64((1 + math.sqrt(8 * rank + 1)) / 2)
            # rounding in the square root can miss the integer by one in either direction
            v = v - 1 if v * (v - 1) >> 1 > rank else v
            v = v + 1 if v * (v + 1) >> 1 <= rank else v
            lows[p], highs[p] = rank - (v * (v - 1) >> 1), v


def random_non_edges(
    edges: Tensor, key: Key, count: int, below: Tensor, non_edges: int, buckets: tuple[int, Tensor, int]
) -> Tensor:
    """See :func:`hyperboloid.kernels.gpu_non_edges.random_non_edges`; here there may be any number of edges."""
    shift, start, _ = buckets
    shape, numbers = (key.shape, key.flatten().tolist()) if isinstance(key, Tensor) else ((), [key])
    first = edges.size(1)
    out = edges.new_empty(*shape, 2, first + count)
    out[..., :first] = edges
    of_keys = out.view(len(numbers), 2, first + count).numpy()
    known = below.numpy(), start.numpy(), shift, non_edges

    def one(m: int) -> None:
        low, high = of_keys[m, :, first:]
        over_range(_random_non_edges, count, 30, numbers[m], *known, low, high)

    over_models(one, len(numbers), 30 * count)
    return out
