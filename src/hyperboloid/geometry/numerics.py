"""Elementary functions that neither cancel, overflow nor lose their gradient where hyperbolic geometry needs them."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def tiny(dtype: torch.dtype) -> float:
    """The norm below which a vector counts as the origin; its square is still a normal number."""
    return 1e-15 if dtype == torch.float32 else 1e-100


def max_radius(dtype: torch.dtype) -> float:
    """Radius r = ‖v‖/√β where sinh is cut off: beyond it results are finite but no longer right."""
    return 82.0 if dtype == torch.float32 else 600.0


def max_chord(dtype: torch.dtype) -> float:
    """Lorentzian distance d_L where its square is cut off: the gradient of that in β, r/β times larger, still fits."""
    return 1e15 if dtype == torch.float32 else 1e140


def polar(v: Tensor) -> tuple[Tensor, Tensor]:
    """Length and direction of vectors, shapes ``(…)`` and ``(…, d)``.

    The length is floored at :func:`tiny` and the direction is ``v / length``, so that at ``v = 0`` a product
    ``f(length) · direction`` with f(0) = 0 has value 0 and gradient f'(0)·I, as it should, without a special case.
    """
    length = torch.linalg.vector_norm(v, dim=-1).clamp_min(tiny(v.dtype))
    return length, v / length.unsqueeze(-1)


def first_axis(like: Tensor) -> Tensor:
    """The unit vector ``(d,)`` that stands in for a direction that is not defined."""
    return torch.eye(1, like.size(-1), dtype=like.dtype, device=like.device)[0]


def scaled_norm(x: Tensor) -> Tensor:
    """Euclidean norm ``(…)`` of vectors whose squares may overflow (points of H far from the origin)."""
    scale = x.detach().abs().amax(dim=-1, keepdim=True)
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    return scale.squeeze(-1) * torch.linalg.vector_norm(x / scale, dim=-1)


def sinhc(r: Tensor) -> Tensor:
    """sinh(r)/r, 1 at r = 0."""
    small = r.abs() < 0.1
    s = r * r
    series = 1 + s / 6 * (1 + s / 20 * (1 + s / 42 * (1 + s / 72)))
    safe = torch.where(small, torch.ones_like(r), r)
    return torch.where(small, series, torch.sinh(safe) / safe)


def asinh(t: Tensor) -> Tensor:
    """arsinh whose derivative survives arguments whose square overflows (torch's becomes 0)."""
    large = t > 1e4
    near = torch.asinh(torch.where(large, torch.ones_like(t), t))
    safe = torch.where(large, t, torch.ones_like(t))
    return torch.where(large, torch.log(safe) + math.log(2.0) + (0.5 / safe) ** 2, near)


def arc(chord: Tensor, diameter: Tensor) -> Tensor:
    """D·arsinh(c/D) for c ≥ 0, the arc over a chord; its derivative in D, of order (c/D)³, does not cancel."""
    t = chord / diameter
    small = t < 0.1
    s = torch.where(small, t, 0).square()
    tail = 35 / 1152 - s * (63 / 2816 - s * (231 / 13312 - s * 143 / 10240))
    series = 1 - s * (1 / 6 - s * (3 / 40 - s * (5 / 112 - s * tail)))
    return torch.where(small, chord * series, diameter * asinh(t))


def rcoth_minus_1(r: Tensor) -> Tensor:
    """r·coth(r) − 1 for r ≥ 0; r²/3 near 0, r − 1 far away."""
    small = r < 0.3
    s = r * r
    series = s / 3 * (1 - s / 15 * (1 - s * 2 / 21 * (1 - s / 10 * (1 - s * 10 / 99 * (1 - s * 1382 / 13650)))))
    safe = torch.where(small, torch.ones_like(r), r)
    return torch.where(small, series, safe / torch.tanh(safe) - 1)


def inside(share: Tensor) -> Tensor:
    """Lengths in a ball as shares of its radius, below 1: what rounding has put on the boundary has no other point."""
    return share.clamp(max=1 - torch.finfo(share.dtype).eps / 2)


def from_boundary(share: Tensor) -> Tensor:
    """1 − s² above 0, of squared shares s² of a ball's radius."""
    return (1 - share).clamp_min(torch.finfo(share.dtype).eps)
