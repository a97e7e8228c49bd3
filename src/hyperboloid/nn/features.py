"""Node features that are mostly zero, kept and multiplied as sparse rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from hyperboloid.kernels import Adjacency, DroppedRows, dropout, late_dropout, weighted_sum

#: A matrix with a smaller share of non-zeros is multiplied faster as sparse than as dense. Measured on a CPU for widths
#: 16 and 64: Pubmed, of which a tenth is not zero, 1.3 times as fast, and 5 times with dropout in a batch of models;
#: Amazon, of which a third is, 0.8 to 1.1 times.
SPARSE_BELOW = 0.2


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """A constant ``(N, k)`` matrix as compressed rows.

    Attributes:
        pattern: where it is not zero, as the graph of N rows and k columns.
        value: ``(nnz,)``.
    """

    pattern: Adjacency
    value: Tensor

    @classmethod
    def from_dense(cls, x: Tensor) -> SparseFeatures:
        """Compress a dense matrix ``(N, k)``."""
        row, col = x.nonzero(as_tuple=True)
        return cls(Adjacency.from_edges(col, row, (x.size(1), x.size(0)), self_loops=False), x[row, col])

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, k)``."""
        return self.pattern.num_rows, self.pattern.num_cols

    def to(self, device: torch.device | str) -> SparseFeatures:
        """The same matrix on ``device``."""
        return SparseFeatures(self.pattern.to(device), self.value.to(device))

    def dropout(self, p: float | Tensor, training: bool) -> SparseFeatures:
        """Drop values; dropping a zero changes nothing, so this is dropout on the whole matrix."""
        return replace(self, value=dropout(self.value, p, training)) if training else self

    def matmul(self, weight: Tensor) -> Tensor:
        """X W for a dense ``(k, d)`` matrix W; differentiable in W."""
        return weighted_sum(weight, self.pattern, self.value)


@dataclass(frozen=True, eq=False)
class DroppedOneHot:
    """What dropout leaves of one-hot features: row i has its single entry at i, or none.

    Attributes:
        value: the entries ``(N,)``, 0 or 1/(1 − p).
    """

    value: Tensor

    def matmul(self, weight: Tensor) -> Tensor:
        """X W for a dense ``(N, d)`` matrix W; differentiable in W."""
        return weight * self.value.unsqueeze(-1)


#: Features of a graph; None stands for one-hot ones.
Features = Tensor | SparseFeatures | None
#: What dropout leaves of them, and a linear map takes.
DroppedFeatures = Features | DroppedOneHot | DroppedRows


def drop_features(x: Features, p: float | Tensor, training: bool, like: Tensor, width: int) -> DroppedFeatures:
    """Dropout on features of any kind.

    Args:
        x: features of nodes.
        p: probability of dropping one.
        training: nothing is dropped outside of it.
        like: a tensor of the type and device that one-hot features should have.
        width: of the features; where they are one-hot, the number of nodes.
    """
    if isinstance(x, SparseFeatures):
        return x.dropout(p, training)
    if isinstance(x, Tensor):
        return late_dropout(x, p, training)
    if not training:
        return None
    entries = torch.ones(width, dtype=like.dtype, device=like.device)
    left = dropout(entries, p, training)
    return None if left is entries else DroppedOneHot(left)


def compress(x: Tensor | None) -> Features:
    """The representation of features that multiplies fastest."""
    if x is None or x.count_nonzero() >= SPARSE_BELOW * x.numel():
        return x
    return SparseFeatures.from_dense(x)
