"""Triton kernels for shares in a graph's rows, float32: two launches instead of a dozen scatters and gathers.

A program takes several rows at a time, each thread some of their entries, and goes along them until the longest has
ended.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .adjacency import Adjacency
from .gpu import _block
from .gpu_aggregate import LOWEST

#: Most entries of a row, and of all of a program's rows, that are taken at a time.
TAKEN, ROOM = 32, 128


@triton.jit
def _rows(ptr_ptr, rows, BLOCK_R: tl.constexpr):
    """A program's model, where its rows start and end, and the length of the longest."""
    row = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    start, stop = tl.load(ptr_ptr + row, row < rows, 0), tl.load(ptr_ptr + row + 1, row < rows, 0)
    return tl.program_id(1).to(tl.int64), start[:, None], stop[:, None], tl.max(stop - start, 0)


@triton.jit(do_not_specialize=["rows", "entries"])
def row_shares(
    value_ptr, ptr_ptr, out_ptr, rows, entries, SOFTMAX: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_E: tl.constexpr
):
    """Shares of each row's entries ``(M, E)`` in the row's sum, of their exponentials if ``SOFTMAX``.

    Those are e^(s − max), and 0 in a row where all scores are −∞.
    """
    m, start, stop, longest = _rows(ptr_ptr, rows, BLOCK_R)
    e = tl.arange(0, BLOCK_E)[None, :]
    nothing = float("-inf") if SOFTMAX else 0.0
    value_ptr += m * entries
    out_ptr += m * entries
    top = tl.full([BLOCK_R], LOWEST, tl.float32)
    total = tl.zeros([BLOCK_R], tl.float32)
    for at in range(0, longest, BLOCK_E):
        value = tl.load(value_ptr + start + at + e, start + at + e < stop, nothing)
        if SOFTMAX:
            higher = tl.maximum(top, tl.max(value, 1))  # finite, so that e^(−∞ − it) is 0; what is no number stays none
            total *= tl.exp(top - higher)
            top = higher
            value = tl.exp(value - top[:, None])
        total += tl.sum(value, 1)
    total = tl.where(total == 0, 1.0, total) if SOFTMAX else tl.where(total > 0, total, 1.0)
    for at in range(0, longest, BLOCK_E):
        there = start + at + e < stop
        value = tl.load(value_ptr + start + at + e, there, nothing)
        if SOFTMAX:
            value = tl.exp(value - top[:, None])
        # not times 1/total, which is infinite where the total is tiny
        tl.store(out_ptr + start + at + e, value / total[:, None], there)


@triton.jit(do_not_specialize=["rows", "entries"])
def row_shares_backward(
    grad_ptr, known_ptr, ptr_ptr, out_ptr, rows, entries,
    SOFTMAX: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_E: tl.constexpr,
):  # fmt: skip
    """α (g − Σ α g) over each row, for shares α of exponentials; (g − Σ w g/Σ w)/Σ w for shares of weights w."""
    m, start, stop, longest = _rows(ptr_ptr, rows, BLOCK_R)
    e = tl.arange(0, BLOCK_E)[None, :]
    grad_ptr += m * entries
    known_ptr += m * entries
    out_ptr += m * entries
    mean, total = tl.zeros([BLOCK_R], tl.float32), tl.zeros([BLOCK_R], tl.float32)
    for at in range(0, longest, BLOCK_E):
        there = start + at + e < stop
        known = tl.load(known_ptr + start + at + e, there, 0.0)
        mean += tl.sum(known * tl.load(grad_ptr + start + at + e, there, 0.0), 1)
        total += tl.sum(known, 1)
    if not SOFTMAX:
        mean = tl.where(total > 0, mean, 0.0)
        total = tl.where(total > 0, total, 1.0)
        mean /= total
    for at in range(0, longest, BLOCK_E):
        there = start + at + e < stop
        out = tl.load(grad_ptr + start + at + e, there, 0.0) - mean[:, None]
        if SOFTMAX:
            out *= tl.load(known_ptr + start + at + e, there, 0.0)
        else:
            out /= total[:, None]
        tl.store(out_ptr + start + at + e, out, there)


def _over_rows(kernel: Any, adj: Adjacency, softmax: bool, *given: Tensor) -> Tensor:
    """Run a kernel over tensors ``(M, E)``."""
    models, entries = given[0].shape
    out = torch.empty_like(given[0], memory_format=torch.contiguous_format)
    width = min(TAKEN, _block(entries // max(adj.num_rows, 1) + 1))
    rows = ROOM // width
    if entries:
        kernel[(-(-adj.num_rows // rows), models)](
            *(t.contiguous() for t in given), adj.index.rows.ptr, out, adj.num_rows, entries, SOFTMAX=softmax,
            BLOCK_R=rows, BLOCK_E=width, num_warps=1,
        )  # fmt: skip
    return out


def shares(values: Tensor, adj: Adjacency, softmax: bool) -> Tensor:
    """Of values ``(M, E)``; see :mod:`hyperboloid.kernels.shares`."""
    return _over_rows(row_shares, adj, softmax, values)


def shares_gradient(grad: Tensor, known: Tensor, adj: Adjacency, softmax: bool) -> Tensor:
    """Gradient in the values, from that in the shares ``(M, E)``; ``known`` are those of a softmax, else the values."""
    return _over_rows(row_shares_backward, adj, softmax, grad, known)
