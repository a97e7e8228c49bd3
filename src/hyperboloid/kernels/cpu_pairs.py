r"""Squared distances of pairs of nodes on a CPU, float32: compiled loops that gather and scatter by themselves.

In double precision Minkowski space can be afforded. With e = cosh r − 1 and s = √β sinh r/n of every node (n = ‖z‖)

.. math::  d_L^2/2 = β(e_i + e_j + e_i e_j) - s_i s_j\, z_i·z_j

is one dot product for a pair, where all else is known by node. Only where the difference is far smaller than what it is
taken of is a pair computed by the forms of `geometry/chord.py`, which do not cancel.

The gradient of a node is a sum over its pairs, so pairs are sorted by node and every node is done once: results do not
depend on the number of threads. The squares are homogeneous in (z, √β): 2β ∂d²/∂β = 2d² − z_i·∂d²/∂z_i − z_j·∂d²/∂z_j.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from .cpu_loops import CUT, TINY, Array, _add_gradient, _inline, _legs, _length, _pair, held
from .threads import loop, over_models, over_range, over_rows

#: A difference counts as cancelled where it is this much smaller than its terms: nine digits are left.
CANCELLED = 1e-7
#: Larger squares count as this one.
LARGEST = 1e30


@loop
def _polar(first: int, last: int, z: Array, root: float, out: Array) -> None:
    """``(cosh r − 1, √β sinh r/n, n)`` of nodes."""
    for i in range(first, last):
        n = _length(z, i)
        half = math.sinh(min(n / root, CUT) / 2)
        out[i, 0] = 2 * half * half
        out[i, 1] = root * 2 * half * math.sqrt(1 + half * half) / n if n > TINY else 1.0
        out[i, 2] = n


@_inline
def _careful(z: Array, i: int, j: int, polar: Array, root: float) -> tuple[float, float, float, float, float, float]:
    """What `geometry/chord.py` computes of a pair."""
    d_n, of_i, of_j, turned = _pair(z, i, polar[i, 2], z, j, polar[j, 2])
    a, tt = _legs(d_n, turned, polar[i, 1] * polar[i, 2] / root, polar[j, 1] * polar[j, 2] / root, root)
    return d_n, of_i, of_j, turned, a, tt


@loop
def _squares(
    first: int, last: int, z: Array, polar: Array, pairs: Array, beta: float, lorentz: bool, out: Array, value: Array,
    slope: Array,
) -> None:  # fmt: skip
    """d_L² or d_H² of pairs; and in double precision the same, and its derivative in d_L², negative where careful."""
    root = math.sqrt(beta)
    for p in range(first, last):
        i, j = pairs[0, p], pairs[1, p]
        dot = 0.0
        for c in range(z.shape[1]):
            dot += np.float64(z[i, c]) * np.float64(z[j, c])
        known = beta * (polar[i, 0] + polar[j, 0] + polar[i, 0] * polar[j, 0])
        half = known - polar[i, 1] * polar[j, 1] * dot
        close = not half > CANCELLED * known
        square = 2 * half
        if close:
            _d, _i, _j, _t, a, tt = _careful(z, i, j, polar, root)
            square = a * a + tt
        steep = 1.0
        if not lorentz:
            x = square / (4 * beta)
            t = math.sqrt(x)
            arc = math.asinh(t)
            steep = arc / (t * math.sqrt(1 + x)) if t > 1e-5 else 1.0
            square = 4 * beta * arc * arc
        if square > LARGEST:
            square, steep = LARGEST, 0.0
        out[p] = square
        value[p] = square if steep > 0 else 0.0
        slope[p] = -steep if close else steep


@loop
def _sort(first: int, last: int, pairs: Array, ptr: Array, entry: Array) -> None:
    """The pairs by their first node, and by their second: where those of each start ``(2, N + 1)``, which they are."""
    for side in range(first, last):
        for p in range(pairs.shape[1]):
            ptr[side, pairs[side, p] + 1] += 1
        for i in range(ptr.shape[1] - 1):
            ptr[side, i + 1] += ptr[side, i]
        place = ptr[side, :-1].copy()
        for p in range(pairs.shape[1]):
            i = pairs[side, p]
            entry[side, place[i]] = p
            place[i] += 1


@loop
def _pull(
    first: int, last: int, z: Array, polar: Array, pairs: Array, beta: float, grad: Array, slope: Array, ptr: Array,
    entry: Array, out: Array, along_z: Array,
) -> None:  # fmt: skip
    """Gradients of nodes ``(N, d)``, and their products with the nodes ``(N,)``."""
    root, d = math.sqrt(beta), z.shape[1]
    space, careful = np.empty(d, np.float64), np.empty(d, np.float64)
    for i in range(first, last):
        space[:] = 0.0
        careful[:] = 0.0
        timed = 0.0
        for side in range(2):
            for k in range(ptr[side, i], ptr[side, i + 1]):
                p = entry[side, k]
                j = pairs[1 - side, p]
                scale = np.float64(grad[p]) * abs(slope[p])
                if slope[p] < 0:
                    d_n, of_i, of_j, turned, a, _tt = _careful(z, i, j, polar, root)
                    s_i, s_j = polar[i, 1] * polar[i, 2] / root, polar[j, 1] * polar[j, 2] / root
                    _add_gradient(
                        careful, z, i, polar[i, 2], s_i, z, j, polar[j, 2], s_j, d_n, of_i, of_j, turned, a, root, scale
                    )
                else:
                    timed += scale * root * (1 + polar[j, 0])
                    scale *= polar[j, 1]
                    for c in range(d):
                        space[c] += scale * np.float64(z[j, c])
        time, stretch, inverse = root * (1 + polar[i, 0]), polar[i, 1], 1 / max(polar[i, 2], TINY)
        along = 0.0
        for c in range(d):
            along += space[c] * np.float64(z[i, c])
        along *= inverse
        radial = 2 / root * (stretch * polar[i, 2] * timed - time * along)
        of_z = (radial + 2 * stretch * along) * inverse
        total = 0.0
        for c in range(d):
            x = np.float64(z[i, c])
            own = of_z * x - 2 * stretch * space[c] + careful[c]
            total += own * x
            out[i, c] = held(own)
        along_z[i] = total


@loop
def _flat_squares(first: int, last: int, z: Array, pairs: Array, out: Array) -> None:
    """‖z_i − z_j‖² of pairs."""
    for p in range(first, last):
        i, j = pairs[0, p], pairs[1, p]
        square = 0.0
        for c in range(z.shape[1]):
            apart = np.float64(z[i, c]) - np.float64(z[j, c])
            square += apart * apart
        out[p] = square


@loop
def _flat_pull(
    first: int, last: int, z: Array, pairs: Array, grad: Array, ptr: Array, entry: Array, out: Array
) -> None:
    """Gradients of nodes ``(N, d)``."""
    total = np.empty(z.shape[1], np.float64)
    for i in range(first, last):
        total[:] = 0.0
        of_z = 0.0
        for side in range(2):
            for k in range(ptr[side, i], ptr[side, i + 1]):
                p = entry[side, k]
                scale, j = np.float64(grad[p]), pairs[1 - side, p]
                of_z += scale
                for c in range(z.shape[1]):
                    total[c] += scale * np.float64(z[j, c])
        for c in range(z.shape[1]):
            out[i, c] = 2 * (of_z * np.float64(z[i, c]) - total[c])


def _by_node(ends: Array, nodes: int) -> tuple[Array, Array]:
    """What :func:`_sort` finds of pairs ``(2, P)``."""
    count = ends.shape[1]
    ptr, entry = np.zeros((2, nodes + 1), np.int64), np.empty((2, count), np.int32 if count < 2**31 else np.int64)
    over_range(_sort, 2, 5 * count, ends, ptr, entry)
    return ptr, entry


def pair_squares(z: Tensor, pairs: Tensor, beta: Tensor, lorentz: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Squares ``(M, P)``, and what the gradient needs; see :mod:`hyperboloid.kernels.pairs`."""
    models, nodes, d = z.shape
    z, count = z.detach(), pairs.size(2)
    out, (value, slope) = z.new_empty(models, count), torch.empty(2, models, count, dtype=torch.float64)
    polar = torch.empty(models, nodes, 3, dtype=torch.float64)

    def one(m: int) -> None:
        x, b, known = z[m].contiguous().numpy(), float(beta[m]), polar[m].numpy()
        over_range(_polar, nodes, 50 + d, x, b**0.5, known)
        over_range(
            _squares, count, 30 + 2 * d, x, known, pairs[m].contiguous().numpy(), b, lorentz,
            out[m].numpy(), value[m].numpy(), slope[m].numpy(),
        )  # fmt: skip

    over_models(one, models, count * (30 + 2 * d))
    return out, value, slope, polar


def pair_gradients(
    grad: Tensor, z: Tensor, pairs: Tensor, beta: Tensor, lorentz: bool, value: Tensor, slope: Tensor, polar: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients in z and β; ``slope`` knows which square it is."""
    (models, nodes, d), count = z.shape, pairs.size(2)
    out, grad_beta = torch.empty_like(z, memory_format=torch.contiguous_format), torch.empty_like(beta)

    def one(m: int) -> None:
        ends = pairs[m].contiguous().numpy()
        ptr, entry = _by_node(ends, nodes)
        b, along_z, own = float(beta[m]), np.empty(nodes), grad[m].contiguous()
        over_rows(
            _pull, ptr.sum(0), 10 + 2 * d, z[m].contiguous().numpy(), polar[m].numpy(), ends, b, own.numpy(),
            slope[m].numpy(), ptr, entry, out[m].numpy(), along_z,
        )  # fmt: skip
        of_beta = (float(own.double() @ value[m]) - along_z.sum() / 2) / b
        grad_beta[m] = held(of_beta)

    over_models(one, models, 2 * count * (15 + 2 * d))
    return out, grad_beta


def flat_pair_squares(z: Tensor, pairs: Tensor) -> Tensor:
    """‖u − v‖² ``(M, P)``."""
    (models, _, d), count = z.shape, pairs.size(2)
    z, out = z.detach(), z.new_empty(models, count)

    def one(m: int) -> None:
        ends = pairs[m].contiguous().numpy()
        over_range(_flat_squares, count, 10 + d, z[m].contiguous().numpy(), ends, out[m].numpy())

    over_models(one, models, count * (10 + d))
    return out


def flat_pair_gradients(grad: Tensor, z: Tensor, pairs: Tensor) -> Tensor:
    """Gradient in z."""
    (models, nodes, d), count = z.shape, pairs.size(2)
    out = torch.empty_like(z, memory_format=torch.contiguous_format)

    def one(m: int) -> None:
        ends, own = pairs[m].contiguous().numpy(), grad[m].contiguous().numpy()
        ptr, entry = _by_node(ends, nodes)
        over_rows(
            _flat_pull, ptr.sum(0), 10 + d, z[m].contiguous().numpy(), ends, own, ptr, entry, out[m].numpy()
        )  # fmt: skip

    over_models(one, models, 2 * count * (10 + d))
    return out
