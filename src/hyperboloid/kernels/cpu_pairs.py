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

from hyperboloid.errors import InputError

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


@_inline
def _asinh(t: float) -> float:
    """arsinh t for t ≥ 0 to ten digits, by a polynomial: the library's would keep the loop from being vectorised."""
    x = t + math.sqrt(1 + t * t)
    bits = np.float64(x).view(np.int64)
    exponent = (bits >> 52) - 1023
    mantissa = np.int64((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000).view(np.float64)
    if mantissa > 1.4142135623730951:
        mantissa *= 0.5
        exponent += 1
    f = (mantissa - 1) / (mantissa + 1)
    s = f * f
    p = 1 / 13 + s / 15
    for k in (11, 9, 7, 5, 3):
        p = 1 / k + s * p
    logarithm = 2 * (f + f * s * p) + np.float64(exponent) * 0.6931471805599453
    small = t * (1 - t * t * (1 / 6 - t * t * (3 / 40)))
    return x if not x < 1e300 else small if t < 1e-3 else logarithm


#: Pairs that go through the phases of :func:`_squares` together.
TOGETHER = 512


@loop
def _squares(
    first: int, last: int, z: Array, polar: Array, pairs: Array, beta: float, lorentz: bool, missing: Array, out: Array,
    value: Array, slope: Array,
) -> None:  # fmt: skip
    """d_L² or d_H² of pairs; and in double precision the same, and its derivative in d_L², negative where careful.

    ``missing`` is set where a pair names a node that is not there.
    """
    root = math.sqrt(beta)
    known, square = np.empty(TOGETHER), np.empty(TOGETHER)
    for start in range(first, last, TOGETHER):
        count = min(TOGETHER, last - start)
        for k in range(count):
            i, j = pairs[0, start + k], pairs[1, start + k]
            if min(i, j) < 0 or max(i, j) >= z.shape[0]:
                missing[0], known[k], square[k] = True, 1.0, 1.0
                continue
            dot = 0.0
            for c in range(z.shape[1]):
                dot += np.float64(z[i, c]) * np.float64(z[j, c])
            known[k] = beta * (polar[i, 0] + polar[j, 0] + polar[i, 0] * polar[j, 0])
            square[k] = 2 * (known[k] - polar[i, 1] * polar[j, 1] * dot)
        steep, values = slope[start : start + count], value[start : start + count]
        for k in range(count):
            steep[k] = 1.0
            if not square[k] > 2 * CANCELLED * known[k]:
                steep[k] = -1.0
                _d, _i, _j, _t, a, tt = _careful(z, pairs[0, start + k], pairs[1, start + k], polar, root)
                square[k] = a * a + tt
        if not lorentz:
            for k in range(count):
                x = square[k] / (4 * beta)
                t = math.sqrt(x)
                arc = _asinh(t)
                steep[k] *= arc / (t * math.sqrt(1 + x)) if t > 1e-5 else 1.0
                square[k] = 4 * beta * arc * arc
        for k in range(count):
            if square[k] > LARGEST:
                square[k], steep[k] = LARGEST, 0.0
            out[start + k] = square[k]
            values[k] = square[k] if steep[k] != 0 else 0.0


@loop
def _sort(pairs: Array, ptr: Array, ends: Array) -> None:
    """The pairs of each node, of which it is the first or the second: where they start ``(N + 1,)``, and one number to
    spare, and in this order ``(2P, 2)`` which they are, and the nodes at their other ends."""
    for side in range(2):
        for p in range(pairs.shape[1]):
            ptr[pairs[side, p] + 2] += 1
    for i in range(2, ptr.shape[0]):
        ptr[i] += ptr[i - 1]
    for p in range(pairs.shape[1]):
        for side in range(2):
            i = pairs[side, p]
            k = ptr[i + 1]
            ends[k, 0], ends[k, 1] = p, pairs[1 - side, p]
            ptr[i + 1] = k + 1


@loop
def _pull_carefully(
    first: int, last: int, z: Array, polar: Array, beta: float, grad: Array, slope: Array, ptr: Array, ends: Array,
    out: Array,
) -> None:  # fmt: skip
    """Gradients ``(N, d)`` of the pairs that cancel."""
    root = math.sqrt(beta)
    for i in range(first, last):
        for k in range(ptr[i], ptr[i + 1]):
            p, j = ends[k, 0], ends[k, 1]
            if slope[p] < 0:
                scale = -grad[p] * slope[p]
                d_n, of_i, of_j, turned, a, _tt = _careful(z, i, j, polar, root)
                s_i, s_j = polar[i, 1] * polar[i, 2] / root, polar[j, 1] * polar[j, 2] / root
                _add_gradient(
                    out[i], z, i, polar[i, 2], s_i, z, j, polar[j, 2], s_j, d_n, of_i, of_j, turned, a, root, scale
                )


@loop
def _pull(
    first: int, last: int, z: Array, polar: Array, beta: float, scales: Array, ptr: Array, ends: Array, careful: Array,
    out: Array, along_z: Array,
) -> None:  # fmt: skip
    """Gradients of nodes ``(N, d)`` and their products with the nodes ``(N,)``; ``careful`` is added if not empty."""
    root, d = math.sqrt(beta), z.shape[1]
    space = np.empty(d, np.float64)
    for i in range(first, last):
        space[:] = 0.0
        timed = 0.0
        for k in range(ptr[i], ptr[i + 1]):
            scale, j = scales[ends[k, 0]], ends[k, 1]
            timed += scale * (1 + polar[j, 0])
            scale *= polar[j, 1]
            for c in range(d):
                space[c] += scale * np.float64(z[j, c])
        timed *= root
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
            own = of_z * x - 2 * stretch * space[c]
            if careful.shape[0] > 0:
                own += careful[i, c]
            total += own * x
            out[i, c] = held(own)
        along_z[i] = total


@loop
def _flat_squares(first: int, last: int, z: Array, pairs: Array, missing: Array, out: Array) -> None:
    """‖z_i − z_j‖² of pairs; ``missing`` is set where one names a node that is not there."""
    for p in range(first, last):
        i, j = pairs[0, p], pairs[1, p]
        if min(i, j) < 0 or max(i, j) >= z.shape[0]:
            missing[0] = True
            continue
        square = 0.0
        for c in range(z.shape[1]):
            apart = np.float64(z[i, c]) - np.float64(z[j, c])
            square += apart * apart
        out[p] = square


@loop
def _flat_pull(
    first: int, last: int, z: Array, grad: Array, ptr: Array, ends: Array, out: Array
) -> None:  # fmt: skip
    """Gradients of nodes ``(N, d)``."""
    total = np.empty(z.shape[1], np.float64)
    for i in range(first, last):
        total[:] = 0.0
        of_z = 0.0
        for k in range(ptr[i], ptr[i + 1]):
            scale, j = np.float64(grad[ends[k, 0]]), ends[k, 1]
            of_z += scale
            for c in range(z.shape[1]):
                total[c] += scale * np.float64(z[j, c])
        for c in range(z.shape[1]):
            out[i, c] = 2 * (of_z * np.float64(z[i, c]) - total[c])


def _by_node(pairs: Array, nodes: int) -> tuple[Array, Array]:
    """What :func:`_sort` finds: where each node's pairs start ``(N + 1,)``, and the pairs in this order."""
    ptr, most = np.zeros(nodes + 2, np.int64), max(pairs.shape[1], nodes)
    ends = np.empty((2 * pairs.shape[1], 2), np.uint32 if most < 2**32 else np.uint64)
    _sort(pairs, ptr, ends)
    return ptr[:-1], ends


def _check(missing: Array, pairs: Tensor, nodes: int) -> None:
    """Refuse pairs of which a loop has found that nodes are missing."""
    if missing[0]:
        least, most = (int(end) for end in pairs.aminmax())
        raise InputError(f"the pairs name nodes {least} to {most}, and there are nodes 0 to {nodes - 1}.")


def pair_squares(z: Tensor, pairs: Tensor, beta: Tensor, lorentz: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Squares ``(M, P)``, and what the gradient needs; see :mod:`hyperboloid.kernels.pairs`."""
    models, nodes, d = z.shape
    z, count = z.detach(), pairs.size(2)
    out, (value, slope) = z.new_empty(models, count), torch.empty(2, models, count, dtype=torch.float64)
    polar = torch.empty(models, nodes, 3, dtype=torch.float64)

    def one(m: int) -> None:
        x, b, known = z[m].contiguous().numpy(), float(beta[m]), polar[m].numpy()
        over_range(_polar, nodes, 50 + d, x, b**0.5, known)
        ends, missing = pairs[m].contiguous().numpy(), np.zeros(1, np.bool_)
        results = out[m].numpy(), value[m].numpy(), slope[m].numpy()
        over_range(_squares, count, 30 + 2 * d, x, known, ends, b, lorentz, missing, *results)
        _check(missing, pairs[m], nodes)

    over_models(one, models, count * (30 + 2 * d))
    return out, value, slope, polar


def pair_gradients(
    grad: Tensor, z: Tensor, pairs: Tensor, beta: Tensor, lorentz: bool, value: Tensor, slope: Tensor, polar: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients in z and β; ``slope`` knows which square it is."""
    (models, nodes, d), count = z.shape, pairs.size(2)
    out, grad_beta = torch.empty_like(z, memory_format=torch.contiguous_format), torch.empty_like(beta)

    def one(m: int) -> None:
        by_node = _by_node(pairs[m].contiguous().numpy(), nodes)
        b, along_z, own, slopes = float(beta[m]), np.empty(nodes), grad[m].double(), slope[m]
        x, known = z[m].contiguous().numpy(), polar[m].numpy()
        careful = np.empty((0, d))
        if bool((slopes < 0).any()):
            careful, to_squares = np.zeros((nodes, d)), (own.numpy(), slopes.numpy())
            over_rows(_pull_carefully, by_node[0], 50 + 10 * d, x, known, b, *to_squares, *by_node, careful)
        scales = (own * slopes.clamp(min=0)).numpy()
        over_rows(_pull, by_node[0], 10 + 2 * d, x, known, b, scales, *by_node, careful, out[m].numpy(), along_z)
        of_beta = (float(own @ value[m]) - along_z.sum() / 2) / b
        grad_beta[m] = held(of_beta)

    over_models(one, models, 2 * count * (15 + 2 * d))
    return out, grad_beta


def flat_pair_squares(z: Tensor, pairs: Tensor) -> Tensor:
    """‖u − v‖² ``(M, P)``."""
    (models, nodes, d), count = z.shape, pairs.size(2)
    z, out = z.detach(), z.new_empty(models, count)

    def one(m: int) -> None:
        x, ends, missing = z[m].contiguous().numpy(), pairs[m].contiguous().numpy(), np.zeros(1, np.bool_)
        over_range(_flat_squares, count, 10 + d, x, ends, missing, out[m].numpy())
        _check(missing, pairs[m], nodes)

    over_models(one, models, count * (10 + d))
    return out


def flat_pair_gradients(grad: Tensor, z: Tensor, pairs: Tensor) -> Tensor:
    """Gradient in z."""
    (models, nodes, d), count = z.shape, pairs.size(2)
    out = torch.empty_like(z, memory_format=torch.contiguous_format)

    def one(m: int) -> None:
        by_node = _by_node(pairs[m].contiguous().numpy(), nodes)
        x, own = z[m].contiguous().numpy(), grad[m].contiguous().numpy()
        over_rows(_flat_pull, by_node[0], 10 + d, x, own, *by_node, out[m].numpy())

    over_models(one, models, 2 * count * (10 + d))
    return out
