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

from hyperboloid.function import Function

from .numerics import arc, max_radius, rcoth_minus_1, tiny
from .rows import batched, gradient_kernel_for, kernel_for


class Differences(NamedTuple):
    """How two vectors differ in length and direction."""

    length: Tensor  # (2, …): ‖u‖, ‖v‖
    d_n: Tensor  # (…): ‖u‖ − ‖v‖
    turn: Tensor  # (…, d): (û − v̂)·max(‖u‖, ‖v‖)
    longer: Tensor  # (…): max(‖u‖, ‖v‖)


def differences(u: Tensor, v: Tensor) -> Differences:
    """Differences taken of the vectors themselves, never of rounded norms or rounded directions.

    With δ = u − v and s = ‖u‖ − ‖v‖ = δ·(u + v)/(‖u‖ + ‖v‖), the directions differ by (δ − s·shorter)/longer, where
    ``shorter`` is the direction of the shorter of the two.
    """
    floor = tiny(u.dtype)
    length = torch.stack([torch.linalg.vector_norm(u, dim=-1), torch.linalg.vector_norm(v, dim=-1)])
    delta = u - v
    d_n = (delta * (u + v)).sum(-1) / length.sum(0).clamp_min(floor)
    shorter = torch.where((length[0] >= length[1]).unsqueeze(-1), v, u)
    slope = d_n / length.amin(0).clamp_min(floor)
    turn = torch.addcmul(delta, shorter, slope.unsqueeze(-1), value=-1)
    return Differences(length, d_n, turn, length.amax(0).clamp_min(floor))


class _Legs(NamedTuple):
    """The quantities of the module's formula; the pairs ``(2, …)`` hold those of u and of v."""

    r: Tensor  # (2, …), floored so that it may be divided by
    root_sinh: Tensor  # (2, …): √sinh r
    d_r: Tensor
    a: Tensor
    t: Tensor


def _legs(diff: Differences, root: Tensor) -> _Legs:
    """Radii and the two legs a and t; ``root`` is √β."""
    cut = max_radius(root.dtype)
    r = (diff.length / root).clamp(tiny(root.dtype), cut)
    root_sinh = torch.sinh(r).sqrt()
    d_r = (diff.d_n / root).clamp(-cut, cut)
    t = root * root_sinh[0] * root_sinh[1] * (torch.linalg.vector_norm(diff.turn, dim=-1) / diff.longer)
    return _Legs(r, root_sinh, d_r, 2 * root * torch.sinh(d_r / 2), t)


class _Chord(Function):
    @staticmethod
    def forward(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
        kernel = kernel_for("chord", u, beta)
        if kernel is not None:
            return kernel.values(u, v, beta)
        legs = _legs(differences(u, v), beta.sqrt())
        return torch.hypot(legs.a, legs.t)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        u, v, beta = ctx.saved_tensors
        kernel = gradient_kernel_for("chord", u, beta)
        if kernel is not None:
            to_u, to_v, to_beta = kernel.gradients(u, v, beta, grad)
            return to_u, to_v, to_beta.view(beta.shape)
        root = beta.sqrt()
        diff = differences(u, v)
        r, root_sinh, d_r, a, t = _legs(diff, root)
        chord = torch.hypot(a, t)
        # subgradient 0 where the points coincide; a subnormal chord has no reciprocal
        inverse = torch.where(chord > tiny(chord.dtype), 1 / chord.clamp_min(tiny(chord.dtype)), 0)
        a_unit, t_unit = a * inverse, t * inverse
        excess = rcoth_minus_1(torch.cat([r, d_r.abs().unsqueeze(0) / 2]))
        grad_beta = (a * a_unit * excess[2] + t * t_unit * (excess[0] + excess[1]) / 2) / (-2 * beta)

        # from here on the leading 2 stands for the sides of u and of v
        own = torch.stack([u, v]) / diff.length.clamp_min(tiny(u.dtype)).unsqueeze(-1)
        along = a_unit * torch.cosh(d_r / 2)
        radial = grad * (torch.stack([along, -along]) + (1 + excess[:2]) / r * (t * t_unit / (2 * root)))
        # Exactly, turn's part along the own direction is ∓‖Δû‖²/2, which coth counts; what is there beside it is
        # rounding, and the growth would make it e^2r times larger.
        turn = diff.turn - (diff.turn * own).sum(-1, keepdim=True) * own
        # The growth √(sinh r/r · sinh r') enters twice, on either side of 1/chord, so that sideways stays of order 1;
        # far out what it is multiplied by passes the largest float, and is held below it.
        growth = root_sinh[0] * root_sinh[1] / r.sqrt()
        largest = torch.finfo(chord.dtype).max / 1e3
        sideways = (growth * (root * inverse / diff.longer)).unsqueeze(-1) * turn
        outer = (grad * torch.stack([growth[0], -growth[1]])).clamp(-largest, largest)
        sides = torch.addcmul(radial.unsqueeze(-1) * own, outer.unsqueeze(-1), sideways)
        return sides[0], sides[1], (grad * grad_beta).sum_to_size(beta.shape)

    @staticmethod
    def vmap(info: Any, in_dims: Any, u: Tensor, v: Tensor, beta: Tensor) -> tuple[Tensor, int]:
        return batched(_Chord, info, in_dims, u, v, beta)


class _Square(Function):
    @staticmethod
    def forward(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
        kernel = kernel_for("sqdist", u, beta)
        return _square(u, v, beta) if kernel is None else kernel.values(u, v, beta)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        u, v, beta = ctx.saved_tensors
        kernel = gradient_kernel_for("sqdist", u, beta)
        if kernel is not None:
            to_u, to_v, to_beta = kernel.gradients(u, v, beta, grad)
            return to_u, to_v, to_beta.view(beta.shape)
        twice = torch.is_grad_enabled()
        with torch.enable_grad():
            inputs = [t if twice and t.requires_grad else t.detach().requires_grad_() for t in (u, v, beta)]
            return torch.autograd.grad(_square(*inputs), inputs, grad, create_graph=twice)

    @staticmethod
    def vmap(info: Any, in_dims: Any, u: Tensor, v: Tensor, beta: Tensor) -> tuple[Tensor, int]:
        return batched(_Square, info, in_dims, u, v, beta)


def _square(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    return arc(chord(u, v, beta), 2 * beta.sqrt()).square()


def square_by_kernel(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """d_H² ``(…)`` where a backend has a kernel for it; arguments as for :func:`chord`."""
    result: Tensor = _Square.apply(*torch.broadcast_tensors(u, v), beta)
    return result


def chord(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """d_L ``(…)``: the length of the straight line between exp_0(u) and exp_0(v) in Minkowski space.

    Args:
        u, v: normal coordinates ``(…, d)``, broadcast against each other.
        beta: scalar, or broadcastable to ``(…)``.
    """
    u, v = torch.broadcast_tensors(u, v)
    result: Tensor = _Chord.apply(u, v, beta)
    return result
