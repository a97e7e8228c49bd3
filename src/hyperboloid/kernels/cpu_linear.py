"""Products of many models at once on a CPU, by matrix products of torch's that are fast for few columns.

Features that all models share are multiplied once, by the weights of all models side by side: a single product reads
them once, and has as many columns as an instruction takes numbers. The gradient in the weights is Gᵀ X, not the
transpose of Xᵀ G, for which torch would ask by itself: with 8 columns that takes several times as long.
"""

from __future__ import annotations

from torch import Tensor


def _shared(x: Tensor) -> bool:
    """Whether all models have the same numbers ``(M, N, k)``."""
    return x.size(0) > 1 and x.stride(0) == 0


def row_product(x: Tensor, weight: Tensor) -> Tensor:
    """X Wᵀ ``(M, N, d)`` of ``(M, N, k)`` and ``(M, d, k)``, or of a single pair without M."""
    if x.dim() == 2 or not _shared(x):
        return x @ weight.mT
    side_by_side = x[0] @ weight.flatten(0, 1).mT
    return side_by_side.unflatten(1, weight.shape[:2]).transpose(0, 1).contiguous()


def tall_product(a: Tensor, x: Tensor) -> Tensor:
    """Aᵀ X ``(M, c, k)`` of tall ``(M, N, c)`` and ``(M, N, k)``, or of a single pair without M."""
    if x.dim() == 2 or not _shared(x):
        return a.mT @ x
    side_by_side = a.transpose(0, 1).flatten(1)
    return (side_by_side.mT @ x[0]).unflatten(0, a.shape[::2])
