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
    """A program's model, its rows, where they start and end, and the length of the longest."""
    row = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    start, stop = tl.load(ptr_ptr + row, row < rows, 0), tl.load(ptr_ptr + row + 1, row < rows, 0)
    return tl.program_id(1).to(tl.int64), row, start[:, None], stop[:, None], tl.max(stop - start, 0)


@triton.jit
def _with_more(top, total, value):
    """The largest score of rows, and the sum of e^(s − it), with some more of their scores."""
    higher = tl.maximum(top, tl.max(value, 1))  # finite, so that e^(−∞ − it) is 0; what is no number stays none
    value = tl.exp(value - higher[:, None])
    return higher, total * tl.exp(top - higher) + tl.sum(value, 1)


@triton.jit(do_not_specialize=["rows", "entries"])
def row_shares(
    value_ptr, ptr_ptr, out_ptr, rows, entries, SOFTMAX: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_E: tl.constexpr
):
    """Shares of each row's entries ``(M, E)`` in the row's sum, of their exponentials if ``SOFTMAX``.

    Those are e^(s − max), and 0 in a row where all scores are −∞.
    """
    m, _row, start, stop, longest = _rows(ptr_ptr, rows, BLOCK_R)
    e = tl.arange(0, BLOCK_E)[None, :]
    nothing = float("-inf") if SOFTMAX else 0.0
    value_ptr += m * entries
    out_ptr += m * entries
    top = tl.full([BLOCK_R], LOWEST, tl.float32)
    total = tl.zeros([BLOCK_R], tl.float32)
    for at in range(0, longest, BLOCK_E):
        value = tl.load(value_ptr + start + at + e, start + at + e < stop, nothing)
        if SOFTMAX:
            top, total = _with_more(top, total, value)
        else:
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
    m, _row, start, stop, longest = _rows(ptr_ptr, rows, BLOCK_R)
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


@triton.jit
def _additive(own, source_ptr, other_ptr, place, there, slope):
    """t_i + s_j of entries, times ``slope`` where it is negative, −∞ where there is none; then j, and the factor."""
    j = tl.load(other_ptr + place, there, 0)
    score = own[:, None] + tl.load(source_ptr + j, there, 0.0)
    factor = tl.where(score > 0, 1.0, slope)
    return tl.where(there, score * factor, float("-inf")), j, factor


@triton.jit(do_not_specialize=["rows", "cols", "entries"])
def additive_shares(
    target_ptr, source_ptr, ptr_ptr, other_ptr, out_ptr, rows, cols, entries, slope,
    BLOCK_R: tl.constexpr, BLOCK_E: tl.constexpr,
):  # fmt: skip
    """Shares of e^LeakyReLU(t_i + s_j) in each row ``(M, E)``, of t ``(M, rows)`` and s ``(M, cols)``."""
    m, row, start, stop, longest = _rows(ptr_ptr, rows, BLOCK_R)
    e = tl.arange(0, BLOCK_E)[None, :]
    own = tl.load(target_ptr + m * rows + row, row < rows, 0.0)
    source_ptr += m * cols
    out_ptr += m * entries
    top = tl.full([BLOCK_R], LOWEST, tl.float32)
    total = tl.zeros([BLOCK_R], tl.float32)
    for at in range(0, longest, BLOCK_E):
        place = start + at + e
        score, _j, _factor = _additive(own, source_ptr, other_ptr, place, place < stop, slope)
        top, total = _with_more(top, total, score)
    total = tl.where(total == 0, 1.0, total)
    for at in range(0, longest, BLOCK_E):
        place = start + at + e
        score, _j, _factor = _additive(own, source_ptr, other_ptr, place, place < stop, slope)
        tl.store(out_ptr + place, tl.exp(score - top[:, None]) / total[:, None], place < stop)


@triton.jit(do_not_specialize=["rows", "cols", "entries"])
def additive_shares_backward(
    grad_ptr, share_ptr, target_ptr, source_ptr, ptr_ptr, other_ptr, to_target_ptr, to_source_ptr, rows, cols, entries,
    slope, BLOCK_R: tl.constexpr, BLOCK_E: tl.constexpr,
):  # fmt: skip
    """Gradients in t ``(M, rows)``, and those in s, which are added to ``(M, cols)`` in no fixed order."""
    m, row, start, stop, longest = _rows(ptr_ptr, rows, BLOCK_R)
    e = tl.arange(0, BLOCK_E)[None, :]
    own = tl.load(target_ptr + m * rows + row, row < rows, 0.0)
    source_ptr += m * cols
    to_source_ptr += m * cols
    grad_ptr += m * entries
    share_ptr += m * entries
    mean, total = tl.zeros([BLOCK_R], tl.float32), tl.zeros([BLOCK_R], tl.float32)
    for at in range(0, longest, BLOCK_E):
        place = start + at + e
        there = place < stop
        mean += tl.sum(tl.load(share_ptr + place, there, 0.0) * tl.load(grad_ptr + place, there, 0.0), 1)
    for at in range(0, longest, BLOCK_E):
        place = start + at + e
        there = place < stop
        _score, j, factor = _additive(own, source_ptr, other_ptr, place, there, slope)
        change = tl.load(grad_ptr + place, there, 0.0) - mean[:, None]
        change *= tl.load(share_ptr + place, there, 0.0) * factor
        tl.atomic_add(to_source_ptr + j, change, there, sem="relaxed")
        total += tl.sum(change, 1)  # where there is nothing the share is 0
    tl.store(to_target_ptr + m * rows + row, total, row < rows)


def _over_rows(kernel: Any, adj: Adjacency, models: int, *args: Any, **constants: Any) -> None:
    """Run a kernel over the rows of a graph."""
    entries = adj.row.numel()
    width = min(TAKEN, _block(entries // max(adj.num_rows, 1) + 1))
    rows = ROOM // width
    if entries:
        constants |= {"BLOCK_R": rows, "BLOCK_E": width}
        kernel[(-(-adj.num_rows // rows), models)](*args, **constants, num_warps=1)


def _of_entries(kernel: Any, adj: Adjacency, softmax: bool, *given: Tensor) -> Tensor:
    """What a kernel makes of tensors ``(M, E)``."""
    models, entries = given[0].shape
    out = torch.empty_like(given[0], memory_format=torch.contiguous_format)
    args = (*(t.contiguous() for t in given), adj.index.rows.ptr, out, adj.num_rows, entries)
    _over_rows(kernel, adj, models, *args, SOFTMAX=softmax)
    return out


def shares(values: Tensor, adj: Adjacency, softmax: bool) -> Tensor:
    """Of values ``(M, E)``; see :mod:`hyperboloid.kernels.shares`."""
    return _of_entries(row_shares, adj, softmax, values)


def shares_gradient(grad: Tensor, known: Tensor, adj: Adjacency, softmax: bool) -> Tensor:
    """Gradient in the values, from that in the shares ``(M, E)``; ``known`` are those of a softmax, else the values."""
    return _of_entries(row_shares_backward, adj, softmax, grad, known)


def attention(target: Tensor, source: Tensor, adj: Adjacency, slope: float) -> Tensor:
    """Of numbers of rows ``(M, num_rows)`` and of columns; see :func:`hyperboloid.kernels.additive_attention`."""
    (models, _), entries, rows = target.shape, adj.row.numel(), adj.index.rows
    out = target.new_empty(models, entries)
    sizes = (adj.num_rows, adj.num_cols, entries, slope)
    args = (target.contiguous(), source.contiguous(), rows.ptr, rows.other, out, *sizes)
    _over_rows(additive_shares, adj, models, *args)
    return out


def attention_gradients(
    grad: Tensor, share: Tensor, target: Tensor, source: Tensor, adj: Adjacency, slope: float
) -> tuple[Tensor, Tensor]:
    """Gradients in both, from that in the shares ``(M, E)``."""
    rows, sizes = adj.index.rows, (adj.num_rows, adj.num_cols, adj.row.numel(), slope)
    given = (grad.contiguous(), share, target.contiguous(), source.contiguous(), rows.ptr, rows.other)
    to_target, to_source = target.new_zeros(target.shape), source.new_zeros(source.shape)
    _over_rows(additive_shares_backward, adj, target.size(0), *given, to_target, to_source, *sizes)
    return to_target, to_source
