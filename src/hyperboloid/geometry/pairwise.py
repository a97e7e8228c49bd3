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

from hyperboloid.first_order import first_order
from hyperboloid.function import Function

from .numerics import max_radius, tiny

#: cosh θ − 1 below this counts as this: such distances, of 2e-10, are rounding, and have a gradient of 0.
LEAST = 2e-20


class _Pairwise(Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, c: Tensor, beta: Tensor) -> Tensor:
        n, root = u.size(0), beta.double().sqrt()
        # the few points are rows behind the many, so that what belongs to a row is computed once for both
        points = torch.cat([u, c]).double()
        length = torch.linalg.vector_norm(points, dim=-1).clamp_min(tiny(torch.float64))
        r = (length / root).clamp(max=max_radius(u.dtype) / 2)  # the product of two sinh is no larger than one may be
        half = torch.sinh(r / 2)
        above = 2 * half.square()
        sinh = half * (4 + 2 * above).sqrt()
        stretch = sinh / length
        product = stretch[:n, None] * (points[:n] @ (stretch[n:, None] * points[n:]).mT)
        z = (torch.addr(above[:n, None], 1 + above[:n], above[n:]) - product).clamp_min(LEAST)
        slope = z.sqrt() * (z + 2).sqrt()  # sinh θ
        theta = torch.log1p(z + slope)
        ctx.save_for_backward(u, c, beta, points, length, r, above, sinh, product, z, slope, theta)
        return (root * theta).to(u.dtype)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        u, c, beta, points, length, r, above, sinh, product, z, slope, theta = ctx.saved_tensors
        n, root, stretch = u.size(0), beta.double().sqrt(), sinh / length
        grad = grad.double()
        to_z = torch.where(z > LEAST, grad / slope, 0)
        to_above = torch.cat([to_z @ (1 + above[n:]), (1 + above[:n]) @ to_z])
        shared = to_z * product
        along = -torch.cat([shared.sum(1), shared.sum(0)]) / sinh  # of the gradient in sinh r û
        to_r = torch.where(r < max_radius(u.dtype) / 2, (1 + above) * along + sinh * to_above, 0)
        own = ((to_r - root * stretch * along) / length).unsqueeze(1)
        sent = (-root * stretch[:n, None]) * to_z
        to_u = torch.addmm(own[:n] * points[:n], sent, stretch[n:, None] * points[n:])
        to_c = own[n:] * points[n:] + stretch[n:, None] * (sent.mT @ points[:n])
        to_beta = ((grad * theta).sum() - (to_r * r).sum()) / (2 * root)
        return _held(to_u, u), _held(to_c, c), _held(to_beta, beta)


def _held(grad: Tensor, like: Tensor) -> Tensor:
    """A gradient in the precision of what it belongs to, below the largest number of that."""
    limit = torch.finfo(like.dtype).max / 1e3
    return grad.to(like.dtype).clamp_(-limit, limit)


def pairwise_dist(u: Tensor, c: Tensor, beta: Tensor) -> Tensor:
    """d_H ``(N, K)`` of points ``(N, d)`` to points ``(K, d)``; near-zero distances have a gradient of 0."""
    out: Tensor = _Pairwise.apply(u, c, beta)
    return out
