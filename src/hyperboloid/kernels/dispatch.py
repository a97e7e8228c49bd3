"""One way to each sparse operation; which backend computes it depends on where the tensors are."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hyperboloid.errors import InputError
from hyperboloid.geometry import Euclidean, Lorentz
from hyperboloid.geometry.numerics import max_chord
from hyperboloid.geometry.precision import narrowed, single
from hyperboloid.geometry.rows import Operation, RowKernel, offer

from . import reference, tangent
from .adjacency import Adjacency
from .backend import chosen_backend, fast_backend
from .fused import fused_aggregate
from .pairs import flat_squares, pair_squares
from .shares import kernel_attention, kernel_shares
from .sums import kernel_sum, matrix_sum


def _implementation(name: str, t: Tensor, *others: Tensor | None) -> Any:
    """The function called ``name`` of the backend that takes these."""
    if chosen_backend(t, *others) == "cpu":
        from . import cpu

        return getattr(cpu, name)
    return getattr(reference, name)


def _row_kernel(operation: Operation, u: Tensor) -> RowKernel | None:
    """A backend's kernel for an operation on rows; on a CPU there is none for squared distances, nor for doubles."""
    backend = chosen_backend(u)
    if backend == "triton":
        from . import gpu

        return gpu.ROWS[operation]
    if backend == "cpu" and u.dtype == torch.float32:
        from . import cpu_rows

        return cpu_rows.ROWS.get(operation)
    return None


offer(_row_kernel)


def _cap(asked: float | None, t: Tensor) -> float:
    """Where squared distances end: where it is asked for, and at the latest where t's numbers do."""
    largest = max_chord(t.dtype) ** 2
    if asked is None:
        return largest
    if not asked > 0:
        raise InputError(f"the cap of attention must be positive, not {asked}.")
    return min(asked, largest)


def pair_sqdist(z: Tensor, pairs: Tensor, beta: Tensor | None, *, lorentz: bool = False) -> Tensor:
    """Squared distance of each pair of nodes, d_H² or d_L² (Eq. 17) ``(P,)``.

    Args:
        z: normal coordinates of the nodes ``(N, d)``.
        pairs: ``(2, P)`` int64 or int32. Nodes that are not there are refused on a CPU; a GPU cannot say so.
        beta: scalar; None for flat space.
        lorentz: the Lorentzian distance, which is cut off where its square would pass 1e30.

    In float32 the gradient is computed by hand and has no second derivative; the reference backend has one. Halves are
    computed, and squares given, in float32.
    """
    if pairs.dim() != 2 or pairs.size(0) != 2 or pairs.dtype not in (torch.int32, torch.int64):
        raise InputError(f"pairs must be (2, P) int32 or int64, not {tuple(pairs.shape)} {pairs.dtype}.")
    z, beta = single(z), None if beta is None else single(beta)
    if chosen_backend(z, beta) != "reference" and z.dtype == torch.float32:
        return flat_squares(z, pairs) if beta is None else pair_squares(z, pairs, beta, lorentz)
    u, v = (z.index_select(0, end) for end in pairs)
    if beta is None:
        return Euclidean().sqdist(u, v)
    normal = Lorentz(beta).normal
    return normal.lorentz_sqdist(u, v) if lorentz else normal.sqdist(u, v)


def lorentz_attention(
    query: Tensor, key: Tensor, adj: Adjacency, beta: Tensor, *, keep: Tensor | None = None, cap: float | None = None
) -> Tensor:
    """Attention weights, softmax over each row of −d_L² (Eq. 19, 20).

    Args:
        query: attention features of the rows, normal coordinates ``(num_rows, a)``.
        key: attention features of the columns, normal coordinates ``(num_cols, a)``.
        adj: the graph.
        beta: scalar.
        keep: which entries take part ``(E,)``; None for all.
        cap: larger squared distances count as this one, so that no weight is below e^−cap of the largest; None for
            the paper's formula.

    Returns:
        ``(E,)``, summing to 1 over every row that keeps an entry; in float32 at least.
    """
    query, key, beta = (single(t) for t in (query, key, beta))
    attend = _implementation("lorentz_attention", query, key, beta)
    out: Tensor = attend(query, key, adj, beta, keep, _cap(cap, query))
    return out


def lorentz_aggregate(
    u: Tensor,
    adj: Adjacency,
    beta: Tensor,
    weight: Tensor | None = None,
    *,
    attention: tuple[Tensor, Tensor] | None = None,
    keep: Tensor | None = None,
    cap: float | None = None,
) -> Tensor:
    """Centroid of every row's neighbours, with weights w_ij · softmax_j(−d_L²(a_i, a_j)) (Eq. 16, 19, 20).

    One operation, that writes nothing per edge but numbers. Halves are computed in float32.

    Args:
        u: normal coordinates of the columns ``(num_cols, d)``.
        adj: the graph.
        beta: scalar.
        weight: non-negative weight of each entry ``(E,)``; only ratios within a row matter; None for equal ones.
        attention: attention features of the rows ``(num_rows, a)`` and of the columns ``(num_cols, a)``, normal
            coordinates, the same tensor twice if they are the same; None for no attention.
        keep: which entries take part ``(E,)``; None for all.
        cap: of attention, see :func:`lorentz_attention`.

    Returns:
        Normal coordinates of the rows ``(num_rows, d)``; a row without weight gives the origin.
    """
    dtype, u, beta = u.dtype, single(u), single(beta)
    if attention is not None:
        query, key = attention
        attention = (single(key),) * 2 if query is key else (single(query), single(key))
    if _is_fused(u, beta, weight, *(attention or ())):
        return narrowed(fused_aggregate(u, adj, beta, weight, attention, keep, _cap(cap, u)), dtype)
    if attention is not None:
        alpha = lorentz_attention(*attention, adj, beta, keep=keep, cap=cap)
        weight = alpha if weight is None else alpha * weight
    else:
        weight = u.new_ones(adj.row.shape) if weight is None else weight
        weight = weight if keep is None else weight * keep
    return narrowed(_implementation("lorentz_aggregate", u, beta, weight)(u, adj, beta, single(weight)), dtype)


def _is_fused(u: Tensor, *others: Tensor | None) -> bool:
    """Float32 is computed in double precision inside, in one operation; float64 takes the forms that cannot cancel."""
    if u.dtype != torch.float32 or fast_backend(u) == "reference":
        return False
    return torch.compiler.is_compiling() or chosen_backend(u, *others) != "reference"


def weighted_sum(u: Tensor, adj: Adjacency, weight: Tensor) -> Tensor:
    """Σ_j w_ij u_j over every row's neighbours, ``(num_cols, d)`` to ``(num_rows, d)``, for weights ``(E,)``.

    It is also the product of a sparse matrix, whose values are the weights, with u. Halves are summed in float32.
    """
    dtype, backend = u.dtype, chosen_backend(u, weight)
    u = single(u)
    weight = weight.to(u.dtype)
    if backend == "cpu":
        return matrix_sum(u, adj, weight).to(dtype)
    if backend == "triton" and u.dtype == torch.float32:
        return kernel_sum(u, adj, weight).to(dtype)
    return reference.row_sum(weight.unsqueeze(-1) * u.index_select(0, adj.col), adj).to(dtype)


def row_softmax(score: Tensor, adj: Adjacency, keep: Tensor | None = None) -> Tensor:
    """Softmax of scores ``(E,)`` over each row's kept entries; the others, and rows without any, get 0."""
    if chosen_backend(score) == "triton" and score.dtype == torch.float32:
        return kernel_shares(reference.kept_scores(score, keep), adj, softmax=True)
    return reference.row_softmax(score, adj, keep)


def additive_attention(
    target: Tensor, source: Tensor, adj: Adjacency, *, slope: float, keep: Tensor | None = None
) -> Tensor:
    """Softmax over each row of LeakyReLU(t_i + s_j) ``(E,)``, in float32 at least: a hub has too many for halves.

    Args:
        target: a number of each row ``(num_rows,)``.
        source: a number of each column ``(num_cols,)``.
        adj: the graph.
        slope: of the LeakyReLU below 0.
        keep: which entries take part ``(E,)``; None for all.
    """
    if (target.size(0), source.size(0)) != (adj.num_rows, adj.num_cols):
        raise InputError(
            f"additive_attention needs numbers of {adj.num_rows} rows and {adj.num_cols} columns, not of "
            f"{target.size(0)} and {source.size(0)}."
        )
    target = single(target)
    source = source.to(target.dtype)
    if keep is None and chosen_backend(target, source) == "triton" and target.dtype == torch.float32:
        return kernel_attention(target, source, adj, slope)
    score = target.index_select(0, adj.row) + source.index_select(0, adj.col)
    return row_softmax(torch.nn.functional.leaky_relu(score, slope), adj, keep)


def row_normalize(weight: Tensor, adj: Adjacency) -> Tensor:
    """Non-negative weights ``(E,)`` over each row's sum; those of a row of zeros stay. Halves are summed in float32."""
    backend, wide = chosen_backend(weight), single(weight)
    if backend == "triton" and wide.dtype == torch.float32:
        return kernel_shares(wide, adj, softmax=False).to(weight.dtype)
    return reference.row_normalize(wide, adj).to(weight.dtype)


def tangent_aggregate(target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """Sum of every row's neighbours as seen from the row's own point, Σ_j w_ij log_{x_i}(x_j) (inside Eq. 9).

    Args:
        target: normal coordinates of the rows ``(num_rows, d)``, where the logarithms are taken.
        u: normal coordinates of the columns ``(num_cols, d)``.
        adj: the graph.
        beta: scalar.
        weight: weight of each entry ``(E,)``.

    Returns:
        Tangent vectors carried to the origin ``(num_rows, d)``, as :meth:`NormalCoordinates.log_at` gives them.
    """
    dtype = u.dtype
    target, u, beta, weight = (single(t) for t in (target, u, beta, weight))
    if chosen_backend(u, target, beta, weight) == "triton" and u.dtype == torch.float32:
        return narrowed(tangent.tangent_aggregate(target, u, adj, beta, weight), dtype)
    aggregate = _implementation("tangent_aggregate", u, target, beta, weight)
    return narrowed(aggregate(target, u, adj, beta, weight), dtype)


def frechet_aggregate(u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """Fréchet mean of every row's neighbours: the point with the least sum of squared intrinsic distances.

    Args:
        u: normal coordinates of the columns ``(num_cols, d)``.
        adj: the graph.
        beta: scalar.
        weight: non-negative weight of each entry ``(E,)``; only ratios within a row matter.

    Returns:
        Normal coordinates of the rows ``(num_rows, d)``; a row without weight gives the origin.
    """
    dtype = u.dtype
    u, beta, weight = (single(t) for t in (u, beta, weight))
    return narrowed(_implementation("frechet_aggregate", u, beta, weight)(u, adj, beta, weight), dtype)
