r"""LeakyReLU σ of the coordinates of the Poincaré ball, seen from normal coordinates (HGNN_H and HGNN_P).

With n = ‖v‖, r = n/√β, t = tanh(r/2) and ρ = ‖σ(v)‖/n the result is σ(v), stretched to the radius 2 artanh(tρ):

.. math::  \sigma^B(v) = h\, \sigma(v), \qquad h = \frac{\sqrt\beta}{\rho n} \log\Big(1 + \frac{2 t\rho}{1 - t\rho}\Big)

Near the border 1 − tρ is taken as (1 − t) + t (1 − ρ), both of which are known without a subtraction: 1 − ρ² = κ with
κ = (1 − s²) Σ v_i²/n² over negative v_i, s being σ's slope there. So is the gradient, which is written out:
∂ρ/∂v_i = v_i (κ − [v_i < 0] (1 − s²))/(ρ n²) is 0 where no v_i is negative, whatever it is multiplied by.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from hyperboloid.first_order import first_order
from hyperboloid.function import Function
from hyperboloid.geometry.numerics import max_radius, tiny


class _BallActivation(Function):
    @staticmethod
    def forward(ctx: Any, v: Tensor, beta: Tensor, slope: float) -> Tensor:
        root, low = beta.sqrt(), v.clamp_max(0)
        n, negative = (torch.linalg.vector_norm(x, dim=-1, keepdim=True) for x in (v, low))
        n = n.clamp_min(tiny(v.dtype))
        kappa = (1 - slope**2) * (negative / n).square()
        rho = (1 - kappa).clamp_min(slope**2).sqrt()
        r = (n / root).clamp(max=max_radius(v.dtype))
        t, from_1 = torch.tanh(r / 2), 2 * torch.sigmoid(-r)  # 1 − tanh(r/2) = 2/(1 + e^r)
        w = from_1 + t * kappa / (1 + rho)  # 1 − tρ
        h = root / (rho * n) * torch.log1p(2 * t * rho / w)
        out = h * F.leaky_relu(v, slope)
        ctx.slope = slope
        ctx.save_for_backward(v, beta, low, n, kappa, rho, r, t, from_1, w, h, out)
        return out

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        v, beta, low, n, kappa, rho, r, t, from_1, w, h, out = ctx.saved_tensors
        slope, root = ctx.slope, beta.sqrt()
        along = torch.linalg.vecdot(grad, out).unsqueeze(-1)
        outer = 2 / (1 + t * rho)  # times 1/w it is the derivative of the logarithm
        moves = torch.where(r < max_radius(v.dtype), from_1 / w * (1 + t) / 2, 0)
        # how h changes with n and with ρ, over h, and with what n and ρ change by with v, over v
        by_n = along / n.square() * (outer * moves / h - 1)
        by_rho = along / (rho * n).square() * (root * outer * t / (w * n * h) - 1)
        limit = torch.finfo(v.dtype).max / 1e3  # passed at the border, where it is multiplied by 0
        by_rho = by_rho.clamp(-limit, limit)
        to_v = torch.ops.aten.leaky_relu_backward(h * grad, v, slope, False)
        to_v.addcmul_(by_n + by_rho * kappa, v).addcmul_(by_rho, low, value=slope**2 - 1)
        if not ctx.needs_input_grad[1]:
            return to_v, None, None
        # the result grows with v and √β together, so that both derivatives add up to it
        to_beta = along.sum() - (to_v * v).sum()
        return to_v, (to_beta / (2 * beta)).reshape(beta.shape), None


def ball_activation(v: Tensor, beta: Tensor, slope: float) -> Tensor:
    """Normal coordinates ``(…, d)`` of the point whose ball coordinates are LeakyReLU of those of v.

    Args:
        v: normal coordinates ``(…, d)``.
        beta: scalar.
        slope: of LeakyReLU for negative numbers.
    """
    out: Tensor = _BallActivation.apply(v, beta, slope)
    return out
