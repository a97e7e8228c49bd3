"""Numba loops of the CPU backend for logarithms at the nodes, T = log_i(j) carried to the origin.

Formulas and names, those of the gradients too, are from `geometry/gyro.py`; everything is in units of √β. Vectors of a
single pair live in small scratch arrays: nothing is kept per edge but scalars.
"""

from __future__ import annotations

import math

import numpy as np

from .cpu_loops import CUT, TINY, Array, _excess, _inline, _legs, _loop, _pair


@_inline
def _apart(
    x: Array, i: int, n_x: float, s_x: float, y: Array, j: int, n_y: float, s_y: float, root: float, turn: Array
) -> tuple[float, float, float, float]:
    """Write x̂ − ŷ into ``turn`` ``(d,)``; returns its square, sinh(r_x − r_y), θ and θ/sinh θ.

    Both sinh follow from those of half the angle: each would cost as much as the vectors.
    """
    d_n, of_x, of_y, turned = _pair(x, i, n_x, y, j, n_y)
    a, tt = _legs(d_n, turned, s_x, s_y, root)
    half, q = a / (2 * root), math.sqrt(a * a + tt) / (2 * root)
    theta = 2 * math.asinh(q)
    longer = 1 / max(n_x, n_y, TINY)
    for c in range(turn.shape[0]):
        p, o = np.float64(x[i, c]), np.float64(y[j, c])
        turn[c] = ((p - o) - (of_x * p + of_y * o)) * longer
    shrink = theta / (2 * q * math.sqrt(1 + q * q)) if theta > 1e-8 else 1.0
    return turned, 2 * half * math.sqrt(1 + half * half), theta, shrink


@_inline
def _write_log(
    x: Array, i: int, n_x: float, s_x: float, s_y: float, turn: Array, turned: float, d_sinh: float, shrink: float,
    sign: float, out: Array,
) -> None:  # fmt: skip
    """Write log_{x_i}(y_j)/√β into ``out`` ``(d,)``, which may be ``turn``; its sign is −1 where it is ŷ − x̂."""
    inverse = 1 / n_x if n_x > TINY else 0.0  # at the origin the direction counts as 0
    dot = 0.0
    for c in range(out.shape[0]):
        dot += turn[c] * np.float64(x[i, c])
    across = sign * shrink * s_y
    radial = shrink * (sign * d_sinh + turned / 2 * s_y * math.sqrt(1 + s_x * s_x)) * inverse
    radial -= across * dot * inverse * inverse
    for c in range(out.shape[0]):
        out[c] = -radial * np.float64(x[i, c]) - across * turn[c]


@_inline
def _log(
    x: Array, i: int, n_x: float, s_x: float, y: Array, j: int, n_y: float, s_y: float, root: float, out: Array
) -> float:
    """Write log_{x_i}(y_j)/√β into ``out`` ``(d,)`` and return its length θ."""
    turned, d_sinh, theta, shrink = _apart(x, i, n_x, s_x, y, j, n_y, s_y, root, out)
    _write_log(x, i, n_x, s_x, s_y, out, turned, d_sinh, shrink, 1.0, out)
    return theta


@_loop
def tangent_forward(
    x: Array, n_x: Array, s_x: Array, y: Array, n_y: Array, s_y: Array, rowptr: Array, col: Array, weight: Array,
    root: float,
) -> Array:  # fmt: skip
    """Σ_j w_ij log_i(j) of every row ``(N, d)``."""
    out = np.zeros(x.shape, np.float64)
    t = np.empty(x.shape[1], np.float64)
    for i in range(x.shape[0]):
        for e in range(rowptr[i], rowptr[i + 1]):
            j, w = col[e], root * np.float64(weight[e])
            _log(x, i, n_x[i], s_x[i], y, j, n_y[j], s_y[j], root, t)
            for c in range(t.shape[0]):
                out[i, c] += w * t[c]
    return out


@_inline
def _to_coordinates(out: Array, x: Array, i: int, n_x: float, s_x: float, root: float) -> None:
    """Turn a gradient in the orthonormal frame at x_i into one in its normal coordinates, in place."""
    if n_x <= TINY:
        return
    stretch = s_x / min(n_x / root, CUT)
    dot = 0.0
    for c in range(x.shape[1]):
        dot += out[i, c] * np.float64(x[i, c])
    dot *= (1 - stretch) / (n_x * n_x)
    for c in range(x.shape[1]):
        out[i, c] = stretch * out[i, c] + dot * np.float64(x[i, c])


@_loop
def tangent_backward_rows(
    x: Array, n_x: Array, s_x: Array, y: Array, n_y: Array, s_y: Array, rowptr: Array, col: Array, weight: Array,
    root: float, grad: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Gradients in the rows' points ``(N, d)``, in the weights ``(E,)``, and half of that in log β by row ``(N,)``."""
    grad_x = np.zeros(x.shape, np.float64)
    grad_weight = np.zeros(col.shape[0], np.float64)
    grad_beta = np.zeros(x.shape[0], np.float64)
    t = np.empty(x.shape[1], np.float64)
    for i in range(x.shape[0]):
        r = min(n_x[i] / root, CUT)
        turning = math.tanh(r / 2) / n_x[i] if n_x[i] > TINY else 0.0
        grad_on_u = 0.0
        for c in range(t.shape[0]):
            grad_on_u += np.float64(grad[i, c]) * np.float64(x[i, c])
        for e in range(rowptr[i], rowptr[i + 1]):
            j, w = col[e], np.float64(weight[e])
            theta = _log(x, i, n_x[i], s_x[i], y, j, n_y[j], s_y[j], root, t)
            grad_on_t, t_on_u = 0.0, 0.0
            for c in range(t.shape[0]):
                grad_on_t += np.float64(grad[i, c]) * t[c]
                t_on_u += t[c] * np.float64(x[i, c])
            grad_weight[e] = root * grad_on_t
            grad_beta[i] += w * root * grad_on_t
            excess = _excess(theta)
            along = excess * grad_on_t / (theta * theta) if theta > 1e-8 else 0.0
            of_grad = -1 - excess - turning * t_on_u
            of_t = along + turning * grad_on_u
            for c in range(t.shape[0]):
                grad_x[i, c] += w * (of_grad * np.float64(grad[i, c]) + of_t * t[c])
        _to_coordinates(grad_x, x, i, n_x[i], s_x[i], root)
        for c in range(t.shape[0]):
            grad_beta[i] -= np.float64(x[i, c]) * grad_x[i, c]
    return grad_x, grad_weight, grad_beta


@_loop
def tangent_backward_cols(
    x: Array, n_x: Array, s_x: Array, y: Array, n_y: Array, s_y: Array, colptr: Array, row_t: Array, entry_t: Array,
    weight: Array, root: float, grad: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """Gradients in the columns' points ``(N, d)``, and half of that in log β by column ``(N,)``."""
    grad_y = np.zeros(y.shape, np.float64)
    grad_beta = np.zeros(y.shape[0], np.float64)
    t, back = np.empty(y.shape[1], np.float64), np.empty(y.shape[1], np.float64)
    for j in range(y.shape[0]):
        for k in range(colptr[j], colptr[j + 1]):
            i = row_t[k]
            w = np.float64(weight[entry_t[k]])
            turned, d_sinh, theta, shrink = _apart(x, i, n_x[i], s_x[i], y, j, n_y[j], s_y[j], root, t)
            _write_log(y, j, n_y[j], s_y[j], s_x[i], t, turned, d_sinh, shrink, -1.0, back)
            _write_log(x, i, n_x[i], s_x[i], s_y[j], t, turned, d_sinh, shrink, 1.0, t)
            if theta <= 1e-8:
                for c in range(t.shape[0]):
                    grad_y[j, c] += w * np.float64(grad[i, c])
                continue
            # a = −log_j(i)/θ is where R comes from, b = T/θ where it leads to; the transpose leads back
            on_b, square = 0.0, 0.0
            for c in range(t.shape[0]):
                t[c] /= theta
                back[c] /= -theta
                on_b += np.float64(grad[i, c]) * t[c]
                square += (t[c] + back[c]) ** 2
            on_sum = 0.0
            for c in range(t.shape[0]):
                pulled = shrink * np.float64(grad[i, c]) + (1 - shrink) * on_b * t[c]
                on_sum += pulled * (t[c] + back[c])
            on_sum *= 2 / max(square, TINY)
            for c in range(t.shape[0]):
                pulled = shrink * np.float64(grad[i, c]) + (1 - shrink) * on_b * t[c]
                grad_y[j, c] += w * (pulled - on_sum * (t[c] + back[c]) + 2 * on_b * back[c])
        _to_coordinates(grad_y, y, j, n_y[j], s_y[j], root)
        for c in range(t.shape[0]):
            grad_beta[j] -= np.float64(y[j, c]) * grad_y[j, c]
    return grad_y, grad_beta


@_loop
def frechet_view(
    x: Array, n_x: Array, s_x: Array, y: Array, n_y: Array, s_y: Array, rowptr: Array, col: Array, weight: Array,
    root: float,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Lengths θ ``(E,)`` and directions ``(E, d)`` of all log_i(j), and their weighted sums ``(N, d)``."""
    theta = np.empty(col.shape[0], np.float64)
    direction = np.empty((col.shape[0], x.shape[1]), np.float64)
    pull = np.zeros(x.shape, np.float64)
    for i in range(x.shape[0]):
        for e in range(rowptr[i], rowptr[i + 1]):
            j, w = col[e], np.float64(weight[e])
            theta[e] = _log(x, i, n_x[i], s_x[i], y, j, n_y[j], s_y[j], root, direction[e])
            inverse = 1 / max(theta[e], TINY)
            for c in range(x.shape[1]):
                pull[i, c] += w * root * direction[e, c]
                direction[e, c] *= inverse
    return theta, direction, pull


@_loop
def frechet_hessian(stiffness: Array, direction: Array, rowptr: Array, weight: Array, x: Array) -> Array:
    """Σ_j w_ij (h x_i + (1 − h) ⟨t, x_i⟩ t) of every row ``(N, d)``, with h = ``stiffness``."""
    out = np.zeros(x.shape, np.float64)
    for i in range(x.shape[0]):
        diagonal = 0.0
        for e in range(rowptr[i], rowptr[i + 1]):
            w = np.float64(weight[e])
            diagonal += w * stiffness[e]
            dot = 0.0
            for c in range(x.shape[1]):
                dot += direction[e, c] * x[i, c]
            dot *= w * (1 - stiffness[e])
            for c in range(x.shape[1]):
                out[i, c] += dot * direction[e, c]
        for c in range(x.shape[1]):
            out[i, c] += diagonal * x[i, c]
    return out
