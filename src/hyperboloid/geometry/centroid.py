r"""The centroid of the squared Lorentzian distance (Theorem 4.2, Eq. 16) in normal coordinates.

c = √β s/|‖s‖_L| with s = Σ w_j x_j. Its direction is n = s⃗/S with S = ‖s⃗‖, its normal coordinates are
½ √β log((s_0 + S)/(s_0 − S)) n, and the gap

.. math::  s_0 - S = \sqrt\beta \sum_j w_j \left(e^{-r_j} + \sinh r_j \, \|û_j - n\|^2 / 2\right)

is a sum of positive terms, where s_0 − S itself would cancel (docs/mathematics.md, 1.3). The same lines serve a plain
batch and the neighbourhoods of a graph: only how members are taken, summed and given back their group's value differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from hyperboloid.function import Function

from .numerics import first_axis, max_radius, polar, scaled_norm, tiny

#: Two directions whose squared difference is less are the same; far out the rounding would count as an angle.
SAME = 1e-29


class _Widen(Function):
    """To double precision; the gradient comes back in the input's, held below its largest number."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.double()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.dtype = inputs[0].dtype

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        limit = torch.finfo(ctx.dtype).max / 1e3
        return grad.clamp(-limit, limit).to(ctx.dtype)


class _HoldGradient(Function):
    """The identity, whose gradient is held below the root of the largest float."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return _held(grad)


def _held(grad: Tensor) -> Tensor:
    limit = torch.finfo(grad.dtype).max ** 0.5
    return grad.clamp(-limit, limit)


class _Spreading(Function):
    """w ‖û − n‖²/2 of members ``(…, m)``.

    Their sum is stationary in n, which gets no gradient: it would be rounding, and far out a large one. The gradients
    in w and û do change with n, and are plain torch, so that second derivatives are right.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(w: Tensor, direction: Tensor, n: Tensor) -> Tensor:
        return w * _apart(direction, n).square().sum(-1) / 2

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        w, direction, n = ctx.saved_tensors
        apart = _apart(direction, n)
        to_w = grad * apart.square().sum(-1) / 2
        to_direction = _held(grad * w).unsqueeze(-1) * apart
        return to_w.sum_to_size(w.shape), to_direction.sum_to_size(direction.shape), None


def _apart(direction: Tensor, n: Tensor) -> Tensor:
    """û − n ``(…, m, d)``, 0 where it is rounding; there too it changes with û and n."""
    apart = direction - n
    same = apart.detach().square().sum(-1, keepdim=True) <= SAME
    return apart - torch.where(same, apart, 0).detach()


def widen(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in double precision; their gradients stay below the largest number of the precision they had."""
    return tuple(t if t.dtype == torch.float64 else _Widen.apply(t) for t in tensors)


def _hold_gradient(x: Tensor) -> Tensor:
    """x; its gradient grows like e^2r, passes the largest float, and times a 0 it would be NaN."""
    held: Tensor = _HoldGradient.apply(x)
    return held


def centroid(
    v: Tensor,
    weight: Tensor,
    beta: Tensor,
    total: Callable[[Tensor], Tensor],
    spread: Callable[[Tensor], Tensor],
    take: Callable[[Tensor], Tensor] = lambda t: t,
) -> Tensor:
    """Weighted centroids of groups of points.

    Args:
        v: normal coordinates of the points ``(…, p, d)``.
        weight: non-negative ``(…, m)``; only ratios within a group matter.
        beta: scalar.
        total: sums members into groups, ``(…, m, d)`` to ``(…, g, d)``.
        spread: gives each member its group's row, ``(…, g, d)`` to ``(…, m, d)``.
        take: gives each member its point's row, ``(…, p, …)`` to ``(…, m, …)``; points are members by default.

    Returns:
        Normal coordinates of the centroids ``(…, g, d)``; an empty group gives the origin.
    """
    dtype = v.dtype
    # The gradient multiplies the rounding of û_j − n by e^2r: in float32 it would be noise from r = 12 on.
    v, weight, beta = widen(v, weight, beta)
    root = beta.sqrt()
    # a common factor changes nothing, but far from 1 it would meet the ends of the number range
    share = total(weight.detach().unsqueeze(-1))
    weight = _hold_gradient(weight) / spread(torch.where(share > 0, share, 1)).squeeze(-1)
    length, direction = polar(v)
    r = (length / root).clamp(max=max_radius(v.dtype))
    direction, decay, w_sinh = take(direction), take(torch.exp(-r)), weight * take(torch.sinh(r))
    space = total(w_sinh.unsqueeze(-1) * direction)
    size = scaled_norm(space).clamp_min(tiny(v.dtype))
    n = space / size.unsqueeze(-1)
    towards = torch.where(size.unsqueeze(-1) > tiny(v.dtype), n, first_axis(v))  # where s⃗ = 0 any unit vector will do
    spreading: Tensor = _Spreading.apply(w_sinh, direction, spread(towards))
    gap = total((weight * decay + spreading).unsqueeze(-1)).squeeze(-1)
    gap = torch.where(gap > 0, gap, torch.ones_like(gap))
    # log1p keeps small values, the difference of logarithms keeps quotients beyond the largest float
    far = size > 1e6 * gap
    near_log = torch.log1p(2 * torch.where(far, 1, size) / torch.where(far, 1, gap))
    far_log = torch.log(torch.where(far, gap + 2 * size, 1)) - torch.log(torch.where(far, gap, 1))
    return ((root / 2 * torch.where(far, far_log, near_log)).unsqueeze(-1) * n).to(dtype)
