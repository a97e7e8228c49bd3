"""Triton kernels for the softmax over a graph's rows, float32: two launches instead of a dozen scatters and gathers.

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
def row_softmax(score_ptr, ptr_ptr, out_ptr, rows, entries, BLOCK_R: tl.constexpr, BLOCK_E: tl.constexpr):
    """e^(s − max) / Σ e^(s − max) of each row's entries ``(M, E)``; 0 in a row where all scores are −∞."""
    m, start, stop, longest = _rows(ptr_ptr, rows, BLOCK_R)
    e = tl.arange(0, BLOCK_E)[None, :]
    score_ptr += m * entries
    out_ptr += m * entries
    top = tl.full([BLOCK_R], LOWEST, tl.float32)
    total = tl.zeros([BLOCK_R], tl.float32)
    for at in range(0, longest, BLOCK_E):
        score = tl.load(score_ptr + start + at + e, start + at + e < stop, float("-inf"))
        higher = tl.maximum(top, tl.max(score, 1))  # finite, so that e^(−∞ − it) is 0; what is no number stays none
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(score - higher[:, None]), 1)
        top = higher
    scale = tl.where(total == 0, 0.0, 1 / tl.where(total == 0, 1.0, total))
    for at in range(0, longest, BLOCK_E):
        there = start + at + e < stop
        score = tl.load(score_ptr + start + at + e, there, float("-inf"))
        tl.store(out_ptr + start + at + e, tl.exp(score - top[:, None]) * scale[:, None], there)


@triton.jit(do_not_specialize=["rows", "entries"])
def row_softmax_backward(
    grad_ptr, alpha_ptr, ptr_ptr, out_ptr, rows, entries, BLOCK_R: tl.constexpr, BLOCK_E: tl.constexpr
):
    """α (g − Σ α g) over each row."""
    m, start, stop, longest = _rows(ptr_ptr, rows, BLOCK_R)
    e = tl.arange(0, BLOCK_E)[None, :]
    grad_ptr += m * entries
    alpha_ptr += m * entries
    out_ptr += m * entries
    mean = tl.zeros([BLOCK_R], tl.float32)
    for at in range(0, longest, BLOCK_E):
        there = start + at + e < stop
        alpha = tl.load(alpha_ptr + start + at + e, there, 0.0)
        mean += tl.sum(alpha * tl.load(grad_ptr + start + at + e, there, 0.0), 1)
    for at in range(0, longest, BLOCK_E):
        there = start + at + e < stop
        alpha = tl.load(alpha_ptr + start + at + e, there, 0.0)
        grad = tl.load(grad_ptr + start + at + e, there, 0.0)
        tl.store(out_ptr + start + at + e, alpha * (grad - mean[:, None]), there)


def _over_rows(kernel: Any, adj: Adjacency, *given: Tensor) -> Tensor:
    """Run a kernel over tensors ``(M, E)``."""
    models, entries = given[0].shape
    out = torch.empty_like(given[0], memory_format=torch.contiguous_format)
    width = min(TAKEN, _block(entries // max(adj.num_rows, 1) + 1))
    rows = ROOM // width
    if entries:
        kernel[(-(-adj.num_rows // rows), models)](
            *(t.contiguous() for t in given), adj.index.rows.ptr, out, adj.num_rows, entries, BLOCK_R=rows,
            BLOCK_E=width, num_warps=1,
        )  # fmt: skip
    return out


def softmax(score: Tensor, adj: Adjacency) -> Tensor:
    """Softmax of scores ``(M, E)``; see :mod:`hyperboloid.kernels.softmax`."""
    return _over_rows(row_softmax, adj, score)


def softmax_gradient(grad: Tensor, alpha: Tensor, adj: Adjacency) -> Tensor:
    """Gradient in the scores, from that in α ``(M, E)``."""
    return _over_rows(row_softmax_backward, adj, grad, alpha)
