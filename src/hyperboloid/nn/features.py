"""Node features that are mostly zero, kept and multiplied as sparse rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from hyperboloid.kernels import dropout

#: A matrix with a smaller share of non-zeros is multiplied faster as sparse than as dense (two cores, width 16 to 64).
SPARSE_BELOW = 0.05


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """A constant ``(N, k)`` matrix as compressed rows, with the transposed order for the gradient of the weights.

    Attributes:
        rowptr: ``(N + 1,)`` where each row starts.
        col: ``(nnz,)`` the column of each value.
        value: ``(nnz,)``.
        colptr: ``(k + 1,)`` where each column starts in the transposed order.
        row_t: ``(nnz,)`` the row of each value, in the transposed order.
        perm_t: ``(nnz,)`` where each value of the transposed order stands in ``value``.
        shape: ``(N, k)``.
    """

    rowptr: Tensor
    col: Tensor
    value: Tensor
    colptr: Tensor
    row_t: Tensor
    perm_t: Tensor
    shape: tuple[int, int]

    @classmethod
    def from_dense(cls, x: Tensor) -> SparseFeatures:
        """Compress a dense matrix ``(N, k)``."""
        with warnings.catch_warnings():
            # torch announces once per process that its CSR layout may still change, and that it trusts us not to make
            # invalid matrices; users can do nothing about either
            warnings.simplefilter("ignore")
            nothing = torch.zeros(2, dtype=torch.long)
            _csr(nothing, nothing[:0], torch.zeros(0), (1, 1))
        row, col = x.nonzero(as_tuple=True)
        perm = torch.argsort(col, stable=True)
        pointers = [
            torch.cat([i.new_zeros(1), torch.bincount(i, minlength=n).cumsum(0)])
            for i, n in ((row, x.size(0)), (col, x.size(1)))
        ]
        return cls(pointers[0], col, x[row, col], pointers[1], row[perm], perm, (x.size(0), x.size(1)))

    def to(self, device: torch.device | str) -> SparseFeatures:
        """The same matrix on ``device``."""
        names = ("rowptr", "col", "value", "colptr", "row_t", "perm_t")
        return replace(self, **{name: getattr(self, name).to(device) for name in names})

    def dropout(self, p: float | Tensor, training: bool) -> SparseFeatures:
        """Drop values; dropping a zero changes nothing, so this is dropout on the whole matrix."""
        return replace(self, value=dropout(self.value, p, training)) if training else self

    def matmul(self, weight: Tensor) -> Tensor:
        """X W for a dense ``(k, d)`` matrix W; differentiable in W."""
        result: Tensor = _SparseMatmul.apply(self.value, weight, self)
        return result


class _SparseMatmul(torch.autograd.Function):
    """The product with the values given beside the pattern, so that a batch of models may have values of its own."""

    @staticmethod
    def forward(value: Tensor, weight: Tensor, x: SparseFeatures) -> Tensor:
        return _csr(x.rowptr, x.col, value.to(weight.dtype), x.shape) @ weight

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        value, _, ctx.x = inputs
        ctx.save_for_backward(value)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
        (value,), x = ctx.saved_tensors, ctx.x
        transposed = _csr(x.colptr, x.row_t, value[x.perm_t].to(grad.dtype), (x.shape[1], x.shape[0]))
        return None, transposed @ grad.contiguous(), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, value: Tensor, weight: Tensor, x: SparseFeatures) -> tuple[Tensor, int]:
        models = info.batch_size
        weight = weight.movedim(in_dims[1], 0) if in_dims[1] is not None else weight.expand(models, *weight.shape)
        if in_dims[0] is None:  # one product with [W_1 … W_M]
            side_by_side = weight.movedim(0, 1).reshape(x.shape[1], -1)
            product: Tensor = _SparseMatmul.apply(value, side_by_side, x)
            return product.view(x.shape[0], models, -1), 1
        value = value.movedim(in_dims[0], 0)
        if weight.device.type == "cpu":
            return torch.stack([_SparseMatmul.apply(v, w, x) for v, w in zip(value, weight, strict=True)]), 0
        row = torch.repeat_interleave(
            torch.arange(x.shape[0], device=weight.device), x.rowptr.diff(), output_size=x.col.numel()
        )
        terms = value.to(weight.dtype).unsqueeze(-1) * weight.index_select(1, x.col)
        return weight.new_zeros(models, x.shape[0], weight.size(-1)).index_add(1, row, terms), 0


def _csr(rowptr: Tensor, col: Tensor, value: Tensor, shape: tuple[int, int]) -> Tensor:
    return torch.sparse_csr_tensor(rowptr, col, value, shape, check_invariants=False)


Features = Tensor | SparseFeatures | None


def drop_features(x: Features, p: float | Tensor, training: bool) -> Features:
    """Dropout on features of any kind; one-hot features have nothing to drop but the node itself, and are left."""
    if isinstance(x, SparseFeatures):
        return x.dropout(p, training)
    return None if x is None else dropout(x, p, training)


def compress(x: Tensor | None) -> Features:
    """The representation of features that multiplies fastest."""
    if x is None or x.count_nonzero() >= SPARSE_BELOW * x.numel():
        return x
    return SparseFeatures.from_dense(x)
