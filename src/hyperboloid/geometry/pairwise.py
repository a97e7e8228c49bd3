r"""Distances of all points to a few others by one matrix product, in normal coordinates.

.. math::  \sinh^2\frac{d_H}{2\sqrt\beta} = \sinh^2\frac{r_u - r_c}{2} + \sinh r_u \sinh r_c\, \frac{1 - û \cdot ĉ}{2}

The form of :mod:`.chord` never cancels but needs the difference of every pair of vectors, N·K·d numbers. Here 1 − û·ĉ
is taken of a product in double precision, whatever the inputs are: its rounding, 1e-16 sinh r_u sinh r_c, is below
float32's own as long as both radii stay below 9 or so, and beyond that the result is still finite.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .centroid import widen
from .numerics import arc, max_radius, polar


def pairwise_dist(u: Tensor, c: Tensor, beta: Tensor) -> Tensor:
    """d_H ``(N, K)`` of points ``(N, d)`` to points ``(K, d)``; near-zero distances have a gradient of 0."""
    dtype, cut = u.dtype, max_radius(u.dtype) / 2  # so that the product of two sinh is no larger than one may be
    u, c, beta = widen(u, c, beta)
    root = beta.sqrt()
    (n_u, to_u), (n_c, to_c) = polar(u), polar(c)
    r_u, r_c = (n_u / root).clamp(max=cut).unsqueeze(1), (n_c / root).clamp(max=cut)
    apart = (1 - to_u @ to_c.mT).clamp_min(0) / 2
    square = torch.sinh((r_u - r_c) / 2).square() + torch.sinh(r_u) * torch.sinh(r_c) * apart
    return arc(2 * root * square.clamp_min(1e-20).sqrt(), 2 * root).to(dtype)
