"""The CPU backend for rows of vectors: chords and gyrovector sums in compiled loops, double precision inside.

A gyrovector sum u ⊕ v is log_i(j) at −u in a graph where every row's only neighbour is its like: loops of
`cpu_tangent.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from hyperboloid.geometry.rows import Gradients, RowKernel

from . import cpu_tangent
from .cpu import _back
from .cpu_loops import LARGEST, Array, _add_gradient, _excess, _legs, _pair, _radius, polar
from .threads import loop, over_range


@loop
def _chords(
    first: int, last: int, u: Array, v: Array, roots: Array, n_u: Array, s_u: Array, n_v: Array, s_v: Array, out: Array
) -> None:
    """d_L of rows ``(R, d)``; every root √β belongs to equally many rows."""
    per_root = max(u.shape[0] // max(roots.shape[0], 1), 1)
    for i in range(first, last):
        root = roots[i // per_root]
        d_n, _, _, turned = _pair(u, i, n_u[i], v, i, n_v[i])
        a, tt = _legs(d_n, turned, s_u[i], s_v[i], root)
        out[i] = min(np.sqrt(a * a + tt), LARGEST)


@loop
def _chord_gradients(
    first: int, last: int, u: Array, v: Array, roots: Array, n_u: Array, s_u: Array, n_v: Array, s_v: Array,
    grad: Array, grad_u: Array, grad_v: Array, grad_beta: Array,
) -> None:  # fmt: skip
    """Gradients in u and v ``(R, d)``, and in β by row; 0 where the points coincide.

    Beyond the largest d_L its logarithm has its own gradient still, so that an intrinsic distance keeps its slope.
    """
    per_root = max(u.shape[0] // max(roots.shape[0], 1), 1)
    for i in range(first, last):
        root = roots[i // per_root]
        d_n, of_u, of_v, turned = _pair(u, i, n_u[i], v, i, n_v[i])
        a, tt = _legs(d_n, turned, s_u[i], s_v[i], root)
        chord = np.sqrt(a * a + tt)
        if chord < 1e-100:
            continue
        scale = np.float64(grad[i]) / (2 * chord) * min(LARGEST / chord, 1.0)
        _add_gradient(grad_u[i], u, i, n_u[i], s_u[i], v, i, n_v[i], s_v[i], d_n, of_u, of_v, turned, a, root, scale)
        _add_gradient(
            grad_v[i], v, i, n_v[i], s_v[i], u, i, n_u[i], s_u[i], -d_n, -of_v, -of_u, turned, -a, root, scale
        )
        both = _excess(_radius(n_u[i], root)) + _excess(_radius(n_v[i], root))
        bend = a * a * _excess(min(abs(d_n) / root, 300.0) / 2) + tt * both / 2
        grad_beta[i] = -scale * bend / (root * root)


def _sizes(u: Tensor) -> tuple[int, int]:
    """For :func:`over_range`: how many rows, and about how many multiplications one takes."""
    return u.numel() // max(u.size(-1), 1), 100 + 10 * u.size(-1)


def _rows(u: Tensor, v: Tensor, beta: Tensor) -> tuple[Array, ...]:
    """Rows ``(R, d)``, √β, and lengths and sinh r of both."""
    x, y = (t.detach().reshape(-1, t.size(-1)).contiguous().numpy() for t in (u, v))
    roots = beta.detach().double().sqrt().reshape(-1).numpy()
    per_root = max(x.shape[0] // max(roots.size, 1), 1)
    parts = [polar(t[k * per_root : (k + 1) * per_root], root) for t in (x, y) for k, root in enumerate(roots)]
    lengths, sinhs = ([np.concatenate(half) for half in _halves(column)] for column in zip(*parts, strict=True))
    return x, y, roots, lengths[0], sinhs[0], lengths[1], sinhs[1]


def _halves(parts: tuple[Array, ...]) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    return parts[: len(parts) // 2], parts[len(parts) // 2 :]


def _values(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """d_L ``(…)``."""
    out = u.new_zeros(u.shape[:-1])
    if u.numel():
        over_range(_chords, *_sizes(u), *_rows(u, v, beta), out.view(-1).numpy())
    return out


def _gradients(u: Tensor, v: Tensor, beta: Tensor, grad: Tensor) -> Gradients:
    """Gradients of d_L."""
    grad_u, grad_v = (torch.zeros(u.shape, dtype=torch.float64) for _ in range(2))
    by_row = torch.zeros(grad.numel(), dtype=torch.float64)
    if u.numel():
        flat = (t.view(-1, u.size(-1)).numpy() for t in (grad_u, grad_v))
        given = (*_rows(u, v, beta), grad.reshape(-1).contiguous().numpy())
        over_range(_chord_gradients, *_sizes(u), *given, *flat, by_row.numpy())
    grad_beta = by_row.view(beta.numel(), -1).sum(1)
    return _back(grad_u.numpy(), u), _back(grad_v.numpy(), u), _back(grad_beta.numpy(), u)


def _by_root(u: Tensor, v: Tensor, beta: Tensor) -> Iterator[tuple[slice, tuple[Array, ...], tuple[Array, ...], float]]:
    """The rows that share a √β: which they are, their points, lengths and sinh r, their graph and its weights, √β."""
    x, y, roots, *radii = _rows(u, v, beta)
    count = x.shape[0] // max(roots.size, 1)
    ptr, weight = np.arange(count + 1), np.ones(count, np.float32)
    for k, root in enumerate(roots):
        own = slice(k * count, (k + 1) * count)
        n_u, s_u, n_v, s_v = (column[own] for column in radii)
        yield own, (x[own], n_u, s_u, y[own], n_v, s_v), (ptr, ptr[:-1], weight), float(root)


def _gyro(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """u ⊕ v ``(…, d)``."""
    out = torch.empty(u.shape, dtype=torch.float64)
    for own, points, graph, root in _by_root(-u, v, beta) if out.numel() else ():
        out.view(-1, u.size(-1)).numpy()[own] = cpu_tangent.tangent_forward(*points, *graph, root)
    return _back(out.numpy(), u)


def _gyro_gradients(u: Tensor, v: Tensor, beta: Tensor, grad: Tensor) -> Gradients:
    """Gradients of u ⊕ v."""
    grad_u, grad_v = (torch.zeros(u.shape, dtype=torch.float64) for _ in range(2))
    grad_beta = torch.zeros(beta.numel(), dtype=torch.float64)
    if grad.numel():
        g, to_u, to_v = (t.reshape(-1, u.size(-1)).contiguous().numpy() for t in (grad, grad_u, grad_v))
        for k, (own, points, (ptr, col, weight), root) in enumerate(_by_root(-u, v, beta)):
            to_u[own], _, by_row = cpu_tangent.tangent_backward_rows(*points, ptr, col, weight, root, g[own])
            to_v[own], by_column = cpu_tangent.tangent_backward_cols(*points, ptr, col, col, weight, root, g[own])
            grad_beta[k] = (by_row.sum() + by_column.sum()) / (2 * root * root)
    return _back(-grad_u.numpy(), u), _back(grad_v.numpy(), u), _back(grad_beta.numpy(), u)


#: See :func:`hyperboloid.geometry.rows.offer`.
ROWS = {"chord": RowKernel(_values, _gradients), "gyro": RowKernel(_gyro, _gyro_gradients)}
