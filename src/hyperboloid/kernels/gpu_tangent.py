r"""Triton kernels for sums of logarithms, Σ_j w_ij log_i(j) carried to the origin, for float32.

A logarithm is what it is in `gpu_gyro.py`, T/√β = α u + γ turn with u = x_i and v = y_j, and its gradient a sum of g_i,
u, v and turn. Their numbers follow from the sums of `gpu_pairs.py` and from g_i·v_j. So as there, kernels over
coordinates take sums and add vectors up, and what takes exponentials is done by entry. Sums of nodes are double, for
the gradient's parts across the radius grow by sinh r/r when they are turned into normal coordinates.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from .adjacency import Adjacency
from .gpu import _held, _over_rows, by_pieces
from .gpu_aggregate import vectors
from .gpu_gyro import logarithm, pulls
from .gpu_math import block_of_rows, hold, some_pieces, turn_of
from .gpu_pairs import ENDS, SUMS, PairCall, entry_call, entry_products, in_turn, overlap, these, turn_products

#: Numbers of an entry: of g, u, v in what row i gets ``(M, 3, E)``, and in what column j gets ``(M, E, 4)``, side by
#: side, because a column's entries lie far from each other, and with room for one more, so that they are read at once.
BY_ROW, BY_COLUMN = tl.constexpr(3), tl.constexpr(4)
#: Room for the coordinates that a program adds up at a time; measured (they are doubles).
ROOM = 128


@triton.jit
def _of_entries(sums_ptr, mine, its, beta_ptr, m, p, there, count):
    """What is known of entries: ‖u‖, ‖v‖, ‖û − v̂‖², turn·u, turn·v, 1 − û·v̂, o and √β, then :func:`logarithm`'s."""
    n_u, inverse_u = tl.load(mine, there, 0.0), tl.load(mine + 1, there, 0.0)
    s_u, cosh_u = tl.load(mine + 2, there, 0.0), tl.load(mine + 3, there, 0.0)
    n_v, inverse_v = tl.load(its, there, 0.0), tl.load(its + 1, there, 0.0)
    s_v, cosh_v = tl.load(its + 2, there, 0.0), tl.load(its + 3, there, 0.0)
    sums_ptr += m * SUMS * count + p
    d_n, turned = tl.load(sums_ptr, there, 0.0), tl.load(sums_ptr + count, there, 0.0)
    dot_u, dot_v, bend = turn_products(n_u, inverse_u, n_v, inverse_v, turned)
    root = tl.sqrt(tl.load(beta_ptr + m).to(tl.float64))
    theta, shrink, coth, a, c, its_a, its_c = logarithm(
        n_u, inverse_u, s_u, cosh_u, n_v, inverse_v, s_v, cosh_v, d_n, turned, dot_u, dot_v, root
    )
    o = overlap(d_n, n_u, inverse_u, n_v, inverse_v)
    # of one ray turn is 0, and what its parts along u and v would leave of each other is rounding times e^r
    c, its_c = tl.where(turned == 0, 0.0, c), tl.where(turned == 0, 0.0, its_c)
    return n_u, n_v, turned, dot_u, dot_v, bend, o, root, theta, shrink, coth, a, c, its_a, its_c


@triton.jit(do_not_specialize=["rows", "cols", "count", "pairs_step", "side_step", "weight_step"])
def tangent_numbers(
    sums_ptr, x_ends_ptr, y_ends_ptr, pairs_ptr, beta_ptr, weight_ptr, numbers_ptr, weight_step, rows, cols, count,
    pairs_step, side_step, BLOCK_P: tl.constexpr,
):  # fmt: skip
    """What u and v are multiplied by in w √β (α u + γ turn) of entries ``(M, 2, E)``.

    Of a turn that is smaller than 1e−13 of the vectors, as only a coordinate so much smaller than others can make one,
    the difference of both multiples has few digits left.
    """
    m, p, there, i, j = these(pairs_ptr, count, pairs_step, side_step, BLOCK_P)
    mine, its = x_ends_ptr + (m * rows + i) * ENDS, y_ends_ptr + (m * cols + j) * ENDS
    _u, _v, _turned, _du, _dv, _bend, o, root, _theta, _shrink, _coth, a, c, _a, _c = _of_entries(
        sums_ptr, mine, its, beta_ptr, m, p, there, count
    )
    turn_u, turn_v = in_turn(o)
    w = root * tl.load(weight_ptr + m * weight_step + p, there, 0.0).to(tl.float64)
    tl.store(numbers_ptr + m * 2 * count + p, w * (a + c * turn_u), there)
    tl.store(numbers_ptr + (m * 2 + 1) * count + p, w * c * turn_v, there)


@triton.jit(do_not_specialize=["rows", "cols", "count", "pieces"])
def tangent_add(
    x_ptr, y_ptr, numbers_ptr, out_ptr, rows, cols, count, piece_ptr, other_ptr, pieces,
    D: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Add the logarithms of pieces of rows to ``(M, rows, D)``."""
    m, _piece, i, own, start, stop, longest = some_pieces(piece_ptr, pieces, BLOCK_R)
    e, c = tl.arange(0, BLOCK_E)[None, :], tl.arange(0, BLOCK_D)
    u = vectors(x_ptr + m * rows * D, i, own, c, D)
    numbers_ptr += m * 2 * count
    of_u = tl.zeros([BLOCK_R, BLOCK_E], tl.float64)
    total = tl.zeros([BLOCK_R, BLOCK_E, BLOCK_D], tl.float64)
    for at in range(0, longest, BLOCK_E):
        p = (start + at + e).to(tl.int64)
        there = p < stop
        v = vectors(y_ptr + m * cols * D, tl.load(other_ptr + p, there, 0).to(tl.int64), there, c, D)
        of_u += tl.load(numbers_ptr + p, there, 0.0)
        total += tl.load(numbers_ptr + count + p, there, 0.0)[:, :, None] * v
    added = tl.sum(of_u, 1)[:, None] * u + tl.sum(total, 1)
    out_ptr += (m * rows + i)[:, None] * D + c
    tl.atomic_add(out_ptr, added, own[:, None] & (c < D), sem="relaxed")  # a long row has several pieces


@triton.jit(do_not_specialize=["rows", "cols", "count", "pairs_step", "side_step", "weight_step"])
def tangent_slopes(
    sums_ptr, x_ends_ptr, y_ends_ptr, pairs_ptr, beta_ptr, weight_ptr, own_ptr, product_ptr, by_row_ptr,
    by_column_ptr, grad_weight_ptr, share_ptr, weight_step, rows, cols, count, pairs_step, side_step,
    BLOCK_P: tl.constexpr,
):  # fmt: skip
    """Numbers for :func:`pull_rows` and :func:`pull_columns`, gradients in the weights, shares of that in β by program.

    ``own`` is g_i·u_i of rows, ``product`` g_i·v_j of entries.
    """
    m, p, there, i, j = these(pairs_ptr, count, pairs_step, side_step, BLOCK_P)
    mine, its = x_ends_ptr + (m * rows + i) * ENDS, y_ends_ptr + (m * cols + j) * ENDS
    n_u, n_v, turned, dot_u, dot_v, bend, o, root, theta, shrink, coth, a, c, its_a, its_c = _of_entries(
        sums_ptr, mine, its, beta_ptr, m, p, there, count
    )
    uv = n_u * n_v * (1 - bend)
    gu, gv = tl.load(own_ptr + m * rows + i, there, 0.0), tl.load(product_ptr + m * count + p, there, 0.0)
    of_g, of_t, its_g, its_b, its_t, g_t, pulled_u, pulled_v = pulls(
        n_u, tl.load(mine + 6, there, 0.0), n_v, turned, dot_u, dot_v, uv, gu, gv, turn_of(gu, gv, o), theta, shrink,
        coth, a, c, its_a, its_c,
    )  # fmt: skip
    w = tl.load(weight_ptr + m * weight_step + p, there, 0.0).to(tl.float64)
    tl.store(grad_weight_ptr + m * count + p, hold(root * g_t), there)
    turn_u, turn_v = in_turn(o)
    by_row_ptr += m * BY_ROW * count + p
    tl.store(by_row_ptr, w * of_g, there)
    tl.store(by_row_ptr + count, w * of_t * (a + c * turn_u), there)
    tl.store(by_row_ptr + 2 * count, w * of_t * c * turn_v, there)
    by_column_ptr += (m * count + p) * BY_COLUMN
    its_turn = its_t * c - its_b * its_c
    tl.store(by_column_ptr, w * its_g, there)
    tl.store(by_column_ptr + 1, w * (its_t * a + its_turn * turn_u), there)
    tl.store(by_column_ptr + 2, w * (its_b * its_a + its_turn * turn_v), there)
    # T/√β depends on u/√β and v/√β alone
    share = tl.where(there, w * (root * g_t - pulled_u - pulled_v), 0.0) * (0.5 / (root * root))
    tl.store(share_ptr + m * tl.num_programs(0) + tl.program_id(0), tl.sum(hold(share), 0))


@triton.jit(do_not_specialize=["rows", "cols", "count", "pieces"])
def pull_rows(
    x_ptr, y_ptr, g_ptr, numbers_ptr, out_ptr, rows, cols, count, piece_ptr, other_ptr, pieces,
    D: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Add the gradients of pieces of rows, in the frames at their points, to ``(M, rows, D)``."""
    m, _piece, i, own, start, stop, longest = some_pieces(piece_ptr, pieces, BLOCK_R)
    e, c = tl.arange(0, BLOCK_E)[None, :], tl.arange(0, BLOCK_D)
    u, g = vectors(x_ptr + m * rows * D, i, own, c, D), vectors(g_ptr + m * rows * D, i, own, c, D)
    numbers_ptr += m * BY_ROW * count
    of_g, of_u = tl.zeros([BLOCK_R, BLOCK_E], tl.float64), tl.zeros([BLOCK_R, BLOCK_E], tl.float64)
    total = tl.zeros([BLOCK_R, BLOCK_E, BLOCK_D], tl.float64)
    for at in range(0, longest, BLOCK_E):
        p = (start + at + e).to(tl.int64)
        there = p < stop
        v = vectors(y_ptr + m * cols * D, tl.load(other_ptr + p, there, 0).to(tl.int64), there, c, D)
        of_g += tl.load(numbers_ptr + p, there, 0.0)
        of_u += tl.load(numbers_ptr + count + p, there, 0.0)
        total += tl.load(numbers_ptr + 2 * count + p, there, 0.0)[:, :, None] * v
    pulled = tl.sum(of_g, 1)[:, None] * g + tl.sum(of_u, 1)[:, None] * u + tl.sum(total, 1)
    tl.atomic_add(out_ptr + (m * rows + i)[:, None] * D + c, pulled, own[:, None] & (c < D), sem="relaxed")


@triton.jit(do_not_specialize=["rows", "cols", "count", "pieces"])
def pull_columns(
    x_ptr, y_ptr, g_ptr, numbers_ptr, entry_ptr, out_ptr, rows, cols, count, piece_ptr, other_ptr, pieces,
    D: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Add the gradients of pieces of columns, in the frames at their points, to ``(M, cols, D)``."""
    m, _piece, j, own, start, stop, longest = some_pieces(piece_ptr, pieces, BLOCK_R)
    e, c = tl.arange(0, BLOCK_E)[None, :], tl.arange(0, BLOCK_D)
    v = vectors(y_ptr + m * cols * D, j, own, c, D)
    of_v = tl.zeros([BLOCK_R, BLOCK_E], tl.float64)
    total = tl.zeros([BLOCK_R, BLOCK_E, BLOCK_D], tl.float64)
    for at in range(0, longest, BLOCK_E):
        place = start + at + e
        there = place < stop
        i = tl.load(other_ptr + place, there, 0).to(tl.int64)
        u, g = vectors(x_ptr + m * rows * D, i, there, c, D), vectors(g_ptr + m * rows * D, i, there, c, D)
        p = (m * count + tl.load(entry_ptr + place, there, 0)) * BY_COLUMN
        total += tl.load(numbers_ptr + p, there, 0.0)[:, :, None] * g
        total += tl.load(numbers_ptr + p + 1, there, 0.0)[:, :, None] * u
        of_v += tl.load(numbers_ptr + p + 2, there, 0.0)
    pulled = tl.sum(of_v, 1)[:, None] * v + tl.sum(total, 1)
    tl.atomic_add(out_ptr + (m * cols + j)[:, None] * D + c, pulled, own[:, None] & (c < D), sem="relaxed")


@triton.jit(do_not_specialize=["rows", "per_beta"])
def to_coordinates(
    v_ptr, ends_ptr, beta_ptr, frame_ptr, out_ptr, rows, per_beta, d: tl.constexpr, BLOCK_R: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Gradients in the frames at points as those in their normal coordinates ``(R, d)``."""
    row, there, place, inside = block_of_rows(tl.program_id(0), rows, d, BLOCK_R, BLOCK_D)
    v = tl.load(v_ptr + place, inside, 0.0).to(tl.float64)
    frame = tl.load(frame_ptr + place, inside, 0.0)
    ends_ptr += row.to(tl.int64) * ENDS
    inverse, stretch = tl.load(ends_ptr + 1, there, 0.0), tl.load(ends_ptr + 4, there, 0.0)
    stretch *= tl.sqrt(tl.load(beta_ptr + row // per_beta, there, 1.0).to(tl.float64))  # sinh r/r
    along = (tl.sum(frame * v, 1) * inverse * inverse)[:, None] * v
    tl.store(out_ptr + place, hold(along + stretch[:, None] * (frame - along)), inside)


def tangent_sums(
    x: Tensor | None, y: Tensor, beta: Tensor, weight: Tensor, adj: Adjacency
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sums of logarithms ``(M, rows, d)``, and what the gradient needs; see :mod:`hyperboloid.kernels.tangent`."""
    call, weight = entry_call(adj.ends, weight, y.size(2))
    y, beta = y.contiguous(), beta.contiguous()
    y_ends = call.ends(y, beta)
    if x is None:
        x, x_ends, kept_ends = y, y_ends, y.new_empty(y.size(0), 0)  # what is known already is not kept twice
    else:
        x = x.contiguous()
        x_ends = kept_ends = call.ends(x, beta)
    sums, numbers = call.sums(x, x_ends, y, y_ends), call.numbers(2)
    out, sizes = torch.zeros_like(x, dtype=torch.float64), (x.size(1), y.size(1))
    known = (sums, x_ends, y_ends, call.pairs, beta, weight)
    call.by_pairs(tangent_numbers, *known, numbers, weight.stride(0), *sizes)
    by_pieces(tangent_add, adj.index.rows, x.shape, x, y, numbers, out, *sizes, call.count, room=ROOM)
    return _held(out, x), sums, kept_ends, y_ends


def _own_products(grad: Tensor, x: Tensor) -> Tensor:
    """g_i·x_i of nodes ``(M, N)``, in double precision: the products of entries that lead from a node to itself."""
    models, count, d = x.shape
    loops = PairCall(torch.arange(count, device=x.device).expand(models, 2, count), d)
    out = loops.numbers(1).squeeze(1)
    loops.take_products(entry_products, grad, x, loops.pairs, out, count, count)
    return out


def tangent_gradients(
    grad: Tensor, x: Tensor | None, y: Tensor, beta: Tensor, weight: Tensor, adj: Adjacency, sums: Tensor,
    x_ends: Tensor, y_ends: Tensor,
) -> tuple[Tensor | None, Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients in x, if that is not y, in y, β and the weights."""
    call, weight = entry_call(adj.ends, weight, y.size(2))
    y, beta, grad = y.contiguous(), beta.contiguous(), grad.contiguous()
    points = [(y, y_ends)] if x is None else [(x.contiguous(), x_ends), (y, y_ends)]
    x, x_ends = points[0]
    sizes = (x.size(1), y.size(1))
    product, shares = call.numbers(1), call.shares()
    numbers = call.numbers(BY_ROW.value), call.numbers(BY_COLUMN.value).view(call.models, call.count, BY_COLUMN.value)
    to_weight = weight.new_empty(weight.shape)
    own = _own_products(grad, x)
    call.take_products(entry_products, grad, y, call.pairs, product, *sizes)
    known = (sums, x_ends, y_ends, call.pairs, beta, weight, own, product)
    call.by_pairs(tangent_slopes, *known, *numbers, to_weight, shares, weight.stride(0), *sizes)
    (rows, columns), sizes = adj.index[:2], (*sizes, call.count)
    frames = [torch.zeros_like(t, dtype=torch.float64) for t, _ in points]
    by_pieces(pull_rows, rows, x.shape, x, y, grad, numbers[0], frames[0], *sizes, room=ROOM)
    by_pieces(pull_columns, columns, y.shape, x, y, grad, numbers[1], adj.index.entry, frames[-1], *sizes, room=ROOM)
    gradients = [torch.empty_like(t) for t, _ in points]
    for (at, ends), frame, out in zip(points, frames, gradients, strict=True):
        _over_rows(to_coordinates, at, beta, at, ends, beta, frame, out)
    to_x = gradients[0] if len(points) == 2 else None
    return to_x, gradients[-1], _held(shares.sum(1), beta), to_weight
