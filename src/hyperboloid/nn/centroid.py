"""The Lorentz centroid as a PyG aggregation, for any conv or read-out that takes one."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn.aggr import Aggregation

from hyperboloid.errors import InputError
from hyperboloid.geometry import Curvature
from hyperboloid.geometry.centroid import centroid


class LorentzCentroid(Aggregation):
    r"""Centroid of the squared Lorentzian distance (Theorem 4.2) of each group, in normal coordinates.

    ``MessagePassing(aggr=LorentzCentroid())`` aggregates messages on the hyperboloid; as a read-out it sums up a
    graph's nodes. An empty group gives the origin.

    Args:
        beta: the curvature is −1/β.
        train_beta: learn β.
    """

    def __init__(self, beta: float = 1.0, *, train_beta: bool = False) -> None:
        super().__init__()
        self.curvature = Curvature(beta, trainable=train_beta)

    def reset_parameters(self) -> None:
        """Back to the β asked for."""
        self.curvature.reset_parameters()

    def forward(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
        weight: Tensor | None = None,
    ) -> Tensor:
        """Centroids ``(dim_size, d)`` of rows of ``x`` ``(E, d)`` grouped by ``index`` ``(E,)`` or ``ptr``.

        ``weight`` ``(E,)`` gives the rows unequal weights.
        """
        self.assert_two_dimensional_input(x, dim)
        if weight is not None and weight.shape != x.shape[:1]:
            raise InputError(f"weight must have one axis, a number for each row, not {tuple(weight.shape)}.")
        if index is None:
            if ptr is None:
                index, dim_size = torch.zeros(x.size(0), dtype=torch.long, device=x.device), 1
            else:
                index = torch.repeat_interleave(torch.arange(ptr.numel() - 1, device=x.device), ptr.diff())
                dim_size = ptr.numel() - 1
        if dim_size is None:
            dim_size = int(index.max()) + 1 if index.numel() else 0
        groups = index
        return centroid(
            x,
            x.new_ones(x.size(0)) if weight is None else weight,
            self.curvature().to(x.dtype),
            total=lambda t: t.new_zeros(dim_size, *t.shape[1:]).index_add(0, groups, t),
            spread=lambda t: t.index_select(0, groups),
        )
