r"""The Lorentzian distance of two points given by normal coordinates, and its exact gradient.

With r = ‖v‖/√β, directions û = v/‖v‖, Δr = r_u − r_v and Δû = û − v̂ (docs/mathematics.md, 1.2):

.. math::  d_L(u, v)^2 = (2\sqrt\beta\,\sinh(\Delta r/2))^2 + (\sqrt\beta\sqrt{\sinh r_u \sinh r_v}\,\|\Delta û\|)^2
                       =: a^2 + t^2

Both terms are positive and neither overflows before d_L itself does. Every other distance is a function of d_L. The
gradient is written out, because it is as well conditioned as the value and needs only u and v to be kept. At the origin
û counts as 0: its factor sinh r vanishes, and the gradient comes out right. Twice differentiable away from u = v only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .numerics import max_radius, rcoth_minus_1, sinhc, tiny


class Differences(NamedTuple):
    """How two vectors differ in length and direction: lengths ``(…)``, vectors ``(…, d)``."""

    n_u: Tensor
    n_v: Tensor
    d_n: Tensor  # ‖u‖ − ‖v‖
    turn: Tensor  # (û − v̂)·max(‖u‖, ‖v‖)
    longer: Tensor  # max(‖u‖, ‖v‖)


def differences(u: Tensor, v: Tensor) -> Differences:
    """Differences taken of the vectors themselves, never of rounded norms or rounded directions.

    With δ = u − v and s = ‖u‖ − ‖v‖ = δ·(u + v)/(‖u‖ + ‖v‖), the directions differ by (δ − s·shorter)/longer, where
    ``shorter`` is the direction of the shorter of the two.
    """
    floor = tiny(u.dtype)
    n_u = torch.linalg.vector_norm(u, dim=-1)
    n_v = torch.linalg.vector_norm(v, dim=-1)
    delta = u - v
    d_n = (delta * (u + v)).sum(-1) / (n_u + n_v).clamp_min(floor)
    shorter = torch.where((n_u >= n_v).unsqueeze(-1), v, u)
    slope = d_n / torch.minimum(n_u, n_v).clamp_min(floor)
    turn = torch.addcmul(delta, shorter, slope.unsqueeze(-1), value=-1)
    return Differences(n_u, n_v, d_n, turn, torch.maximum(n_u, n_v).clamp_min(floor))


class _Legs(NamedTuple):
    """The quantities of the module's formula, all ``(…)``."""

    r_u: Tensor
    r_v: Tensor
    d_r: Tensor
    a: Tensor
    t: Tensor


def _legs(diff: Differences, root: Tensor) -> _Legs:
    """Radii and the two legs a and t; ``root`` is √β."""
    cut = max_radius(root.dtype)
    r_u, r_v = (diff.n_u / root).clamp(max=cut), (diff.n_v / root).clamp(max=cut)
    d_r = (diff.d_n / root).clamp(-cut, cut)
    a = 2 * root * torch.sinh(d_r / 2)
    grown = torch.sqrt(torch.sinh(r_u)) * torch.sqrt(torch.sinh(r_v))
    return _Legs(r_u, r_v, d_r, a, root * grown * (torch.linalg.vector_norm(diff.turn, dim=-1) / diff.longer))


class _Chord(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
        legs = _legs(differences(u, v), beta.sqrt())
        return torch.hypot(legs.a, legs.t)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        u, v, beta = ctx.saved_tensors
        root = beta.sqrt()
        diff = differences(u, v)
        r_u, r_v, d_r, a, t = _legs(diff, root)
        chord = torch.hypot(a, t)
        # subgradient 0 where the points coincide; a subnormal chord has no reciprocal
        apart = chord > tiny(chord.dtype)
        inverse = torch.where(apart, 1 / torch.where(apart, chord, torch.ones_like(chord)), 0)
        along = a * inverse * torch.cosh(d_r / 2)
        across = t * (t * inverse) / (2 * root)
        largest = torch.finfo(chord.dtype).max / 1e3

        def side(w: Tensor, length: Tensor, r_own: Tensor, r_other: Tensor, sign: int) -> Tensor:
            floor = tiny(w.dtype)
            own = w / length.clamp_min(floor).unsqueeze(-1)
            coth = (1 + rcoth_minus_1(r_own)) / r_own.clamp_min(floor)
            radial = (grad * (sign * along + coth * across)).unsqueeze(-1) * own
            # Exactly, turn's part along the own direction is ∓‖Δû‖²/2, which coth counts; what is there beside it
            # is rounding, and the growth would make it e^2r times larger.
            turn = diff.turn - (diff.turn * own).sum(-1, keepdim=True) * own
            # The growth enters as two roots, on either side of 1/chord, so that sideways stays of order 1; far out
            # what it is multiplied by passes the largest float, and is held below it.
            growth = torch.sqrt(sinhc(r_own)) * torch.sqrt(torch.sinh(r_other))
            sideways = (growth * root * inverse / diff.longer).unsqueeze(-1) * turn
            return radial + (sign * grad * growth).clamp(-largest, largest).unsqueeze(-1) * sideways

        grad_beta = -(
            a * (a * inverse) * rcoth_minus_1(d_r.abs() / 2)
            + t * (t * inverse) * (rcoth_minus_1(r_u) + rcoth_minus_1(r_v)) / 2
        ) / (2 * beta)
        grad_u, grad_v = side(u, diff.n_u, r_u, r_v, 1), side(v, diff.n_v, r_v, r_u, -1)
        return grad_u, grad_v, (grad * grad_beta).sum_to_size(beta.shape)


def chord(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """d_L ``(…)``: the length of the straight line between exp_0(u) and exp_0(v) in Minkowski space.

    Args:
        u, v: normal coordinates ``(…, d)``, broadcast against each other.
        beta: scalar, or broadcastable to ``(…)``.
    """
    u, v = torch.broadcast_tensors(u, v)
    result: Tensor = _Chord.apply(u, v, beta)
    return result
