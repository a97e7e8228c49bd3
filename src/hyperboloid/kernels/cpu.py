"""The CPU backend: the loops of `cpu_loops.py` and `cpu_tangent.py` as differentiable operations."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hyperboloid.first_order import first_order
from hyperboloid.function import Function
from hyperboloid.geometry.numerics import rcoth_minus_1

from . import cpu_loops as loops
from . import cpu_tangent, reference
from .adjacency import Adjacency


def _back(array: Any, like: Tensor) -> Tensor:
    """A double array as a tensor of another's dtype; what passes its largest number is held below it."""
    tensor = torch.from_numpy(array)
    if like.dtype == tensor.dtype:
        return tensor
    limit = torch.finfo(like.dtype).max / 1e3
    return tensor.clamp_(-limit, limit).to(like.dtype)


def one_by_one(function: Any, models: int, in_dims: Any, args: Any) -> Any:
    """A vmap rule: the loops take one model at a time, which on a CPU costs nothing but the call."""
    # unbound at once: the gradient of one model's part by itself would be a whole batch of zeros
    of_models = [[a] * models if dim is None else a.unbind(dim) for a, dim in zip(args, in_dims, strict=True)]
    outputs = [function.apply(*own) for own in zip(*of_models, strict=True)]
    if isinstance(outputs[0], Tensor):
        return torch.stack(outputs), 0
    return tuple(torch.stack(each) for each in zip(*outputs, strict=True)), (0,) * len(outputs[0])


class _Attention(Function):
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
    @first_order
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
        of_beta = _back(grad_beta.sum(keepdims=True), beta).reshape(beta.shape)
        return _back(grad_query, query), _back(grad_key, key), of_beta, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return one_by_one(_Attention, info.batch_size, in_dims, args)


class _Centroid(Function):
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
    @first_order
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
        grad_beta = by_column.sum(keepdims=True) + grad_root.sum() / (2 * root)
        of_beta = _back(grad_beta, beta).reshape(beta.shape)
        return _back(grad_u, u), _back(grad_weight, weight), of_beta, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return one_by_one(_Centroid, info.batch_size, in_dims, args)


class _Tangent(Function):
    @staticmethod
    def forward(target: Tensor, u: Tensor, weight: Tensor, beta: Tensor, adj: Adjacency) -> Tensor:
        points, root = _points(target, u, beta)
        w = weight.detach().contiguous().numpy()
        return _back(cpu_tangent.tangent_forward(*points, adj.rowptr.numpy(), adj.col.numpy(), w, root), target)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.adj = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        target, u, weight, beta = ctx.saved_tensors
        adj: Adjacency = ctx.adj
        points, root = _points(target, u, beta)
        w, g = weight.contiguous().numpy(), grad.contiguous().numpy()
        grad_target, grad_weight, by_row = cpu_tangent.tangent_backward_rows(
            *points, adj.rowptr.numpy(), adj.col.numpy(), w, root, g
        )
        transposed = (t.numpy() for t in adj.transposed)
        grad_u, by_column = cpu_tangent.tangent_backward_cols(*points, *transposed, w, root, g)
        grad_beta = (by_row.sum(keepdims=True) + by_column.sum()) / (2 * root * root)
        of_beta = _back(grad_beta, beta).reshape(beta.shape)
        return _back(grad_target, target), _back(grad_u, u), _back(grad_weight, weight), of_beta, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return one_by_one(_Tangent, info.batch_size, in_dims, args)


def _points(target: Tensor, u: Tensor, beta: Tensor) -> tuple[tuple[Any, ...], float]:
    """Coordinates, lengths and sinh r of the rows' and of the columns' points, and √β."""
    root = float(beta) ** 0.5
    x, y = (t.detach().contiguous().numpy() for t in (target, u))
    return (x, *loops.polar(x, root), y, *loops.polar(y, root)), root


def lorentz_attention(
    query: Tensor, key: Tensor, adj: Adjacency, beta: Tensor, keep: Tensor | None, cap: float
) -> Tensor:
    """See :func:`hyperboloid.kernels.lorentz_attention`."""
    alpha: Tensor = _Attention.apply(query, key, beta, keep, adj, cap)[0]
    return alpha


def lorentz_aggregate(u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.lorentz_aggregate`."""
    out: Tensor = _Centroid.apply(u, weight, beta, adj)[0]
    return out


def tangent_aggregate(target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.tangent_aggregate`."""
    out: Tensor = _Tangent.apply(target, u, weight, beta, adj)
    return out


class _FrechetView:
    """See :class:`hyperboloid.geometry.frechet.View`, here for the rows of a graph, by loops."""

    def __init__(self, mean: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> None:
        points, root = _points(mean, u, beta)
        self._rowptr, self._weight = adj.rowptr.numpy(), weight.contiguous().numpy()
        theta, self._direction, pull = cpu_tangent.frechet_view(
            *points, self._rowptr, adj.col.numpy(), self._weight, root
        )
        self._stiffness = 1 + rcoth_minus_1(torch.from_numpy(theta)).numpy()
        self.pull = torch.from_numpy(pull)

    def hessian(self, x: Tensor) -> Tensor:
        """H x ``(N, d)``."""
        product = cpu_tangent.frechet_hessian(
            self._stiffness, self._direction, self._rowptr, self._weight, x.contiguous().numpy()
        )
        return torch.from_numpy(product)


def frechet_aggregate(u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.frechet_aggregate`."""

    def view(mean: Tensor, u: Tensor, weight: Tensor, beta: Tensor) -> _FrechetView:
        return _FrechetView(mean, u, adj, beta, weight)

    return reference.frechet_by(view, tangent_aggregate, u, adj, beta, weight)
