"""Numba loops of `lorentz_aggregate` for float32, the way back; see `cpu_fused_loops.py`."""

from __future__ import annotations

import math

import numpy as np

from .cpu_fused_loops import FAR, _cancels, _careful, _dots, _exp, _longest, _sum, _turned
from .cpu_loops import CUT, TINY, Array, _add_gradient, _length, held
from .threads import loop


@loop
def row_gradients(
    first: int, last: int, grad: Array, space: Array, state: Array, beta: float, q: Array, to_gap: Array, by_row: Array
) -> None:
    """q ``(N, d)`` (of tight rows without n ∂L/∂g), ∂L/∂g ``(N,)``, and the gradient in the factor √β by row."""
    root = math.sqrt(beta)
    for i in range(first, last):
        size, gap = state[i, 0], abs(state[i, 1])
        half = math.log1p(2 * size / gap) / 2
        inverse = 1 / size if size > TINY else 0.0
        along = 0.0
        for c in range(grad.shape[1]):
            along += np.float64(grad[i, c]) * space[i, c] * inverse
        outer = 1 / (gap + 2 * size)
        to_gap[i] = -root * size / gap * outer * along
        across = root * (half * inverse if size > TINY else 1 / gap)  # S → 0: half/S → 1/gap
        of_n = ((root * outer - across) * along - (to_gap[i] if state[i, 1] > 0 else 0.0)) * inverse
        for c in range(grad.shape[1]):
            q[i, c] = of_n * space[i, c] + across * np.float64(grad[i, c])
        by_row[i, 0] = half * along


@loop
def entry_gradients(
    first: int, last: int, u: Array, points: Array, q: Array, to_gap: Array, space: Array, state: Array, score: Array,
    weight: Array, keep: Array, ptr: Array, col: Array, cap: float, shared: bool, w: Array, scale: Array,
    grad_weight: Array,
) -> None:  # fmt: skip
    """Weights of the entries, gradients in their squared distances, and in given weights; the last two if not empty.

    Weights in tight rows are stored with a minus.
    """
    dots = np.empty(_longest(ptr, first, last), np.float64)
    attention, weighted, kept = scale.shape[0] > 0, weight.shape[0] > 0, keep.shape[0] > 0
    for i in range(first, last):
        start, stop, top = ptr[i], ptr[i + 1], np.float32(state[i, 2])
        cols, ws = col[start:stop], w[start:stop]
        count = cols.shape[0]
        _dots(q[i], u, cols, dots)
        if attention:
            scores = score[start:stop]
            for k in range(count):
                ws[k] = _exp(scores[k] - top)
        else:
            ws[:] = _exp(-top)
        tight = state[i, 1] < 0
        if tight:
            for k in range(count):
                j = cols[k]
                turned = _turned(space[i], state[i, 0], u, j, points[j, 3])
                dots[k] = points[j, 0] * dots[k] + (points[j, 1] * turned / 2 + points[j, 2]) * to_gap[i]
        else:
            for k in range(count):
                dots[k] = points[cols[k], 0] * dots[k] + (points[cols[k], 1] + points[cols[k], 2]) * to_gap[i]
        if kept:
            for k in range(count):
                ws[k] = ws[k] if keep[start + k] else np.float32(0)
        if grad_weight.shape[0] > 0:
            for k in range(count):
                grad_weight[start + k] = held(ws[k] * dots[k])
        if weighted:
            for k in range(count):
                ws[k] *= weight[start + k]
        if attention:
            scales = scale[start:stop]
            for k in range(count):
                free = scores[k] > -cap and not (shared and cols[k] == i)
                scales[k] = held(-ws[k] * dots[k]) if free else 0.0
        if tight:
            for k in range(count):
                ws[k] = -ws[k]


@loop
def pull_features(
    first: int, last: int, x: Array, polar: Array, y: Array, other_polar: Array, beta: float, score: Array,
    scale: Array, ptr: Array, other: Array, entry: Array, role: int, add: bool, grad: Array, by_node: Array,
) -> None:  # fmt: skip
    """Gradient in attention features and its share of that in β; role 0 is a row, 1 a column, 2 a node that is both."""
    root = math.sqrt(beta)
    scales = np.empty(_longest(ptr, first, last), np.float64)
    space, careful = np.empty(x.shape[1], np.float64), np.empty(x.shape[1], np.float64)
    for i in range(first, last):
        start, stop = ptr[i], ptr[i + 1]
        others = other[start:stop]
        count = others.shape[0]
        if role == 1:
            for k in range(count):
                scales[k] = scale[entry[start + k]]
        else:
            for k in range(count):
                scales[k] = scale[start + k]
        if role == 2:
            for k in range(count):
                scales[k] += scale[entry[start + k]]
        careful[:] = 0.0
        timed, scaled, squares, latest = 0.0, 0.0, 0.0, 0.0
        for k in range(count):
            latest = max(latest, other_polar[others[k], 0])
        if polar[i, 0] * latest > FAR * beta:
            for k in range(count):
                j = others[k]
                mu = score[entry[start + k] if role == 1 else start + k]
                if scales[k] != 0 and _cancels(mu, polar[i, 0] * other_polar[j, 0], beta):
                    d_n, of_x, of_y, turned, a, tt, s_x, s_y = _careful(
                        x, i, polar[i, 1], y, j, other_polar[j, 1], root
                    )
                    n_x, n_y = _length(x, i), _length(y, j)
                    _add_gradient(careful, x, i, n_x, s_x, y, j, n_y, s_y, d_n, of_x, of_y, turned, a, root, scales[k])
                    squares += scales[k] * (a * a + tt)
                    scales[k] = 0.0
        for k in range(count):
            timed += scales[k] * other_polar[others[k], 0]
            scaled += scales[k]
            scales[k] *= other_polar[others[k], 1]
        _sum(y, others, scales, space)
        square, along = 0.0, 0.0
        for c in range(x.shape[1]):
            square += np.float64(x[i, c]) * np.float64(x[i, c])
            along += space[c] * np.float64(x[i, c])
        length = math.sqrt(square)
        inverse = 1 / max(length, TINY)
        along *= inverse
        time, stretch = polar[i, 0], polar[i, 1]
        sine = stretch * length
        radial = 2 / root * (sine * timed - time * along)
        share = -radial * length
        if role != 1:
            share += (4 * (time * timed - sine * along) - 4 * beta * scaled + 2 * squares) / (1 if role == 0 else 2)
        of_x = (radial + 2 * stretch * along) * inverse
        for c in range(x.shape[1]):
            share -= careful[c] * np.float64(x[i, c])
            own = of_x * np.float64(x[i, c]) - 2 * stretch * space[c] + careful[c]
            grad[i, c] = held(own + np.float64(grad[i, c]) if add else own)
        by_node[i, 1] = share


@loop
def pull_points(
    first: int, last: int, u: Array, points: Array, beta: float, q: Array, to_gap: Array, space: Array, state: Array,
    w: Array, ptr: Array, row: Array, entry: Array, grad: Array, by_column: Array,
) -> None:  # fmt: skip
    """Gradient in the points of columns, and its share of that in β.

    A tight row i has no n ∂L/∂g in its q. With m = n_i − û_j, n·û = 1 − ‖m‖²/2: what it pulls along û_j is
    ∂L/∂g (‖m‖²/2 cosh r − e^−r), and −∂L/∂g m across.
    """
    root = math.sqrt(beta)
    scales = np.empty(_longest(ptr, first, last), np.float64)
    pulled, moved = np.empty(u.shape[1], np.float64), np.empty(u.shape[1], np.float64)
    for j in range(first, last):
        start, stop = ptr[j], ptr[j + 1]
        rows = row[start:stop]
        stretch, s, length = points[j, 0], points[j, 1], points[j, 3]
        cosh, inverse = math.sqrt(1 + s * s), 1 / max(length, TINY)
        weight, least = 0.0, 0.0
        for k in range(rows.shape[0]):
            scales[k] = w[entry[start + k]]
            weight += scales[k] * to_gap[rows[k]]
            least = min(least, scales[k])
        radial = 0.0
        if least < 0:
            moved[:] = 0.0
            weight = 0.0
            for k in range(rows.shape[0]):
                i, pull = rows[k], abs(scales[k]) * to_gap[rows[k]]
                if scales[k] >= 0:
                    weight += pull
                else:
                    scales[k] = -scales[k]
                    turned = _turned(space[i], state[i, 0], u, j, length)
                    radial += pull * (turned / 2 * cosh - points[j, 2])
                    if turned > 0:
                        for c in range(u.shape[1]):
                            moved[c] -= pull * (space[i, c] / state[i, 0] - np.float64(u[j, c]) * inverse)
        _sum(q, rows, scales, pulled)
        along = 0.0
        for c in range(u.shape[1]):
            along += pulled[c] * np.float64(u[j, c]) * inverse
        to_r = along * cosh + weight * s + radial
        if least < 0:
            for c in range(u.shape[1]):
                pulled[c] += moved[c]
                along += moved[c] * np.float64(u[j, c]) * inverse
        of_u = (to_r / root - stretch * along) * inverse
        for c in range(u.shape[1]):
            grad[j, c] = held(of_u * np.float64(u[j, c]) + stretch * pulled[c])
        by_column[j, 0] = -to_r * min(length / root, CUT)
