"""Random non-edges as one Triton kernel: in torch they are forty operations, all of which have to be started."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from .gpu_random import hashed
from .random import Key

#: Pairs that a program draws.
BLOCK = 512


@triton.jit
def _pairs_below(v):
    """Number of pairs of the nodes 0 … v − 1."""
    return v * (v - 1) >> 1


@triton.jit
def _remainder(x, n):
    """x mod n for 0 ≤ x < 2⁶²: whole numbers are divided slowly, and a double quotient is off by 2⁻⁵¹ of itself."""
    inverse = 1 / n.to(tl.float64)
    x -= (x.to(tl.float64) * inverse).to(tl.int64) * n
    x -= (x.to(tl.float64) * inverse).to(tl.int64) * n
    x = tl.where(x < 0, x + n, x)
    return tl.where(x >= n, x - n, x)


@triton.jit(do_not_specialize=["edges", "count", "non_edges", "shift", "halvings"])
def _random_non_edges(
    edges_ptr, key_ptr, below_ptr, start_ptr, out_ptr, edges, count, non_edges, shift, halvings, BLOCK: tl.constexpr
):
    """Pairs ``(M, 2, edges + count)`` for keys ``(M,)``, edges first; ``below`` are the non-edges below each edge."""
    model = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    start = tl.load(key_ptr + model).to(tl.uint32) + place.to(tl.uint32)
    upper, lower = hashed(start) & 0x7FFFFFFF, hashed(start + count.to(tl.uint32)) & 0x7FFFFFFF
    k = _remainder(upper.to(tl.int64) << 31 | lower.to(tl.int64), non_edges)

    # the edges before the k-th non-edge are those with at most k non-edges below; all of them in earlier buckets are
    start_ptr += k >> shift
    before, last = tl.load(start_ptr), tl.load(start_ptr + 1)
    for _ in range(halvings):
        middle, going = before + last >> 1, before < last
        is_before = going & (tl.load(below_ptr + middle, going, 0) <= k)
        before, last = tl.where(is_before, middle + 1, before), tl.where(going & ~is_before, middle, last)

    rank = k + before
    v = ((1 + tl.sqrt((8 * rank + 1).to(tl.float64))) * 0.5).to(tl.int64)
    # rounding in the square root can miss the integer by one in either direction
    v = tl.where(_pairs_below(v) > rank, v - 1, v)
    v = tl.where(_pairs_below(v + 1) <= rank, v + 1, v)
    out_ptr += 2 * model * (edges + count) + place
    given = place < edges
    tl.store(out_ptr, tl.load(edges_ptr + place, given, 0), given)
    tl.store(out_ptr + edges + count, tl.load(edges_ptr + edges + place, given, 0), given)
    tl.store(out_ptr + edges, rank - _pairs_below(v), place < count)
    tl.store(out_ptr + 2 * edges + count, v, place < count)


def random_non_edges(
    edges: Tensor, key: Key, count: int, below: Tensor, non_edges: int, buckets: tuple[int, Tensor, int]
) -> Tensor:
    """Pairs ``(…, 2, T + count)``, see :class:`hyperboloid.graphs.splits.NegativeSampler`.

    Args:
        edges: ``(2, T)``, at most ``count``, which come first, and whose type the others have.
        key: keys ``(…)``, or one as a number.
        count: how many pairs to draw for each.
        below: ``(E,)`` int64, how many non-edges are below each edge, sorted.
        non_edges: how many there are.
        buckets: of edges, see :class:`hyperboloid.graphs.splits.Buckets`.
    """
    shift, start, largest = buckets
    key = key if isinstance(key, Tensor) else torch.full((), key, device=below.device)
    first = edges.size(1)
    out = torch.empty(*key.shape, 2, first + count, dtype=edges.dtype, device=below.device)
    if out.numel():
        given = (edges.contiguous(), key.contiguous(), below, start, out, first, count, non_edges, shift)
        _random_non_edges[(-(-count // BLOCK), key.numel())](*given, largest.bit_length(), BLOCK=BLOCK)
    return out
