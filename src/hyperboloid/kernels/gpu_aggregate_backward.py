"""Triton kernels of the gradient of `lorentz_aggregate`: formulas and names are those of `gpu_aggregate.py`."""

from __future__ import annotations

import triton
import triton.language as tl

from .gpu_aggregate import LOWEST, factors, logarithms, products, vectors
from .gpu_math import CUT, TINY, block_of_rows, hold, log1p, some_pieces


@triton.jit(do_not_specialize=["rows", "per_beta"])
def row_gradients(
    grad_ptr, space_ptr, state_ptr, beta_ptr, q_ptr, to_gap_ptr, by_row_ptr, rows, per_beta, d,
    BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """q ``(R, d)`` (of tight rows without n ∂L/∂g), ∂L/∂g ``(R,)``, and the gradient in the factor √β by row."""
    row, there, place, inside = block_of_rows(tl.program_id(0), rows, d, BLOCK_R, BLOCK_D)
    c = tl.arange(0, BLOCK_D)
    grad = tl.load(grad_ptr + place, inside, 0.0).to(tl.float64)
    space = tl.load(space_ptr + place, inside, 0.0)
    root = tl.sqrt(tl.load(beta_ptr + row // per_beta, there, 1.0).to(tl.float64))
    state_ptr += row.to(tl.int64) * 3
    size, gap = tl.load(state_ptr, there, 0.0), tl.load(state_ptr + 1, there, 1.0)
    tight = gap < 0
    gap = tl.abs(gap)
    half = log1p(2 * size / gap) * 0.5
    inverse = 1 / tl.maximum(size, TINY)
    # where s⃗ = 0 any unit vector will do
    n = tl.where((size > TINY)[:, None], inverse[:, None] * space, tl.where(c == 0, 1.0, 0.0)[None, :])
    along = tl.sum(grad * n, 1)
    outer = 1 / (gap + 2 * size)
    to_gap = -root * size / gap * outer * along
    across = root * tl.where(size > TINY, half * inverse, 1 / gap)  # S → 0: half/S → 1/gap
    of_n = (root * outer - across) * along - tl.where(tight, 0.0, to_gap)
    tl.store(q_ptr + place, of_n[:, None] * n + across[:, None] * grad, inside)
    tl.store(to_gap_ptr + row, to_gap, there)
    by_row_ptr += row.to(tl.int64) * 2
    tl.store(by_row_ptr, half * along, there)
    tl.store(by_row_ptr + 1, 0.0, there)  # for attention features, if there are any


@triton.jit(do_not_specialize=["rows", "cols", "entries"])
def entry_gradients(
    u_ptr, point_ptr, q_ptr, to_gap_ptr, state_ptr, score_ptr, weight_ptr, keep_ptr, row_ptr, col_ptr,
    pair_ptr, grad_weight_ptr, rows, cols, entries, weight_step, keep_step, cap,
    INDEX: tl.constexpr, D: tl.constexpr, ATTENTION: tl.constexpr, WEIGHT: tl.constexpr,
    KEEP: tl.constexpr, GRAD_WEIGHT: tl.constexpr, SHARED: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Of some entries their weights and the gradients in their squared distances, side by side; and in given ones."""
    m = tl.program_id(1).to(tl.int64)
    e = tl.program_id(0).to(tl.int64) * BLOCK_E + tl.arange(0, BLOCK_E)
    there = e < entries
    i, j = tl.load(row_ptr + e, there, 0).to(INDEX), tl.load(col_ptr + e, there, 0).to(INDEX)
    product = products(u_ptr + m * cols * D, j, q_ptr + m * rows * D, i, there, D, BLOCK_D)
    point_ptr += m * cols * 4
    cosh = tl.load(point_ptr + 4 * j + 1, there, 0.0) + tl.load(point_ptr + 4 * j + 2, there, 0.0)
    to_w = tl.load(point_ptr + 4 * j, there, 0.0) * product
    to_w += cosh * tl.load(to_gap_ptr + m * rows + i, there, 0.0)
    score, weight, logarithm = logarithms(
        score_ptr + m * entries, weight_ptr + m * weight_step, keep_ptr + m * keep_step, e, there,
        ATTENTION, WEIGHT, KEEP,
    )  # fmt: skip
    top = tl.load(state_ptr + (m * rows + i) * 3 + 2, there, 0.0).to(tl.float32)
    factor = factors(score, top, ATTENTION)
    if KEEP:
        factor = tl.where(there & (tl.load(keep_ptr + m * keep_step + e, there, 0) != 0), factor, 0.0)
    if GRAD_WEIGHT:
        tl.store(grad_weight_ptr + m * entries + e, hold(factor.to(tl.float64) * to_w), there)
    w = tl.where(logarithm > LOWEST, weight * factor, 0.0)
    pair_ptr += 2 * (m * entries + e)
    tl.store(pair_ptr, w, there)
    if ATTENTION:
        free = score > -cap
        if SHARED:
            free &= i != j
        tl.store(pair_ptr + 1, tl.where(free, hold(-w.to(tl.float64) * to_w), 0.0), there)


@triton.jit
def _features(x_ptr, polar_ptr, node, there, f, A: tl.constexpr):
    """Attention features ``(R, A)``, T and s of nodes: read before their sums are taken, for memory is slow."""
    x = vectors(x_ptr, node, there, f, A)
    return x, tl.abs(tl.load(polar_ptr + 2 * node, there, 0.0)), tl.load(polar_ptr + 2 * node + 1, there, 0.0)


@triton.jit
def _store_features(
    grad_ptr, beta_share_ptr, x, time, stretch, node, there, f, space, timed, scaled, beta,
    A: tl.constexpr, ADD: tl.constexpr,
):  # fmt: skip
    """Gradients of Σ scale·d_L² in attention features x, from Σ scale·s y and Σ scale·T; their shares of that in β.

    d_L² is homogeneous in (x, y, √β), so 2β ∂d²/∂β = 2d² − x·∂d²/∂x − y·∂d²/∂y; an entry's row and its column take d²
    each.
    """
    length = tl.sqrt(tl.sum(x * x, 1))
    inverse = 1 / tl.maximum(length, TINY)
    along = tl.sum(space * x, 1) * inverse
    sine = stretch * length  # √β sinh r
    radial = 2 / tl.sqrt(beta) * (sine * timed - time * along)
    grad = ((radial + 2 * stretch * along) * inverse)[:, None] * x - (2 * stretch)[:, None] * space
    share = 2 * (time * timed - sine * along) - 2 * beta * scaled - radial * length
    tl.store(beta_share_ptr + 2 * node + 1, share, there)
    if ADD:
        grad += vectors(grad_ptr, node, there, f, A)
    tl.store(grad_ptr + node[:, None] * A + f, hold(grad), there[:, None] & (f < A))


@triton.jit(do_not_specialize=["num", "others", "entries", "in_hubs", "pieces"])
def pull_features(
    x_ptr, polar_ptr, y_ptr, other_polar_ptr, beta_ptr, pair_ptr, entry_ptr,
    grad_ptr, beta_share_ptr, part_ptr, part_state_ptr, num, others, entries, in_hubs, piece_ptr, other_ptr, pieces,
    INDEX: tl.constexpr, A: tl.constexpr, ROLE: tl.constexpr, ADD: tl.constexpr,
    BLOCK_R: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_A: tl.constexpr,
):  # fmt: skip
    """Gradients in the attention features of rows, columns, or nodes that are both, and their shares of that in β."""
    m, piece, i, own, start, stop, longest = some_pieces(piece_ptr, pieces, BLOCK_R)
    node, whole, f = m * num + i, own & (piece >= in_hubs), tl.arange(0, BLOCK_A)
    x, time, stretch = _features(x_ptr, polar_ptr, node, whole, f, A)
    beta = tl.load(beta_ptr + m).to(tl.float64)
    y_ptr += m * others * A
    other_polar_ptr += m * others * 2
    pair_ptr += m * entries * 2
    e = tl.arange(0, BLOCK_E)[None, :]
    space = tl.zeros([BLOCK_R, BLOCK_A], tl.float64)
    times, scales = tl.zeros([BLOCK_R, BLOCK_E], tl.float64), tl.zeros([BLOCK_R, BLOCK_E], tl.float64)
    for at in range(0, longest, BLOCK_E):
        place = start + at + e
        there = place < stop
        j = tl.load(other_ptr + place, there, 0).to(INDEX)
        y = vectors(y_ptr, j, there, f, A)
        scale = tl.zeros([BLOCK_R, BLOCK_E], tl.float64)
        if ROLE != "column":
            scale += tl.load(pair_ptr + 2 * place.to(tl.int64) + 1, there, 0.0)
        if ROLE != "row":
            scale += tl.load(pair_ptr + 2 * tl.load(entry_ptr + place, there, 0).to(tl.int64) + 1, there, 0.0)
        space += tl.sum((scale * tl.load(other_polar_ptr + 2 * j + 1, there, 0.0))[:, :, None] * y, 1)
        times += scale * tl.abs(tl.load(other_polar_ptr + 2 * j, there, 0.0))
        scales += scale
    timed, scaled = tl.sum(times, 1), tl.sum(scales, 1)
    in_hub, slot = own & (piece < in_hubs), m * in_hubs + piece
    tl.store(part_ptr + slot[:, None] * A + f, space, in_hub[:, None] & (f < A))
    tl.store(part_state_ptr + slot * 2, timed, in_hub)
    tl.store(part_state_ptr + slot * 2 + 1, scaled, in_hub)
    _store_features(grad_ptr, beta_share_ptr, x, time, stretch, node, whole, f, space, timed, scaled, beta, A, ADD)


@triton.jit(do_not_specialize=["num", "in_hubs"])
def merge_features(
    part_ptr, part_state_ptr, hub_ptr, x_ptr, polar_ptr, beta_ptr, grad_ptr, beta_share_ptr, num, in_hubs,
    A: tl.constexpr, ADD: tl.constexpr, BLOCK_A: tl.constexpr,
):  # fmt: skip
    """The same for a row or column in several pieces."""
    hub, m = tl.program_id(0), tl.program_id(1).to(tl.int64)
    f = tl.arange(0, BLOCK_A)
    space = tl.zeros([BLOCK_A], tl.float64)
    timed, scaled = tl.zeros([], tl.float64), tl.zeros([], tl.float64)
    for piece in range(tl.load(hub_ptr + 3 * hub + 1), tl.load(hub_ptr + 3 * hub + 2)):
        slot = m * in_hubs + piece
        space += tl.load(part_ptr + slot * A + f, f < A, 0.0)
        timed += tl.load(part_state_ptr + slot * 2)
        scaled += tl.load(part_state_ptr + slot * 2 + 1)
    one = tl.arange(0, 1)
    node = m * num + tl.load(hub_ptr + 3 * hub + one).to(tl.int64)
    x, time, stretch = _features(x_ptr, polar_ptr, node, one == 0, f, A)
    beta = tl.load(beta_ptr + m).to(tl.float64)
    _store_features(
        grad_ptr, beta_share_ptr, x, time, stretch, node, one == 0, f, space[None, :], timed + one, scaled + one, beta,
        A, ADD,
    )  # fmt: skip


@triton.jit
def _points(u_ptr, point_ptr, column, there, c, D: tl.constexpr):
    """Points ``(R, D)``, sinh r/n, sinh r and n of columns: read before their sums are taken."""
    u, point_ptr = vectors(u_ptr, column, there, c, D), point_ptr + 4 * column
    stretch, s = tl.load(point_ptr, there, 0.0), tl.load(point_ptr + 1, there, 0.0)
    return u, stretch, s, tl.load(point_ptr + 3, there, 0.0)


@triton.jit
def _store_points(
    grad_ptr, beta_share_ptr, u, stretch, s, length, column, there, c, pulled, weight, root, D: tl.constexpr
):
    """Gradients in points, and their shares of that in β, from Σ w q and Σ w ∂L/∂g."""
    inverse = 1 / tl.maximum(length, TINY)
    along = tl.sum(pulled * u, 1) * inverse
    to_r = along * tl.sqrt(1 + s * s) + weight * s
    grad = ((to_r / root - stretch * along) * inverse)[:, None] * u + stretch[:, None] * pulled
    tl.store(grad_ptr + column[:, None] * D + c, hold(grad), there[:, None] & (c < D))
    tl.store(beta_share_ptr + column * 2, -to_r * tl.minimum(length / root, CUT), there)
    tl.store(beta_share_ptr + column * 2 + 1, 0.0, there)  # for attention features, if there are any


@triton.jit(do_not_specialize=["rows", "cols", "entries", "in_hubs", "pieces"])
def pull_points(
    u_ptr, point_ptr, beta_ptr, q_ptr, to_gap_ptr, pair_ptr, entry_ptr,
    grad_ptr, beta_share_ptr, part_ptr, part_state_ptr, rows, cols, entries, in_hubs, piece_ptr, row_ptr, pieces,
    INDEX: tl.constexpr, D: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Gradients in the points of columns, and their shares of that in β."""
    m, piece, j, own, start, stop, longest = some_pieces(piece_ptr, pieces, BLOCK_R)
    column, whole, c = m * cols + j, own & (piece >= in_hubs), tl.arange(0, BLOCK_D)
    u, stretch, s, length = _points(u_ptr, point_ptr, column, whole, c, D)
    root = tl.sqrt(tl.load(beta_ptr + m).to(tl.float64))
    q_ptr += m * rows * D
    to_gap_ptr += m * rows
    pair_ptr += m * entries * 2
    e = tl.arange(0, BLOCK_E)[None, :]
    pulled = tl.zeros([BLOCK_R, BLOCK_D], tl.float64)
    weights = tl.zeros([BLOCK_R, BLOCK_E], tl.float64)
    for at in range(0, longest, BLOCK_E):
        place = start + at + e
        there = place < stop
        i = tl.load(row_ptr + place, there, 0).to(INDEX)
        q = vectors(q_ptr, i, there, c, D)
        entry = tl.load(entry_ptr + place, there, 0).to(tl.int64)
        w = tl.load(pair_ptr + 2 * entry, there, 0.0).to(tl.float64)
        pulled += tl.sum(w[:, :, None] * q, 1)
        weights += w * tl.load(to_gap_ptr + i, there, 0.0)
    weight = tl.sum(weights, 1)
    in_hub, slot = own & (piece < in_hubs), m * in_hubs + piece
    tl.store(part_ptr + slot[:, None] * D + c, pulled, in_hub[:, None] & (c < D))
    tl.store(part_state_ptr + slot, weight, in_hub)
    _store_points(grad_ptr, beta_share_ptr, u, stretch, s, length, column, whole, c, pulled, weight, root, D)


@triton.jit(do_not_specialize=["cols", "in_hubs"])
def merge_points(
    part_ptr, part_state_ptr, hub_ptr, u_ptr, point_ptr, beta_ptr, grad_ptr, beta_share_ptr, cols, in_hubs,
    D: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """The same for a column in several pieces."""
    hub, m = tl.program_id(0), tl.program_id(1).to(tl.int64)
    c = tl.arange(0, BLOCK_D)
    pulled, weight = tl.zeros([BLOCK_D], tl.float64), tl.zeros([], tl.float64)
    for piece in range(tl.load(hub_ptr + 3 * hub + 1), tl.load(hub_ptr + 3 * hub + 2)):
        slot = m * in_hubs + piece
        pulled += tl.load(part_ptr + slot * D + c, c < D, 0.0)
        weight += tl.load(part_state_ptr + slot)
    one = tl.arange(0, 1)
    column = m * cols + tl.load(hub_ptr + 3 * hub + one).to(tl.int64)
    u, stretch, s, length = _points(u_ptr, point_ptr, column, one == 0, c, D)
    root = tl.sqrt(tl.load(beta_ptr + m).to(tl.float64))
    _store_points(
        grad_ptr, beta_share_ptr, u, stretch, s, length, column, one == 0, c, pulled[None, :], weight + one, root, D
    )


@triton.jit
def beta_gradient(row_ptr, column_ptr, beta_ptr, grad_ptr, models, BLOCK: tl.constexpr):
    """Gradient in β ``(M,)``, from the sums of the shares of rows and columns ``(M, 2)``."""
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = m < models
    beta = tl.load(beta_ptr + m, there, 1.0).to(tl.float64)
    shares = tl.load(row_ptr + 2 * m + 1, there, 0.0) + tl.load(column_ptr + 2 * m, there, 0.0)
    shares += tl.load(column_ptr + 2 * m + 1, there, 0.0)
    grad = shares / (2 * beta) + tl.load(row_ptr + 2 * m, there, 0.0) / (2 * tl.sqrt(beta))
    tl.store(grad_ptr + m, hold(grad), there)
