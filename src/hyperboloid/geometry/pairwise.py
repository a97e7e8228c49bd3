r"""Distances of all points to a few others by one matrix product, in normal coordinates.

.. math::  \cosh\frac{d_H}{\sqrt\beta} - 1 = a_u + (1 + a_u)\, a_c - \sinh r_u \sinh r_c\, û \cdot ĉ, \qquad
           a = \cosh r - 1 = 2 \sinh^2 \frac r2

The form of :mod:`.chord` never cancels but needs the difference of every pair of vectors, N·K·d numbers. Here the right
side is computed in double precision, whatever the inputs are: its rounding, 1e-16 sinh r_u sinh r_c, is below float32's
own as long as both radii stay below 9 or so, and beyond that the result is still finite. The gradient is written out,
with a product of matrices for either side, since a step of training is made of few operations on small tensors.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .numerics import max_radius, tiny

#: cosh θ − 1 below this counts as this: such distances, of 2e-10, are rounding, and have a gradient of 0.
LEAST = 2e-20


class _Pairwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, c: Tensor, beta: Tensor) -> Tensor:
        root = beta.double().sqrt()
        # the few points are rows behind the many, so that what belongs to a row is computed once for both
        points = torch.cat([u, c]).double()
        length = torch.linalg.vector_norm(points, dim=-1).clamp_min(tiny(torch.float64))
        r = (length / root).clamp(max=max_radius(u.dtype) / 2)  # the product of two sinh is no larger than one may be
        half = torch.sinh(r / 2)
        above = 2 * half.square()
        stretch = half * (4 + 2 * above).sqrt() / length  # sinh r/n
        space = stretch.unsqueeze(1) * points
        n = u.size(0)
        base = torch.addr(above[:n].unsqueeze(1), 1 + above[:n], above[n:])
        z = torch.addmm(base, space[:n], space[n:].mT, alpha=-1).clamp_min(LEAST)
        slope = z.sqrt() * (z + 2).sqrt()  # sinh θ
        theta = torch.log1p(z + slope)
        ctx.save_for_backward(u, c, beta, points, length, r, above, stretch, space, z, slope, theta)
        return (root * theta).to(u.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        u, c, beta, points, length, r, above, stretch, space, z, slope, theta = ctx.saved_tensors
        root, n = beta.double().sqrt(), u.size(0)
        grad = grad.double()
        to_z = torch.where(z > LEAST, grad / slope, 0)
        to_space = torch.cat([to_z @ space[n:], to_z.mT @ space[:n]]).neg_()
        to_above = torch.cat([to_z @ (1 + above[n:]), (1 + above[:n]) @ to_z])
        inverse = 1 / length
        along = torch.linalg.vecdot(to_space, points) * inverse
        to_r = (1 + above) * along + stretch * length * to_above
        to_r = torch.where(r < max_radius(u.dtype) / 2, to_r, 0)
        of_points = (to_r / root - stretch * along) * inverse
        to_points = root * torch.addcmul(of_points.unsqueeze(1) * points, stretch.unsqueeze(1), to_space)
        to_beta = ((grad * theta).sum() - (to_r * r).sum()) / (2 * root)
        held = [_held(g, like) for g, like in ((to_points[:n], u), (to_points[n:], c), (to_beta, beta))]
        return held[0], held[1], held[2]


def _held(grad: Tensor, like: Tensor) -> Tensor:
    """A gradient in the precision of what it belongs to, below the largest number of that."""
    limit = torch.finfo(like.dtype).max / 1e3
    return grad.clamp(-limit, limit).to(like.dtype)


def pairwise_dist(u: Tensor, c: Tensor, beta: Tensor) -> Tensor:
    """d_H ``(N, K)`` of points ``(N, d)`` to points ``(K, d)``; near-zero distances have a gradient of 0."""
    out: Tensor = _Pairwise.apply(u, c, beta)
    return out
