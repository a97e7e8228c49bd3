"""Triton kernels for weighted sums of neighbours, float32, that write no vector per entry.

Rows and columns are added to by many entries at once, in no fixed order.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from .adjacency import Adjacency
from .gpu_aggregate import vectors
from .gpu_pairs import entry_call, entry_products, these


@triton.jit(do_not_specialize=["sources", "targets", "weight_step", "count", "pairs_step", "side_step"])
def weighted_add(
    u_ptr, weight_ptr, pairs_ptr, out_ptr, sources, targets, weight_step, count, pairs_step, side_step,
    D: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Add w u_j of entries (i, j) to ``(M, targets, D)``."""
    m, p, there, i, j = these(pairs_ptr, count, pairs_step, side_step, BLOCK_P)
    c = tl.arange(0, BLOCK_D)
    u = vectors(u_ptr + m * sources * D, j, there, c, D)
    w = tl.load(weight_ptr + m * weight_step + p, there, 0.0).to(tl.float64)
    inside = there[:, None] & (w != 0)[:, None] & (c < D)[None, :]
    place = out_ptr + m * targets * D + i[:, None] * D + c[None, :]
    tl.atomic_add(place, (w[:, None] * u).to(tl.float32), inside, sem="relaxed")


def weighted_sums(u: Tensor, weight: Tensor, ends: Tensor, targets: int) -> Tensor:
    """Σ_j w_ij u_j ``(M, targets, d)`` over entries (i, j) ``(2, E)``; see :mod:`hyperboloid.kernels.sums`."""
    call, weight = entry_call(ends, weight, u.size(2))
    out = u.new_zeros(call.models, targets, call.d)
    call.add_up(weighted_add, u.contiguous(), weight, call.pairs, out, u.size(1), targets, weight.stride(0))
    return out


def weighted_gradients(grad: Tensor, u: Tensor, weight: Tensor, adj: Adjacency) -> tuple[Tensor, Tensor]:
    """Gradients in u and in the weights."""
    call, weight = entry_call(adj.ends, weight, u.size(2))
    product = call.numbers(1).squeeze(1)
    call.take_sums(entry_products, grad.contiguous(), u.contiguous(), call.pairs, product, grad.size(1), u.size(1))
    return weighted_sums(grad, weight, adj.edge_index, u.size(1)), product.to(weight.dtype)
