"""Gradient descent on the hyperboloid, for parameters in normal coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from hyperboloid.geometry import Lorentz
from hyperboloid.geometry.curvature import BetaLike, beta_tensor
from hyperboloid.geometry.numerics import polar, sinhc


class RiemannianSGD(torch.optim.Optimizer):
    r"""Riemannian stochastic gradient descent (Bonnabel, 2013): every row steps along a geodesic.

    In normal coordinates the metric is that of R^d along v and (sinh r/r)² times it across, r = ‖v‖/√β. The gradient
    g of a loss in v therefore is, as a tangent vector carried to the origin,

    .. math::  t = g_\parallel + \frac{r}{\sinh r}\, g_\perp, \qquad v \leftarrow \exp_v(-\eta\, t)

    A row of a sparse gradient costs what it costs alone: rows that are not in it are not read.

    Args:
        params: points ``(…, d)``, one in each row.
        lr: η.
        beta: β of the hyperboloid.
    """

    def __init__(self, params: Iterable[Tensor], lr: float, *, beta: BetaLike = 1.0) -> None:
        super().__init__(params, {"lr": lr})
        self._beta = beta

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every point that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.grad.is_sparse:
                    grad = p.grad.coalesce()
                    rows = grad.indices()[0]
                    p[rows] = self._moved(p[rows], grad.values(), group["lr"])
                else:
                    p.copy_(self._moved(p, p.grad, group["lr"]))
        return loss

    def _moved(self, v: Tensor, grad: Tensor, lr: float) -> Tensor:
        length, direction = polar(v)
        along = (grad * direction).sum(-1, keepdim=True) * direction
        r = (length / beta_tensor(self._beta, v).sqrt()).unsqueeze(-1)
        tangent = along + (grad - along) / sinhc(r)
        return Lorentz(self._beta).normal.exp_at(v, -lr * tangent)
