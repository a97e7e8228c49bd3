"""The CPU backend for rows of vectors: chords in compiled loops, in double precision inside."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from hyperboloid.geometry.rows import Gradients, RowKernel

from .cpu_loops import Array, _add_gradient, _excess, _legs, _pair, _radius, polar
from .threads import loop, over_rows


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
        out[i] = min(np.sqrt(a * a + tt), 3e35)


@loop
def _chord_gradients(
    first: int, last: int, u: Array, v: Array, roots: Array, n_u: Array, s_u: Array, n_v: Array, s_v: Array,
    grad: Array, grad_u: Array, grad_v: Array, grad_beta: Array,
) -> None:  # fmt: skip
    """Gradients in u and v ``(R, d)``, and in β by row; 0 where the points coincide."""
    per_root = max(u.shape[0] // max(roots.shape[0], 1), 1)
    for i in range(first, last):
        root = roots[i // per_root]
        d_n, of_u, of_v, turned = _pair(u, i, n_u[i], v, i, n_v[i])
        a, tt = _legs(d_n, turned, s_u[i], s_v[i], root)
        chord = np.sqrt(a * a + tt)
        if chord < 1e-100:
            continue
        scale = np.float64(grad[i]) / (2 * chord)
        _add_gradient(grad_u[i], u, i, n_u[i], s_u[i], v, i, n_v[i], s_v[i], d_n, of_u, of_v, turned, a, root, scale)
        _add_gradient(
            grad_v[i], v, i, n_v[i], s_v[i], u, i, n_u[i], s_u[i], -d_n, -of_v, -of_u, turned, -a, root, scale
        )
        both = _excess(_radius(n_u[i], root)) + _excess(_radius(n_v[i], root))
        bend = a * a * _excess(min(abs(d_n) / root, 300.0) / 2) + tt * both / 2
        grad_beta[i] = -scale * bend / (root * root)


def _evenly(u: Tensor) -> tuple[Array, int]:
    """For :func:`over_rows`: rows of one entry each, and about how many multiplications one takes."""
    return np.arange(u.numel() // max(u.size(-1), 1) + 1), 100 + 10 * u.size(-1)


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
    out = u.new_empty(u.shape[:-1])
    if out.numel():
        over_rows(_chords, *_evenly(u), *_rows(u, v, beta), out.view(-1).numpy())
    return out


def _gradients(u: Tensor, v: Tensor, beta: Tensor, grad: Tensor) -> Gradients:
    """Gradients of d_L."""
    grad_u, grad_v = (torch.zeros(u.shape, dtype=torch.float64) for _ in range(2))
    by_row = torch.zeros(grad.numel(), dtype=torch.float64)
    if grad.numel():
        flat = (t.view(-1, u.size(-1)).numpy() for t in (grad_u, grad_v))
        given = (*_rows(u, v, beta), grad.reshape(-1).contiguous().numpy())
        over_rows(_chord_gradients, *_evenly(u), *given, *flat, by_row.numpy())
    grad_beta = by_row.view(beta.numel(), -1).sum(1)
    limit = torch.finfo(u.dtype).max / 1e3
    to_u, to_v, to_beta = (t.clamp_(-limit, limit).to(u.dtype) for t in (grad_u, grad_v, grad_beta))
    return to_u, to_v, to_beta


#: See :func:`hyperboloid.geometry.rows.offer`.
ROWS = {"chord": RowKernel(_values, _gradients)}
