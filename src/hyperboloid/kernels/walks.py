"""Random walks over the rows of a graph, by a numba loop (compiled at its first use, then cached on disk)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, np.dtype[Any]]


#: By which the states of Steele's SplitMix64 follow each other.
STEP = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, inline="always")
def mixed(x: np.uint64) -> np.uint64:
    """The 64 random bits of a state."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, inline="always")
def _uniform(key: int, counter: int) -> float:
    """A number in [0, 1) that depends on nothing but the two given."""
    return np.float64(mixed(np.uint64(key) + np.uint64(counter) * STEP) >> np.uint64(11)) / 9007199254740992.0


@njit(cache=True)
def random_walks(rowptr: Array, col: Array, below: Array, start: Array, length: int, key: int) -> Array:
    """Walks ``(W, length)`` int64 from the nodes ``start`` ``(W,)``; −1 after a node without neighbours.

    Args:
        rowptr, col: the neighbourhoods, see :class:`Adjacency`.
        below: ``(E + 1,)`` cumulative weights of the entries from 0 on, a step being as likely as its weight; empty for
            steps that are equally likely.
        start: first nodes.
        length: number of nodes of a walk.
        key: fixes everything that is drawn.
    """
    walks = np.full((start.shape[0], length), -1, np.int64)
    for w in range(start.shape[0]):
        here = start[w]
        walks[w, 0] = here
        for step in range(1, length):
            first, end = rowptr[here], rowptr[here + 1]
            if first == end:
                break
            share = _uniform(key, w * length + step)
            if below.shape[0] == 0:
                entry = first + np.int64(share * (end - first))
            else:
                reached = below[first] + share * (below[end] - below[first])
                entry, after = first, end  # the last entry with below ≤ reached
                while after - entry > 1:
                    middle = (entry + after) // 2
                    if below[middle] <= reached:
                        entry = middle
                    else:
                        after = middle
            here = col[min(entry, end - 1)]
            walks[w, step] = here
    return walks
