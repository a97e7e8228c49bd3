"""`lorentz_aggregate` for float32 as a torch operator: with an axis of models, under autograd, vmap and compile.

Every tensor has a leading axis of models, of length 1 for a single one. Under :func:`torch.func.vmap` the mapped axis
takes its place, so that a batch of models is one call. What the gradient needs is an output of the forward operator,
and the gradient is an operator of its own; so compilers see two opaque calls with known shapes. Where nothing is
compiled, an autograd function makes the same calls: the registered operator's checks take a millisecond.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hyperboloid.first_order import first_order
from hyperboloid.function import Function

from .adjacency import Adjacency, Index, Side
from .backend import kernels_for


def _flat(index: Index) -> list[Tensor]:
    return [*index.rows, *index.columns, index.entry, index.target, index.upper]


def _unflat(tensors: list[Tensor], symmetric: bool, looped: bool) -> Index:
    half = len(Side._fields)
    entry, target, upper = tensors[2 * half :]
    return Index(Side(*tensors[:half]), Side(*tensors[half : 2 * half]), entry, target, upper, symmetric, looped)


def _backend(t: Tensor) -> Any:
    """The module that computes it."""
    return kernels_for(t, "gpu", "cpu_fused")


@torch.library.custom_op("hyperboloid::aggregate", mutates_args=())
def aggregate(
    u: Tensor,
    query: Tensor | None,
    key: Tensor | None,
    beta: Tensor,
    weight: Tensor | None,
    keep: Tensor | None,
    graph: list[Tensor],
    symmetric: bool,
    looped: bool,
    cap: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Centroids ``(M, num_rows, d)``, and what the gradient needs.

    That is, all double but the scores: their sums in space ``(M, num_rows, d)``, states ``(M, num_rows, 3)``, scores of
    the entries ``(M, E)``, and numbers of the points ``(M, num_cols, 4)`` and of the attention features of columns and
    rows ``(M, num_…, 2)``, empty where there is none; flags ``(M, 2)`` of `gpu_refine.py`.

    Args:
        u: points of the columns ``(M, num_cols, d)``.
        query: attention features of the rows ``(M, num_rows, a)``; None if they are the columns'.
        key: attention features of the columns ``(M, num_cols, a)``; None for no attention.
        beta: ``(M,)``.
        weight: of the entries ``(M, E)``; None for equal ones.
        keep: which entries take part ``(M, E)``; None for all.
        graph, symmetric, looped: the graph's :class:`Index`.
        cap: larger squared distances count as this one.
    """
    index = _unflat(graph, symmetric, looped)
    result: tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]
    result = _backend(u).aggregate(u, query, key, beta, weight, keep, index, cap)
    return result


@aggregate.register_fake
def _(
    u: Tensor, query: Tensor | None, key: Tensor | None, beta: Tensor, weight: Any, keep: Any, graph: list[Tensor],
    *_: Any,
) -> Any:  # fmt: skip
    (models, cols, d), rows, wide = u.shape, graph[0].size(0) - 1, torch.float64
    attention = key is not None
    return (
        u.new_empty(models, rows, d),
        u.new_empty(models, rows, d, dtype=wide),
        u.new_empty(models, rows, 3, dtype=wide),
        u.new_empty(models, graph[1].size(0) if attention else 0),
        u.new_empty(models, cols, 4, dtype=wide),
        u.new_empty(models, cols if attention else 0, 2, dtype=wide),
        u.new_empty(models, 0 if query is None else rows, 2, dtype=wide),
        u.new_empty(models, 2, dtype=torch.int32),
    )


@torch.library.custom_op("hyperboloid::aggregate_backward", mutates_args=())
def aggregate_backward(
    grad: Tensor,
    u: Tensor,
    query: Tensor | None,
    key: Tensor | None,
    beta: Tensor,
    weight: Tensor | None,
    keep: Tensor | None,
    graph: list[Tensor],
    symmetric: bool,
    looped: bool,
    cap: float,
    needed: list[Tensor],
    to_weight: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients in u, query, key, beta and weight, for that of the centroids; empty where there is nothing to tell."""
    index = _unflat(graph, symmetric, looped)
    result: tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
    result = _backend(u).aggregate_backward(grad, u, query, key, beta, weight, keep, index, cap, needed, to_weight)
    return result


@aggregate_backward.register_fake
def _(
    grad: Tensor, u: Tensor, query: Tensor | None, key: Tensor | None, beta: Tensor, weight: Any, keep: Any,
    graph: list[Tensor], symmetric: bool, looped: bool, cap: float, needed: list[Tensor], to_weight: bool,
) -> Any:  # fmt: skip
    return (
        torch.empty_like(u),
        u.new_empty(0) if query is None else torch.empty_like(query),
        u.new_empty(0) if key is None else torch.empty_like(key),
        torch.empty_like(beta),
        u.new_empty(u.size(0), graph[1].size(0) if to_weight else 0),
    )


def _setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, graph, ctx.symmetric, ctx.looped, ctx.cap = inputs
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(*tensors, *graph, *output[1:])


def _backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Any, ...]:
    saved = ctx.saved_tensors
    tensors, graph, needed = saved[:6], saved[6:-7], saved[-7:]
    to_weight = ctx.needs_input_grad[4]
    given = (list(graph), ctx.symmetric, ctx.looped, ctx.cap)
    gradients = aggregate_backward(grad, *tensors, *given, list(needed), to_weight)
    return (*_known(gradients, tensors, to_weight), None, [None] * len(graph), None, None, None)


def _known(gradients: Any, tensors: Any, to_weight: bool) -> list[Tensor | None]:
    """Gradients of the first five tensors; None where there is none."""
    there = (True, tensors[1] is not None, tensors[2] is not None, True, to_weight)
    return [g if is_there else None for g, is_there in zip(gradients, there, strict=True)]


torch.library.register_autograd(aggregate, _backward, setup_context=_setup_context)


def with_models(function: Any, count: int, info: Any, in_dims: Any, args: Any) -> tuple[tuple[Tensor, ...], Any]:
    """A vmap rule for what has an axis of models by itself: the mapped axis takes its place.

    Args:
        function: takes ``args``, of which the first ``count`` are tensors ``(M, …)``, and gives several ``(M, …)``.
        count: how many have the axis, of length 1 for a single model.
        info, in_dims, args: as torch gives them to a rule.
    """
    own = [
        t if t is None else t.expand(info.batch_size, *t.shape[1:]) if dim is None else t.movedim(dim, 0).squeeze(1)
        for t, dim in zip(args[:count], in_dims, strict=False)
    ]
    outputs = function(*own, *args[count:])
    return tuple(t.unsqueeze(1) for t in outputs), (0,) * len(outputs)


def keep_for_gradient(ctx: Any, tensors: Any, output: Any) -> None:
    """Save tensors and all outputs but the first, which alone is differentiable."""
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)  # no zeros for what is not differentiable
    ctx.save_for_backward(*tensors, *output[1:])


@aggregate.register_vmap
def _(info: Any, in_dims: Any, *args: Any) -> Any:
    return with_models(aggregate, 6, info, in_dims, args)


class _Aggregate(Function):
    @staticmethod
    def forward(*args: Any) -> Any:
        *tensors, adj, cap = args
        return _backend(tensors[0]).aggregate(*tensors, adj.index, cap)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.adj, ctx.cap = inputs
        keep_for_gradient(ctx, tensors, output)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors  # read once: checkpointing gives them once only
        tensors, needed = saved[:6], list(saved[6:])
        to_weight = ctx.needs_input_grad[4]
        gradients = _backend(grad).aggregate_backward(grad, *tensors, ctx.adj.index, ctx.cap, needed, to_weight)
        return (*_known(gradients, tensors, to_weight), None, None, None)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return with_models(_Aggregate.apply, 6, info, in_dims, args)


def fused_aggregate(
    u: Tensor,
    adj: Adjacency,
    beta: Tensor,
    weight: Tensor | None,
    attention: tuple[Tensor, Tensor] | None,
    keep: Tensor | None,
    cap: float,
) -> Tensor:
    """See :func:`hyperboloid.kernels.lorentz_aggregate`: the operator for a single model."""
    query, key = (None, None) if attention is None else attention
    weight = None if weight is None else weight.to(u.dtype)
    given = (u, None if query is key else query, key, beta.reshape(()), weight, keep)
    own = [None if t is None else t.unsqueeze(0) for t in given]
    out: Tensor
    if torch.compiler.is_compiling():
        index = adj.index
        out = aggregate(*own, _flat(index), index.symmetric, index.looped, cap)[0]
    else:
        out = _Aggregate.apply(*own, adj, cap)[0]
    return out.squeeze(0)
