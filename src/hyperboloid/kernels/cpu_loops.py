"""Numba loops of the CPU backend: one pass over rows or columns of a graph, no array per edge but of scalars.

Inside, everything is double precision, whatever the inputs are. Formulas and names are those of `geometry/chord.py` and
`geometry/centroid.py`. The loops use one thread: OpenMP's threads wait for each other by spinning, so that two parallel
trainings on one machine took a hundred times longer, and on the paper's small graphs a second thread gained nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from hyperboloid.geometry.centroid import SAME

Array = np.ndarray[Any, np.dtype[Any]]

#: Radii are cut off here: products of two sinh stay far below the largest double.
CUT = 300.0
TINY = 1e-100
#: Distances and gradients stay below: a float32 could hold a thousand times more.
LARGEST = 3e35
#: Directions of two vectors of single precision, if they differ, do so in some coordinate by more than this part of it:
#: the products u_c v_k and v_c u_k have 48 bits, and must differ for some c and k. Less is rounding.
ONE_RAY = 2.0**-49

# sums may be reordered and contracted, NaN and inf keep their meaning
_options = {"cache": True, "fastmath": {"reassoc", "contract"}, "error_model": "numpy"}
_inline = njit(inline="always", **_options)
_loop = njit(**_options)


@_inline
def _pair(x: Array, i: int, n_x: float, y: Array, j: int, n_y: float) -> tuple[float, float, float, float]:
    """‖x_i‖ − ‖y_j‖, how much of x_i or of y_j (the shorter one) makes it up in x_i − y_j, and ‖Δ direction‖²."""
    dot = 0.0
    for c in range(x.shape[1]):
        p, q = np.float64(x[i, c]), np.float64(y[j, c])
        dot += (p - q) * (p + q)
    d_n = dot / max(n_x + n_y, TINY)
    slope = d_n / max(min(n_x, n_y), TINY)
    of_x, of_y = (0.0, slope) if n_x >= n_y else (slope, 0.0)
    square = 0.0
    for c in range(x.shape[1]):
        p, q = np.float64(x[i, c]), np.float64(y[j, c])
        turn = (p - q) - (of_x * p + of_y * q)
        square += turn * turn
    longer = max(n_x, n_y, TINY)
    if 0 < square < 2 * (ONE_RAY * longer) ** 2:  # far out the product with both sinh would make much of rounding
        square = 0.0
        for c in range(x.shape[1]):
            p, q = np.float64(x[i, c]), np.float64(y[j, c])
            turn = (p - q) - (of_x * p + of_y * q)
            square += turn * turn if abs(turn) > ONE_RAY * max(abs(p), abs(q)) else 0.0
    return d_n, of_x, of_y, square / (longer * longer)


@_inline
def held(x: float) -> float:
    """x, at most LARGEST in size."""
    return min(max(x, -LARGEST), LARGEST)


@_inline
def _radius(length: float, root: float) -> float:
    return min(length / root, CUT)


@_inline
def _legs(d_n: float, turned: float, sinh_x: float, sinh_y: float, root: float) -> tuple[float, float]:
    """a and t² of the chord."""
    a = 2 * root * math.sinh(min(max(d_n / root, -CUT), CUT) / 2)
    return a, root * root * sinh_x * sinh_y * turned


@_inline
def _length(x: Array, i: int) -> float:
    """‖x_i‖."""
    total = 0.0
    for c in range(x.shape[1]):
        total += np.float64(x[i, c]) ** 2
    return math.sqrt(total)


@_loop
def polar(x: Array, root: float) -> tuple[Array, Array]:
    """‖x_i‖ and sinh r_i, both ``(N,)``."""
    length, sinh = np.empty(x.shape[0], np.float64), np.empty(x.shape[0], np.float64)
    for i in range(x.shape[0]):
        length[i] = _length(x, i)
        sinh[i] = math.sinh(_radius(length[i], root))
    return length, sinh


@_loop
def attention_forward(
    query: Array, key: Array, rowptr: Array, col: Array, keep: Array, n_q: Array, s_q: Array, n_k: Array, s_k: Array,
    root: float, cap: float,
) -> Array:  # fmt: skip
    """softmax of −min(d_L², cap) over the kept entries of each row ``(E,)``; ``keep`` is empty for all."""
    alpha = np.empty(col.shape[0], np.float64)
    for i in range(rowptr.shape[0] - 1):
        top = -np.inf
        for e in range(rowptr[i], rowptr[i + 1]):
            if keep.shape[0] > 0 and not keep[e]:
                alpha[e] = -np.inf
                continue
            j = col[e]
            d_n, _, _, turned = _pair(query, i, n_q[i], key, j, n_k[j])
            a, tt = _legs(d_n, turned, s_q[i], s_k[j], root)
            alpha[e] = -min(a * a + tt, cap)
            top = max(top, alpha[e])
        total = 0.0
        for e in range(rowptr[i], rowptr[i + 1]):
            alpha[e] = math.exp(alpha[e] - top) if alpha[e] > -np.inf else 0.0
            total += alpha[e]
        for e in range(rowptr[i], rowptr[i + 1]):
            alpha[e] /= max(total, TINY)
    return alpha


@_inline
def _add_gradient(
    out: Array, x: Array, i: int, n_x: float, sinh_x: float, y: Array, j: int, n_y: float, sinh_y: float,
    d_n: float, of_x: float, of_y: float, turned: float, a: float, root: float, scale: float,
) -> None:  # fmt: skip
    """Add scale·∂d_L²/∂x_i to out ``(d,)``; the rest is what :func:`_pair` and :func:`_legs` gave."""
    d_r = min(max(d_n / root, -CUT), CUT)
    shown = max(n_x, TINY)
    sinhc = sinh_x / _radius(n_x, root) if n_x > TINY else 1.0
    sideways = 2 * scale * sinhc * sinh_y * root / max(n_x, n_y, TINY) if turned != 0 else 0.0
    cosh_x = math.sqrt(1 + sinh_x * sinh_x)
    radial = 2 * scale * (a * math.cosh(d_r / 2) + root * cosh_x * sinh_y * turned / 2) / shown
    dot = 0.0
    for c in range(x.shape[1]):
        p, q = np.float64(x[i, c]), np.float64(y[j, c])
        dot += ((p - q) - (of_x * p + of_y * q)) * p
    radial -= sideways * dot / (shown * shown)  # only the part of turn across x_i counts
    for c in range(x.shape[1]):
        p, q = np.float64(x[i, c]), np.float64(y[j, c])
        out[c] += radial * p + sideways * ((p - q) - (of_x * p + of_y * q))


@_inline
def _excess(r: float) -> float:
    """r·coth(r) − 1."""
    if r < 0.3:
        s = r * r
        return s / 3 * (1 - s / 15 * (1 - s * 2 / 21 * (1 - s / 10 * (1 - s * 10 / 99 * (1 - s * 691 / 6825)))))
    return r / math.tanh(r) - 1


@_loop
def attention_backward_rows(
    query: Array, key: Array, rowptr: Array, col: Array, n_q: Array, s_q: Array, n_k: Array, s_k: Array,
    root: float, cap: float, alpha: Array, grad: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Gradients in the squared distances ``(E,)``, in the queries ``(N, a)``, and in β by row ``(N,)``."""
    grad_square = np.zeros(col.shape[0], np.float64)
    grad_query = np.zeros(query.shape, np.float64)
    grad_beta = np.zeros(query.shape[0], np.float64)
    for i in range(rowptr.shape[0] - 1):
        mean = 0.0
        for e in range(rowptr[i], rowptr[i + 1]):
            mean += alpha[e] * np.float64(grad[e])
        excess_q = _excess(_radius(n_q[i], root))
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            scale = -alpha[e] * (np.float64(grad[e]) - mean)
            if scale == 0.0:
                continue
            d_n, of_x, of_y, turned = _pair(query, i, n_q[i], key, j, n_k[j])
            a, tt = _legs(d_n, turned, s_q[i], s_k[j], root)
            if a * a + tt >= cap:
                continue
            grad_square[e] = scale
            _add_gradient(
                grad_query[i], query, i, n_q[i], s_q[i], key, j, n_k[j], s_k[j], d_n, of_x, of_y, turned, a, root, scale
            )
            excess_k, excess_d = _excess(_radius(n_k[j], root)), _excess(min(abs(d_n) / root, CUT) / 2)
            grad_beta[i] -= scale * (a * a * excess_d + tt * (excess_q + excess_k) / 2) / (root * root)
    return grad_square, grad_query, grad_beta


@_loop
def attention_backward_cols(
    query: Array, key: Array, colptr: Array, row_t: Array, entry_t: Array, n_q: Array, s_q: Array, n_k: Array,
    s_k: Array, root: float, grad_square: Array,
) -> Array:  # fmt: skip
    """Gradient in the keys ``(N, a)``."""
    grad_key = np.zeros(key.shape, np.float64)
    for j in range(colptr.shape[0] - 1):
        for t in range(colptr[j], colptr[j + 1]):
            i, scale = row_t[t], grad_square[entry_t[t]]
            if scale != 0.0:
                d_n, of_x, of_y, turned = _pair(key, j, n_k[j], query, i, n_q[i])
                a, _ = _legs(d_n, turned, s_k[j], s_q[i], root)
                _add_gradient(
                    grad_key[j],
                    key,
                    j,
                    n_k[j],
                    s_k[j],
                    query,
                    i,
                    n_q[i],
                    s_q[i],
                    d_n,
                    of_x,
                    of_y,
                    turned,
                    a,
                    root,
                    scale,
                )
    return grad_key


@_loop
def centroid_forward(
    u: Array, n_u: Array, s_u: Array, rowptr: Array, col: Array, weight: Array
) -> tuple[Array, Array, Array, Array]:
    """Directions n ``(N, d)`` of the centroids, S and gap ``(N,)``, and the largest weight of each row ``(N,)``."""
    rows = rowptr.shape[0] - 1
    n = np.zeros((rows, u.shape[1]), np.float64)
    size, gap, largest = np.zeros(rows), np.ones(rows), np.ones(rows)
    for i in range(rows):
        top = 0.0
        for e in range(rowptr[i], rowptr[i + 1]):
            top = max(top, np.float64(weight[e]))
        if top <= 0.0:
            continue
        largest[i] = top
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            factor = weight[e] / top * s_u[j] / max(n_u[j], TINY)
            for c in range(u.shape[1]):
                n[i, c] += factor * np.float64(u[j, c])
        square = 0.0
        for c in range(u.shape[1]):
            square += n[i, c] * n[i, c]
        size[i] = math.sqrt(square)
        if size[i] > TINY:
            for c in range(u.shape[1]):
                n[i, c] /= size[i]
        elif u.shape[1] > 0:
            n[i, 0] = 1.0  # any unit vector will do
        total = 0.0
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            total += weight[e] / top * (_decay(s_u[j]) + s_u[j] * _spreading(u, j, n_u[j], n, i))
        gap[i] = total
    return n, size, gap, largest


@_inline
def _decay(sinh: float) -> float:
    """e^−r from sinh r."""
    return 1 / (sinh + math.sqrt(1 + sinh * sinh))


@_inline
def _spreading(u: Array, j: int, n_u: float, n: Array, i: int) -> float:
    """‖û_j − n_i‖²/2, with û = 0 at the origin; 0 where it is rounding."""
    inverse = 1 / max(n_u, TINY)
    total = 0.0
    for c in range(u.shape[1]):
        difference = np.float64(u[j, c]) * inverse - n[i, c]
        total += difference * difference
    return total / 2 if total > SAME else 0.0


@_loop
def centroid_value(n: Array, size: Array, gap: Array, root: float) -> Array:
    """Normal coordinates ½ √β log((gap + 2S)/gap) n ``(N, d)``."""
    out = np.empty(n.shape, np.float64)
    for i in range(n.shape[0]):
        factor = root / 2 * math.log1p(2 * size[i] / gap[i])
        for c in range(n.shape[1]):
            out[i, c] = factor * n[i, c]
    return out


@_loop
def centroid_backward_rows(
    u: Array, n_u: Array, s_u: Array, rowptr: Array, col: Array, n: Array, size: Array, gap: Array, largest: Array,
    root: float, grad: Array,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Gradients in s⃗ ``(N, d)`` and the gap ``(N,)``, in the weights ``(E,)``, and in the factor √β by row ``(N,)``."""
    grad_space = np.zeros(n.shape, np.float64)
    grad_gap, grad_root = np.zeros(n.shape[0]), np.zeros(n.shape[0])
    grad_weight = np.zeros(col.shape[0], np.float64)
    for i in range(n.shape[0]):
        if rowptr[i] == rowptr[i + 1]:
            continue
        along = 0.0
        for c in range(n.shape[1]):
            along += np.float64(grad[i, c]) * n[i, c]
        length = math.log1p(2 * size[i] / gap[i]) / 2
        outer = gap[i] + 2 * size[i]
        grad_root[i] = length * along
        grad_gap[i] = -root * size[i] / (gap[i] * outer) * along
        # size → 0: length/size → 1/gap
        across = root * (length / size[i] if size[i] > TINY else 1 / gap[i])
        radial = root / outer * along - across * along
        for c in range(n.shape[1]):
            grad_space[i, c] = radial * n[i, c] + across * np.float64(grad[i, c])
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            dot = 0.0
            for c in range(n.shape[1]):
                dot += grad_space[i, c] * np.float64(u[j, c])
            dot = dot / max(n_u[j], TINY) + grad_gap[i] * _spreading(u, j, n_u[j], n, i)
            grad_weight[e] = (s_u[j] * dot + grad_gap[i] * _decay(s_u[j])) / largest[i]
    return grad_space, grad_gap, grad_weight, grad_root


@_loop
def centroid_backward_cols(
    u: Array, n_u: Array, s_u: Array, colptr: Array, row_t: Array, entry_t: Array, weight: Array, n: Array,
    largest: Array, grad_space: Array, grad_gap: Array, root: float,
) -> tuple[Array, Array]:  # fmt: skip
    """Gradients in u ``(N, d)`` and in β by column ``(N,)``, the latter through the radii alone."""
    grad_u = np.zeros(u.shape, np.float64)
    grad_beta = np.zeros(u.shape[0])
    for j in range(u.shape[0]):
        inverse = 1 / max(n_u[j], TINY)
        grad_sinh, grad_decay = 0.0, 0.0
        for t in range(colptr[j], colptr[j + 1]):
            i = row_t[t]
            w = np.float64(weight[entry_t[t]]) / largest[i]
            spreading = _spreading(u, j, n_u[j], n, i)
            turning = grad_gap[i] if spreading > 0 else 0.0
            dot = 0.0
            for c in range(u.shape[1]):
                direction = np.float64(u[j, c]) * inverse
                dot += grad_space[i, c] * direction
                grad_u[j, c] += w * (grad_space[i, c] + turning * (direction - n[i, c]))
            grad_sinh += w * (dot + grad_gap[i] * spreading)
            grad_decay += w * grad_gap[i]
        grad_r = grad_sinh * math.sqrt(1 + s_u[j] * s_u[j]) - grad_decay * _decay(s_u[j])
        grad_beta[j] = -grad_r * _radius(n_u[j], root) / (2 * root * root)
        # grad_u holds the gradient in û over sinh r; now its part across û, stretched, and the radial part
        stretch = s_u[j] * inverse if n_u[j] > TINY else 1 / root
        dot = 0.0
        for c in range(u.shape[1]):
            dot += grad_u[j, c] * np.float64(u[j, c]) * inverse
        for c in range(u.shape[1]):
            direction = np.float64(u[j, c]) * inverse
            grad_u[j, c] = stretch * (grad_u[j, c] - dot * direction) + grad_r / root * direction
    return grad_u, grad_beta
