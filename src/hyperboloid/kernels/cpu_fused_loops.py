"""Numba loops of `lorentz_aggregate` for float32, the way there: formulas and names are those of `gpu_aggregate.py`.

Everything is summed in double precision. Four neighbours are taken at a time, so that what belongs to the row is read
and written a quarter as often. Loops work on the rows (or columns) from ``first`` to before ``last``.
"""

from __future__ import annotations

import math

import numpy as np

from hyperboloid.geometry.centroid import SAME

from .cpu_loops import CUT, TINY, Array, _inline, _legs, _length, _pair
from .threads import loop

#: The logarithm of a weight that is 0.
LOWEST = np.float32(-3e38)
#: Points of a row are so far out, and so close together, that the gap is this much smaller than what it is taken of.
TIGHT = 1e-8
#: Where the product of two cosh is smaller, a squared distance is right to ten digits after the point.
FAR = 1e6


@_inline
def _exp(x: np.float32) -> np.float32:
    """e^x for x ≤ 80, 0 below −87, by a polynomial: the library's would keep the loop from being vectorised."""
    there = np.float32(1.0) if x >= np.float32(-87.0) else np.float32(0.0)
    x = min(max(x, np.float32(-87.0)), np.float32(80.0))
    k = np.float32(np.rint(x * np.float32(1.4426950408889634)))
    r = x - k * np.float32(0.693359375)
    r = r + k * np.float32(2.12194440e-4)
    p = np.float32(1.0 / 5040)
    p = p * r + np.float32(1.0 / 720)
    p = p * r + np.float32(1.0 / 120)
    p = p * r + np.float32(1.0 / 24)
    p = p * r + np.float32(1.0 / 6)
    p = p * r + np.float32(0.5)
    p = (p * r * r + r + np.float32(1.0)) * there
    return p * np.int32((np.int32(k) + np.int32(127)) << np.int32(23)).view(np.float32)


@loop
def point_polar(first: int, last: int, u: Array, root: float, out: Array) -> None:
    """``(sinh r/n, sinh r, e^−r, n)`` of points."""
    for i in range(first, last):
        n = _length(u, i)
        s = math.sinh(min(n / root, CUT))
        out[i, 0] = s / n if n > TINY else 1 / root
        out[i, 1] = s
        out[i, 2] = 1 / (s + math.sqrt(1 + s * s))
        out[i, 3] = n


@loop
def feature_polar(first: int, last: int, x: Array, root: float, out: Array) -> None:
    """``(T, s)`` of attention features."""
    for i in range(first, last):
        n = _length(x, i)
        s = math.sinh(min(n / root, CUT))
        out[i, 0] = root * math.sqrt(1 + s * s)
        out[i, 1] = root * s / n if n > TINY else 1.0


@_inline
def _dots(x: Array, y: Array, other: Array, out: Array) -> None:
    """x·y_j of the neighbours j of one row."""
    d, count = x.shape[0], other.shape[0]
    whole = count // 4 * 4
    for k in range(0, whole, 4):
        j0, j1, j2, j3 = other[k], other[k + 1], other[k + 2], other[k + 3]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for c in range(d):
            s0 += x[c] * np.float64(y[j0, c])
            s1 += x[c] * np.float64(y[j1, c])
            s2 += x[c] * np.float64(y[j2, c])
            s3 += x[c] * np.float64(y[j3, c])
        out[k], out[k + 1], out[k + 2], out[k + 3] = s0, s1, s2, s3
    for k in range(whole, count):
        j0 = other[k]
        s0 = 0.0
        for c in range(d):
            s0 += x[c] * np.float64(y[j0, c])
        out[k] = s0


@_inline
def _sum(y: Array, other: Array, scale: Array, total: Array) -> None:
    """Σ_j scale_j y_j over the neighbours j of one row."""
    d, count = total.shape[0], other.shape[0]
    total[:] = 0.0
    whole = count // 4 * 4
    for k in range(0, whole, 4):
        j0, j1, j2, j3 = other[k], other[k + 1], other[k + 2], other[k + 3]
        s0, s1, s2, s3 = scale[k], scale[k + 1], scale[k + 2], scale[k + 3]
        for c in range(d):
            total[c] += (s0 * np.float64(y[j0, c]) + s1 * np.float64(y[j1, c])) + (
                s2 * np.float64(y[j2, c]) + s3 * np.float64(y[j3, c])
            )
    for k in range(whole, count):
        j0, s0 = other[k], scale[k]
        for c in range(d):
            total[c] += s0 * np.float64(y[j0, c])


@_inline
def _turned(space: Array, size: float, u: Array, j: int, length: float) -> float:
    """‖n − û_j‖² with n = s⃗/S."""
    square, inverse = 0.0, 1 / max(length, TINY)
    for c in range(u.shape[1]):
        m = space[c] / size - np.float64(u[j, c]) * inverse
        square += m * m
    return square if square > SAME else 0.0


@_inline
def _cancels(score: float, times: float, beta: float) -> bool:
    """Whether too little is left of a squared distance of two attention features, T_i T_j being what it is taken of."""
    return times > FAR * beta and -score < 2 * TIGHT * times


@_inline
def _careful(
    x: Array, i: int, stretch_x: float, y: Array, j: int, stretch_y: float, root: float
) -> tuple[float, float, float, float, float, float, float, float]:
    """What `geometry/chord.py` computes of two attention features."""
    n_x, n_y = _length(x, i), _length(y, j)
    d_n, of_x, of_y, turned = _pair(x, i, n_x, y, j, n_y)
    s_x, s_y = stretch_x * n_x / root, stretch_y * n_y / root
    a, tt = _legs(d_n, turned, s_x, s_y, root)
    return d_n, of_x, of_y, turned, a, tt, s_x, s_y


@_inline
def _longest(ptr: Array, first: int, last: int) -> int:
    most = 1
    for i in range(first, last):
        most = max(most, ptr[i + 1] - ptr[i])
    return most


@loop
def centroids(
    first: int, last: int, u: Array, points: Array, query: Array, query_polar: Array, key: Array, key_polar: Array,
    beta: float, weight: Array, keep: Array, ptr: Array, col: Array, cap: float, shared: bool,
    out: Array, space: Array, state: Array, score: Array,
) -> None:  # fmt: skip
    """Scores and centroids; ``key``, ``weight`` and ``keep`` are empty where there are none.

    Where rows and columns share their features, a node's score with itself is 0; far out it would be rounding.
    """
    root = math.sqrt(beta)
    longest = _longest(ptr, first, last)
    dots, scale = np.empty(longest, np.float64), np.empty(longest, np.float64)
    w = np.empty(longest, np.float32)
    x = np.empty(key.shape[1], np.float64)
    attention, weighted, kept = key.shape[0] > 0, weight.shape[0] > 0, keep.shape[0] > 0
    for i in range(first, last):
        start, stop = ptr[i], ptr[i + 1]
        cols = col[start:stop]
        count = cols.shape[0]
        if attention:
            time, stretch = query_polar[i, 0], query_polar[i, 1]
            for c in range(x.shape[0]):
                x[c] = stretch * np.float64(query[i, c])
            _dots(x, key, cols, dots)
            scores, latest = score[start:stop], 0.0
            for k in range(count):
                mu = 2 * (beta - time * key_polar[cols[k], 0] + key_polar[cols[k], 1] * dots[k])
                mu = 0.0 if shared and cols[k] == i else mu
                scores[k] = w[k] = np.float32(max(min(mu, 0.0), -cap))
                latest = max(latest, key_polar[cols[k], 0])
            if time * latest > FAR * beta:
                for k in range(count):
                    j = cols[k]
                    if _cancels(scores[k], time * key_polar[j, 0], beta) and not (shared and j == i):
                        _d, _i, _j, _t, a, tt, _si, _sj = _careful(query, i, stretch, key, j, key_polar[j, 1], root)
                        scores[k] = w[k] = np.float32(max(-(a * a + tt), -cap))
        else:
            for k in range(count):
                w[k] = np.float32(0)
        top = LOWEST
        if weighted or kept:
            for k in range(count):
                there = (not kept or keep[start + k]) and (not weighted or weight[start + k] > 0)
                logarithm = w[k] + np.float32(math.log(weight[start + k])) if weighted and there else w[k]
                top = max(top, logarithm) if there else top
        else:
            for k in range(count):
                top = max(top, w[k])
        for k in range(count):
            w[k] = _exp(w[k] - top)
        if weighted:
            for k in range(count):
                w[k] *= weight[start + k]
        if kept:
            for k in range(count):
                w[k] = w[k] if keep[start + k] else np.float32(0)
        total, near = 0.0, 0.0
        for k in range(count):
            wide = np.float64(w[k])
            scale[k] = wide * points[cols[k], 0]
            total += wide * points[cols[k], 1]
            near += wide * points[cols[k], 2]
        _sum(u, cols, scale, space[i])
        square = 0.0
        for c in range(u.shape[1]):
            square += space[i, c] * space[i, c]
        size = math.sqrt(square)
        gap = near + max(total - size, 0.0)
        tight = gap < TIGHT * total
        if tight:
            gap = near
            for k in range(count):
                j = cols[k]
                if w[k] > 0:
                    gap += np.float64(w[k]) * points[j, 1] * _turned(space[i], size, u, j, points[j, 3]) / 2
        gap = gap if gap > 0 else 1.0
        factor = root / 2 * math.log1p(2 * size / gap) / max(size, TINY)
        for c in range(u.shape[1]):
            out[i, c] = factor * space[i, c]
        state[i, 0], state[i, 1], state[i, 2] = size, -gap if tight else gap, top if top > LOWEST else 0.0
