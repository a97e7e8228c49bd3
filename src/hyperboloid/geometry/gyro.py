r"""The gyrovector sum u ⊕ v, and its gradient: log_x(y) for x = exp_0(−u), y = exp_0(v), carried to the origin.

What follows is written for the difference ⊖u ⊕ v, whose x is exp_0(u). It is the space part of y after the boost that
brings x to the origin. In units of √β, with r = ‖·‖, directions û and v̂, Δr = r_u − r_v, Δû = û − v̂, τ = ‖Δû‖²/2 and
Δû_⊥ the part of Δû across û (docs/mathematics.md, 1.4):

.. math::  T = \frac{θ}{\sinh θ}\, z, \qquad
           z = -[\sinh Δr + τ \sinh r_v \cosh r_u]\, û - \sinh r_v\, Δû_\perp, \qquad θ = d_H = \|T\|

The gradient comes from geometry rather than from the chain rule, which would divide by lengths and cancel. Moving y by
δ and x by ε, both carried to the origin, changes T by

.. math::
    dT = J R δ - (T̂T̂^\top + θ \coth θ\, (I - T̂T̂^\top))\, ε
         + \tanh(r_u/2) \big(⟨ε_\perp, T⟩ û - ⟨û, T⟩ ε_\perp\big)

with J = T̂T̂ᵀ + (θ/sinh θ)(I − T̂T̂ᵀ) (Jacobi fields along the geodesic), R the turn by the angular defect of the triangle
origin, x, y, which takes −log_y(x) to log_x(y), and a last term for the turning of the frame at x, with ε_⊥ the part of
ε across u. Everything is computed in double precision, whatever the inputs have.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hyperboloid.function import Function

from .chord import differences
from .numerics import max_radius, polar, rcoth_minus_1, sinhc, tiny
from .rows import Gradients, batched, gradient_kernel_for, kernel_for


def _difference(u: Tensor, v: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """T ``(…, d)`` and θ ``(…)``, in units of √β."""
    root, cut = beta.sqrt(), max_radius(u.dtype)
    diff = differences(u, v)
    turn = diff.turn / diff.longer.unsqueeze(-1)
    r_u, r_v = (diff.length / root.unsqueeze(0)).clamp(max=cut / 2)
    d_r = (diff.d_n / root).clamp(-cut / 2, cut / 2)
    sinh_u, sinh_v = torch.sinh(r_u), torch.sinh(r_v)
    square = turn.square().sum(-1)
    theta = 2 * torch.asinh(torch.hypot(torch.sinh(d_r / 2), (sinh_u * sinh_v * square).sqrt() / 2))
    own = u / diff.length[0].clamp_min(tiny(u.dtype)).unsqueeze(-1)
    # exactly û·Δû = τ; the rounding beside it is taken out, for sinh would enlarge it
    across = turn - (turn * own).sum(-1, keepdim=True) * own
    radial = torch.sinh(d_r) + square / 2 * sinh_v * torch.cosh(r_u)
    z = radial.unsqueeze(-1) * own + sinh_v.unsqueeze(-1) * across
    return -z / sinhc(theta).unsqueeze(-1), theta


def _to_coordinates(grad: Tensor, v: Tensor, root: Tensor) -> Tensor:
    """A gradient in the orthonormal frame at exp_0(v) as one in v: across the radius lengths are sinh r/r larger."""
    length, direction = polar(v)
    stretch = sinhc((length / root).clamp(max=max_radius(v.dtype) / 2)).unsqueeze(-1)
    along = (grad * direction).sum(-1, keepdim=True) * direction
    return along + stretch * (grad - along)


def _values(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """u ⊕ v of rows."""
    kernel = kernel_for("gyro", u, beta)
    if kernel is not None:
        return kernel.values(u, v, beta)
    wide = beta.double()
    t, _ = _difference(-u.double(), v.double(), wide)
    return (wide.sqrt().unsqueeze(-1) * t).to(u.dtype)


def _gradients(u: Tensor, v: Tensor, beta: Tensor, grad: Tensor) -> Gradients:
    """Of u ⊕ v in u, v and β."""
    kernel = gradient_kernel_for("gyro", u, beta)
    if kernel is not None:
        to_u, to_v, to_beta = kernel.gradients(u, v, beta, grad)
        return to_u, to_v, to_beta.view(beta.shape)
    u, v, beta = -u.double(), v.double(), beta.double()
    g, root = grad.double(), beta.sqrt()
    t, theta = _difference(u, v, beta)
    theta = theta.unsqueeze(-1)
    unit = t / theta.clamp_min(tiny(t.dtype))
    g_along = (g * unit).sum(-1, keepdim=True)

    # x moves
    length, direction = polar(u)
    turning = torch.tanh(length / root / 2).unsqueeze(-1) * direction
    excess = rcoth_minus_1(theta)
    of_g = -1 - excess - (turning * t).sum(-1, keepdim=True)
    grad_u = _to_coordinates(of_g * g + excess * g_along * unit + (turning * g).sum(-1, keepdim=True) * t, u, root)

    # y moves: R leads from a = −log_y(x)/θ to b = T/θ, its transpose back
    a = -_difference(v, u, beta)[0] / theta.clamp_min(tiny(t.dtype))
    both = a + unit
    pulled = g / sinhc(theta) + (1 - 1 / sinhc(theta)) * g_along * unit
    scale = 2 / both.square().sum(-1, keepdim=True).clamp_min(tiny(t.dtype))
    turned = pulled - scale * (pulled * both).sum(-1, keepdim=True) * both + 2 * g_along * a
    grad_v = _to_coordinates(torch.where(theta > 1e-8, turned, g), v, root)

    # T/√β depends on u/√β and v/√β alone
    parts = (root.unsqueeze(-1) * g * t - u * grad_u - v * grad_v).sum(-1) / (2 * beta)
    limit = torch.finfo(grad.dtype).max / 1e3
    held = (x.clamp(-limit, limit).to(grad.dtype) for x in (-grad_u, grad_v, parts.sum_to_size(beta.shape)))
    return tuple(held)  # type: ignore[return-value]


class _GyroSum(Function):
    @staticmethod
    def forward(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
        return _values(u, v, beta)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Gradients:
        u, v, beta = ctx.saved_tensors
        return _gradients(u, v, beta, grad)

    @staticmethod
    def vmap(info: Any, in_dims: Any, u: Tensor, v: Tensor, beta: Tensor) -> tuple[Tensor, int]:
        return batched(_GyroSum, info, in_dims, u, v, beta)


# What torch.compile makes on a CPU of gradients that it sees into is wrong, by more than they are large (torch 2.13)
@torch.library.custom_op("hyperboloid::gyro_sum", mutates_args=())
def _opaque(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    return _values(u, v, beta).contiguous()


@torch.library.custom_op("hyperboloid::gyro_gradients", mutates_args=())
def _opaque_gradients(u: Tensor, v: Tensor, beta: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    to_u, to_v, to_beta = (t.contiguous() for t in _gradients(u, v, beta, grad))
    return to_u, to_v, to_beta


_opaque.register_fake(lambda u, v, beta: u.new_empty(u.shape))
_opaque_gradients.register_fake(lambda u, v, beta, grad: tuple(t.new_empty(t.shape) for t in (u, v, beta)))
_opaque.register_autograd(
    lambda ctx, grad: _opaque_gradients(*ctx.saved_tensors, grad), setup_context=_GyroSum.setup_context
)


def gyro_sum(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """u ⊕ v in normal coordinates ``(…, d)``; ⊖u is −u.

    Args:
        u, v: normal coordinates ``(…, d)``, broadcast against each other.
        beta: scalar, or broadcastable to ``(…)``.
    """
    u, v = torch.broadcast_tensors(u, v)
    # torch.func sees into it all the same
    opaque = torch.compiler.is_compiling() and torch._C._functorch.maybe_current_level() is None
    result: Tensor = _opaque(u, v, beta) if opaque else _GyroSum.apply(u, v, beta)
    return result
