"""Skip-gram with negative sampling, by a numba loop (compiled at its first use, then cached on disk).

Vectors of embeddings are short. Libraries for words call BLAS for each product; a loop that becomes a few instructions
is three to four times as fast for 4 to 32 numbers (`benchmarks/skip_gram.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .walks import STEP, mixed

Array = np.ndarray[Any, np.dtype[Any]]

_HALF = np.uint64(32)  # of a random number's bits
_FRACTION = np.uint64((1 << 24) - 1)  # bits that a float32 holds
#: Logarithms of factors in [1, 2] are taken of their product, so many of them at a time.
_FACTORS = 512


@njit(cache=True)
def alias_table(weight: Array) -> tuple[Array, Array]:
    """Walker's tables for draws as likely as their weights ``(N,)``: one comparison for each, whatever N.

    Returns:
        For each of N equally likely columns the share, in units of 2⁻²⁴, that draws the column itself ``(N,)``, and
        who is drawn otherwise ``(N,)``.
    """
    count = weight.shape[0]
    left = weight * (count / weight.sum())
    share, alias = np.full(count, np.float32(1 << 24)), np.arange(count)
    poor, rich = np.empty(count, np.int64), np.empty(count, np.int64)
    num_poor = num_rich = 0
    for i in range(count):
        if left[i] < 1:
            poor[num_poor], num_poor = i, num_poor + 1
        else:
            rich[num_rich], num_rich = i, num_rich + 1
    while num_poor and num_rich:
        i, j = poor[num_poor - 1], rich[num_rich - 1]
        share[i], alias[i] = left[i] * (1 << 24), j
        left[j] -= 1 - left[i]
        num_poor -= 1
        if left[j] < 1:
            num_rich -= 1
            poor[num_poor], num_poor = j, num_poor + 1
    return share, alias


@njit(cache=True, inline="always")
def _drawn(bits: np.uint64, share: Array, alias: Array) -> Any:
    """One draw: the upper bits choose a column, the lower ones between it and its alias."""
    column = np.int64(((bits >> _HALF) * np.uint64(share.shape[0])) >> _HALF)
    return column if np.float32(bits & _FRACTION) < share[column] else alias[column]


# sums may be taken in any order, else they are not vectorised
@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def skip_gram(
    walks: Array, vectors: Array, contexts: Array, share: Array, alias: Array, window: int, negatives: int,
    first: float, last: float, key: int,
) -> tuple[float, int]:  # fmt: skip
    """Learn from some walks, pair by pair; the vectors are changed.

    For every node of a walk and each other node at most r steps away, r drawn from 1 … window, a step of gradient
    descent on :math:`-\\log \\sigma(v_i^\\top c_j) - \\sum_n \\log \\sigma(-v_i^\\top c_n)`. A negative n that is j
    itself is left out.

    Args:
        walks: ``(W, L)`` nodes, −1 after a walk's end.
        vectors: ``(N, h)`` float32, v.
        contexts: ``(N, h)`` float32, c.
        share, alias: :func:`alias_table` of how likely a node is a negative.
        window: see above.
        negatives: their number.
        first, last: learning rates of the first walk and after the last one; those in between lie on a line.
        key: fixes everything that is drawn.

    Returns:
        The sum of all losses, and how many nodes the walks visit.
    """
    num_walks, length = walks.shape
    width, one = vectors.shape[1], np.float32(1)
    change = np.empty(width, np.float32)
    state = mixed(np.uint64(key))
    loss, factors, product, visited = 0.0, 0, 1.0, 0
    for w in range(num_walks):
        lr = np.float32(first + (last - first) * w / num_walks)
        for i in range(length):
            here = walks[w, i]
            if here < 0:
                break
            visited += 1
            state += STEP
            reach: Any = 1 + np.int64(mixed(state) % np.uint64(window))
            for j in range(max(0, i - reach), min(length, i + reach + 1)):
                other = walks[w, j]
                if other < 0:
                    break
                if j == i:
                    continue
                v = vectors[other]
                change[:] = 0
                for n in range(negatives + 1):
                    target = here
                    if n > 0:
                        state += STEP
                        target = _drawn(mixed(state), share, alias)
                        if target == here:
                            continue
                    c = contexts[target]
                    dot = np.float32(0)
                    for k in range(width):
                        dot += v[k] * c[k]
                    rest = np.exp(-abs(dot))
                    larger = one / (one + rest)  # σ(|v·c|)
                    sigmoid = larger if dot >= 0 else one - larger
                    step = lr * (one - sigmoid) if n == 0 else -lr * sigmoid
                    # −log σ(x) = log(1 + e^−|x|) + max(−x, 0)
                    product *= 1 + np.float64(rest)
                    factors += 1
                    loss += float(max(-dot if n == 0 else dot, np.float32(0)))
                    if factors == _FACTORS:
                        loss += np.log(product)
                        factors, product = 0, 1.0
                    for k in range(width):
                        change[k] += step * c[k]
                        c[k] += step * v[k]
                for k in range(width):
                    v[k] += change[k]
    return loss + np.log(product), visited
