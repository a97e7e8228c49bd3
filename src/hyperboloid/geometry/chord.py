r"""The Lorentzian distance of two points given by normal coordinates, and its exact gradient.

With r = ‖v‖/√β, directions û = v/‖v‖, Δr = r_u − r_v and Δû = û − v̂ (docs/mathematics.md, 1.2):

.. math::  d_L(u, v)^2 = (2\sqrt\beta\,\sinh(\Delta r/2))^2 + (\sqrt\beta\sqrt{\sinh r_u \sinh r_v}\,\|\Delta û\|)^2
                       =: a^2 + t^2

Both terms are positive and neither overflows before d_L itself does. Every other distance is a function of d_L. The
gradient is written out, because it is as well conditioned as the value, needs only u and v to be kept, and is right at
the origin, where any unit vector may stand for the undefined direction. Twice differentiable away from u = v only.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .numerics import first_axis, max_radius, rcoth_minus_1, sinhc, tiny


def _direction(v: Tensor, length: Tensor) -> Tensor:
    """v/‖v‖ ``(…, d)``; the first axis where v = 0."""
    zero = (length <= tiny(v.dtype)).unsqueeze(-1)
    return torch.where(zero, first_axis(v), v / torch.where(zero, 1, length.unsqueeze(-1)))


def differences(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Lengths and directions of u and v, and the differences ‖u‖ − ‖v‖ and û − v̂.

    The differences are taken of the vectors, never of rounded norms or rounded directions. All lengths ``(…)``, all
    directions ``(…, d)``: ``(‖u‖, ‖v‖, û, v̂, ‖u‖ − ‖v‖, û − v̂)``.
    """
    n_u = torch.linalg.vector_norm(u, dim=-1)
    n_v = torch.linalg.vector_norm(v, dim=-1)
    d_u, d_v = _direction(u, n_u), _direction(v, n_v)
    delta = u - v
    floor = tiny(u.dtype)
    d_n = (delta * (u + v)).sum(-1) / (n_u + n_v).clamp_min(floor)
    shorter = torch.where((n_u >= n_v).unsqueeze(-1), d_v, d_u)
    longer = torch.maximum(n_u, n_v).clamp_min(floor)
    return n_u, n_v, d_u, d_v, d_n, (delta - d_n.unsqueeze(-1) * shorter) / longer.unsqueeze(-1)


def _legs(
    n_u: Tensor, n_v: Tensor, d_n: Tensor, d_dir: Tensor, root: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """(r_u, r_v, Δr, a, t) of the module's formula; ``root`` is √β."""
    cut = max_radius(n_u.dtype)
    r_u, r_v = (n_u / root).clamp(max=cut), (n_v / root).clamp(max=cut)
    d_r = (d_n / root).clamp(-cut, cut)
    a = 2 * root * torch.sinh(d_r / 2)
    grown = torch.sqrt(torch.sinh(r_u)) * torch.sqrt(torch.sinh(r_v))
    return r_u, r_v, d_r, a, root * grown * torch.linalg.vector_norm(d_dir, dim=-1)


class _Chord(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
        n_u, n_v, _, _, d_n, d_dir = differences(u, v)
        _, _, _, a, t = _legs(n_u, n_v, d_n, d_dir, beta.sqrt())
        return torch.hypot(a, t)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        u, v, beta = ctx.saved_tensors
        root = beta.sqrt()
        n_u, n_v, d_u, d_v, d_n, d_dir = differences(u, v)
        r_u, r_v, d_r, a, t = _legs(n_u, n_v, d_n, d_dir, root)
        chord = torch.hypot(a, t)
        # subgradient 0 where the points coincide
        apart = chord > 0
        inverse = torch.where(apart, 1 / torch.where(apart, chord, torch.ones_like(chord)), 0)
        along = a * inverse * torch.cosh(d_r / 2)
        across = t * (t * inverse) / (2 * root)

        def side(r_own: Tensor, r_other: Tensor, own: Tensor, sign: int) -> Tensor:
            langevin = rcoth_minus_1(r_own) / r_own.clamp_min(tiny(r_own.dtype))
            turn = torch.sqrt(sinhc(r_own)) * torch.sqrt(torch.sinh(r_other))
            radial = (sign * along + langevin * across).unsqueeze(-1) * own
            # turn is applied twice, once on either side of 1/chord: its square may overflow, the product does not
            sideways = turn.unsqueeze(-1) * ((turn * root).unsqueeze(-1) * d_dir * inverse.unsqueeze(-1))
            return grad.unsqueeze(-1) * (radial + sign * sideways)

        grad_beta = -(
            a * (a * inverse) * rcoth_minus_1(d_r.abs() / 2)
            + t * (t * inverse) * (rcoth_minus_1(r_u) + rcoth_minus_1(r_v)) / 2
        ) / (2 * beta)
        return side(r_u, r_v, d_u, 1), side(r_v, r_u, d_v, -1), (grad * grad_beta).sum_to_size(beta.shape)


def chord(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """d_L ``(…)``: the length of the straight line between exp_0(u) and exp_0(v) in Minkowski space.

    Args:
        u, v: normal coordinates ``(…, d)``, broadcast against each other.
        beta: scalar, or broadcastable to ``(…)``.
    """
    u, v = torch.broadcast_tensors(u, v)
    result: Tensor = _Chord.apply(u, v, beta)
    return result
