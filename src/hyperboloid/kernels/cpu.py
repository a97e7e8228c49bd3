"""The CPU backend: the loops of `cpu_loops.py` as differentiable operations."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hyperboloid.geometry.numerics import max_chord

from . import cpu_loops as loops
from . import reference
from .adjacency import Adjacency


def _back(array: Any, like: Tensor) -> Tensor:
    """A double array as a tensor of another's dtype; what passes its largest number is held below it."""
    tensor = torch.from_numpy(array)
    if like.dtype == tensor.dtype:
        return tensor
    limit = torch.finfo(like.dtype).max / 1e3
    return tensor.clamp_(-limit, limit).to(like.dtype)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        query: Tensor, key: Tensor, beta: Tensor, keep: Tensor | None, adj: Adjacency, cap: float
    ) -> tuple[Tensor, Tensor]:
        q, k, root = query.detach().contiguous().numpy(), key.detach().contiguous().numpy(), float(beta) ** 0.5
        mask = torch.empty(0, dtype=torch.bool) if keep is None else keep
        alpha = loops.attention_forward(
            q, k, adj.rowptr.numpy(), adj.col.numpy(), mask.numpy(), *loops.polar(q, root), *loops.polar(k, root),
            root, cap,
        )  # fmt: skip
        exact = torch.from_numpy(alpha)
        return exact.to(query.dtype, copy=True), exact

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        query, key, beta, _, ctx.adj, ctx.cap = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(query, key, beta, output[1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        query, key, beta, alpha = ctx.saved_tensors
        adj: Adjacency = ctx.adj
        q, k, root = query.contiguous().numpy(), key.contiguous().numpy(), float(beta) ** 0.5
        radii = (*loops.polar(q, root), *loops.polar(k, root))
        grad_square, grad_query, grad_beta = loops.attention_backward_rows(
            q, k, adj.rowptr.numpy(), adj.col.numpy(), *radii, root, ctx.cap, alpha.numpy(), grad.contiguous().numpy()
        )
        colptr, row_t, entry_t = adj.transposed
        grad_key = loops.attention_backward_cols(
            q, k, colptr.numpy(), row_t.numpy(), entry_t.numpy(), *radii, root, grad_square
        )
        of_beta = torch.as_tensor(grad_beta.sum(), dtype=beta.dtype).reshape(beta.shape)
        return _back(grad_query, query), _back(grad_key, key), of_beta, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, query: Any, key: Any, beta: Any, keep: Any, adj: Adjacency, cap: float) -> Any:
        def one(q: Tensor, k: Tensor, b: Tensor, m: Tensor | None) -> Tensor:
            return reference.lorentz_attention(q, k, adj, b, keep=m)

        dims = (*in_dims[:3], in_dims[3] if keep is not None else None)
        alpha = torch.vmap(one, in_dims=dims)(query, key, beta, keep)
        return (alpha, alpha.detach()), (0, 0)


class _Centroid(torch.autograd.Function):
    @staticmethod
    def forward(u: Tensor, weight: Tensor, beta: Tensor, adj: Adjacency) -> tuple[Tensor, ...]:
        x, root = u.detach().contiguous().numpy(), float(beta) ** 0.5
        state = loops.centroid_forward(
            x, *loops.polar(x, root), adj.rowptr.numpy(), adj.col.numpy(), weight.detach().contiguous().numpy()
        )
        out = loops.centroid_value(*state[:3], root)
        return (_back(out, u), *(torch.from_numpy(a) for a in state))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.adj = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*tensors, *output[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        u, weight, beta, *state = ctx.saved_tensors
        adj: Adjacency = ctx.adj
        x, root = u.contiguous().numpy(), float(beta) ** 0.5
        radii = loops.polar(x, root)
        n, size, gap, largest = (t.numpy() for t in state)
        grad_space, grad_gap, grad_weight, grad_root = loops.centroid_backward_rows(
            x, *radii, adj.rowptr.numpy(), adj.col.numpy(), n, size, gap, largest, root, grad.contiguous().numpy()
        )
        colptr, row_t, entry_t = adj.transposed
        grad_u, by_column = loops.centroid_backward_cols(
            x, *radii, colptr.numpy(), row_t.numpy(), entry_t.numpy(), weight.contiguous().numpy(), n, largest,
            grad_space, grad_gap, root,
        )  # fmt: skip
        grad_beta = by_column.sum() + grad_root.sum() / (2 * root)
        of_beta = torch.as_tensor(grad_beta, dtype=beta.dtype).reshape(beta.shape)
        return _back(grad_u, u), _back(grad_weight, weight), of_beta, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, u: Any, weight: Any, beta: Any, adj: Adjacency) -> Any:
        def one(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
            return reference.lorentz_aggregate(x, adj, b, w)

        out = torch.vmap(one, in_dims=in_dims[:3])(u, weight, beta)
        nothing = out.new_zeros(())
        return (out, *[nothing] * 4), (0, *[None] * 4)


def lorentz_attention(
    query: Tensor, key: Tensor, adj: Adjacency, beta: Tensor, *, keep: Tensor | None = None
) -> Tensor:
    """See :func:`hyperboloid.kernels.lorentz_attention`."""
    alpha: Tensor = _Attention.apply(query, key, beta, keep, adj, max_chord(query.dtype) ** 2)[0]
    return alpha


def lorentz_aggregate(u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.lorentz_aggregate`."""
    out: Tensor = _Centroid.apply(u, weight, beta, adj)[0]
    return out
