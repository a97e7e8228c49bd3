"""Random non-edges as one Triton kernel: in torch they are forty operations, all of which have to be started."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from .gpu_random import BLOCK, hashed
from .random import Key


@triton.jit
def _pairs_below(v):
    """Number of pairs of the nodes 0 … v − 1."""
    return v * (v - 1) >> 1


@triton.jit(do_not_specialize=["count", "edges", "non_edges", "halvings"])
def _random_non_edges(key_ptr, below_ptr, out_ptr, count, edges, non_edges, halvings, BLOCK: tl.constexpr):
    """Pairs ``(M, 2, count)`` for keys ``(M,)``; ``below`` ``(edges,)`` are the non-edges below each edge."""
    model = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    start = tl.load(key_ptr + model).to(tl.uint32) + place.to(tl.uint32)
    upper, lower = hashed(start) & 0x7FFFFFFF, hashed(start + count.to(tl.uint32)) & 0x7FFFFFFF
    k = (upper.to(tl.int64) << 31 | lower.to(tl.int64)) % non_edges

    # the edges before the k-th non-edge are those with at most k non-edges below
    before, last = tl.zeros([BLOCK], tl.int64), tl.zeros([BLOCK], tl.int64) + edges
    for _ in range(halvings):
        middle, going = before + last >> 1, before < last
        is_before = going & (tl.load(below_ptr + middle, going, 0) <= k)
        before, last = tl.where(is_before, middle + 1, before), tl.where(going & ~is_before, middle, last)

    rank = k + before
    v = ((1 + tl.sqrt((8 * rank + 1).to(tl.float64))) * 0.5).to(tl.int64)
    # rounding in the square root can miss the integer by one in either direction
    v = tl.where(_pairs_below(v) > rank, v - 1, v)
    v = tl.where(_pairs_below(v + 1) <= rank, v + 1, v)
    out_ptr += 2 * model * count + place
    tl.store(out_ptr, rank - _pairs_below(v), place < count)
    tl.store(out_ptr + count, v, place < count)


def random_non_edges(key: Key, count: int, below: Tensor, non_edges: int) -> Tensor:
    """Pairs ``(…, 2, count)``, see :meth:`hyperboloid.graphs.splits.NegativeSampler.sample`.

    Args:
        key: keys ``(…)``, or one as a number.
        count: how many pairs to draw for each.
        below: ``(E,)`` int64, how many non-edges are below each edge, sorted.
        non_edges: how many there are.
    """
    key = key if isinstance(key, Tensor) else torch.full((), key, device=below.device)
    out = torch.empty(*key.shape, 2, count, dtype=torch.int64, device=below.device)
    if out.numel():
        edges, grid = below.numel(), (-(-count // BLOCK), key.numel())
        _random_non_edges[grid](key.contiguous(), below, out, count, edges, non_edges, edges.bit_length(), BLOCK=BLOCK)
    return out
