"""Triton kernels for weighted sums of neighbours, float32, that write no vector per entry.

The pieces of a long row are added up in no fixed order.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from .adjacency import Adjacency, Side
from .gpu import by_pieces
from .gpu_math import some_pieces
from .gpu_pairs import PairCall, flat_products


@triton.jit(do_not_specialize=["sources", "targets", "weight_step", "pieces"])
def weighted_pieces(
    u_ptr, weight_ptr, entry_ptr, out_ptr, sources, targets, weight_step, piece_ptr, other_ptr, pieces,
    ENTRY: tl.constexpr, D: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Add Σ_j w u_j of each piece of a row to ``(M, targets, D)``; weights are found by ``entry`` if ``ENTRY``."""
    m, _piece, i, own, start, stop, longest = some_pieces(piece_ptr, pieces, BLOCK_R)
    e, c = tl.arange(0, BLOCK_E)[None, :], tl.arange(0, BLOCK_D)
    u_ptr += m * sources * D
    weight_ptr += m * weight_step
    total = tl.zeros([BLOCK_R, BLOCK_E, BLOCK_D], tl.float32)
    for at in range(0, longest, BLOCK_E):
        place = start + at + e
        there = place < stop
        j = tl.load(other_ptr + place, there, 0).to(tl.int64)
        if ENTRY:
            place = tl.load(entry_ptr + place, there, 0)
        w = tl.load(weight_ptr + place, there, 0.0)
        inside = (there & (w != 0))[:, :, None] & (c < D)  # what is dropped need not be read
        total += w[:, :, None] * tl.load(u_ptr + j[:, :, None] * D + c, inside, 0.0)
    # a long row has several pieces
    out_ptr += (m * targets + i)[:, None] * D + c
    tl.atomic_add(out_ptr, tl.sum(total, 1), own[:, None] & (c < D), sem="relaxed")


def _sums(u: Tensor, weight: Tensor, side: Side, entry: Tensor | None, targets: int) -> Tensor:
    """Over rows, or over columns with the places of their entries among the weights ``(M, E)``."""
    weight = weight if weight.stride(1) == 1 else weight.contiguous()
    out = u.new_zeros(u.size(0), targets, u.size(2))
    by_pieces(
        weighted_pieces, side, u.shape, u.contiguous(), weight, side.other if entry is None else entry, out, u.size(1),
        targets, weight.stride(0), ENTRY=entry is not None,
    )  # fmt: skip
    return out


def weighted_sums(u: Tensor, weight: Tensor, adj: Adjacency) -> Tensor:
    """Σ_j w_ij u_j ``(M, num_rows, d)``; see :mod:`hyperboloid.kernels.sums`."""
    return _sums(u, weight, adj.index.rows, None, adj.num_rows)


def column_gradient(grad: Tensor, weight: Tensor, adj: Adjacency) -> Tensor:
    """Gradient in u ``(M, num_cols, d)``."""
    return _sums(grad, weight, adj.index.columns, adj.index.entry, adj.num_cols)


def weight_gradient(grad: Tensor, u: Tensor, adj: Adjacency) -> Tensor:
    """Gradient in the weights ``(M, E)``."""
    call = PairCall(adj.ends.expand(u.size(0), 2, -1), u.size(2))
    product = u.new_empty(call.models, call.count)
    call.take_products(flat_products, grad.contiguous(), u.contiguous(), call.pairs, product, grad.size(1), u.size(1))
    return product
