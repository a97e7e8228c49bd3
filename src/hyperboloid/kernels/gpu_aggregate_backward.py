"""Triton kernels of the gradient of `lorentz_aggregate`: formulas and names are those of `gpu_aggregate.py`."""

from __future__ import annotations

import triton
import triton.language as tl

from .gpu_aggregate import FAR, LOWEST, cancels, logarithms, squared_length, vectors
from .gpu_math import CUT, TINY, block_of_rows, clip, hold, log1p, sinh
from .gpu_rows import chord_gradient, pair


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
    tl.store(by_row_ptr + row.to(tl.int64) * 2, half * along, there)


@triton.jit(do_not_specialize=["rows", "cols", "entries"])
def entry_gradients(
    u_ptr, point_ptr, q_ptr, to_gap_ptr, space_ptr, state_ptr, score_ptr, weight_ptr, keep_ptr, row_ptr, col_ptr,
    pair_ptr, grad_weight_ptr, rows, cols, entries, weight_step, keep_step,
    INDEX: tl.constexpr, D: tl.constexpr, CAP: tl.constexpr, ATTENTION: tl.constexpr, WEIGHT: tl.constexpr,
    KEEP: tl.constexpr, GRAD_WEIGHT: tl.constexpr, SHARED: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Of some entries their weights and the gradients in their squared distances, side by side; and in given ones.

    Weights in tight rows have a minus.
    """
    m = tl.program_id(1).to(tl.int64)
    e, c = tl.program_id(0).to(tl.int64) * BLOCK_E + tl.arange(0, BLOCK_E), tl.arange(0, BLOCK_D)
    there = e < entries
    i, j = tl.load(row_ptr + e, there, 0).to(INDEX), tl.load(col_ptr + e, there, 0).to(INDEX)
    u = vectors(u_ptr + m * cols * D, j, there, c, D)
    q = vectors(q_ptr + m * rows * D, i, there, c, D)
    point_ptr += m * cols * 4
    sine, decayed = tl.load(point_ptr + 4 * j + 1, there, 0.0), tl.load(point_ptr + 4 * j + 2, there, 0.0)
    to_w = tl.load(point_ptr + 4 * j, there, 0.0) * tl.sum(u * q, 1)
    state_ptr += (m * rows + i) * 3
    tight = there & (tl.load(state_ptr + 1, there, 1.0) < 0)
    if tl.max(tight.to(tl.int32), 0) > 0:
        n = vectors(space_ptr + m * rows * D, i, tight, c, D) / tl.load(state_ptr, tight, 1.0)[:, None]
        length = tl.load(point_ptr + 4 * j + 3, tight, 1.0)
        turned = squared_length(n - u / tl.maximum(length, TINY)[:, None])
        sine = tl.where(tight, sine * turned / 2, sine)
    to_w += (sine + decayed) * tl.load(to_gap_ptr + m * rows + i, there, 0.0)
    score, weight, logarithm = logarithms(
        score_ptr + m * entries, weight_ptr + m * weight_step, keep_ptr + m * keep_step, e, there,
        ATTENTION, WEIGHT, KEEP,
    )  # fmt: skip
    top = tl.load(state_ptr + 2, there, 0.0).to(tl.float32)
    factor = tl.exp(tl.minimum(score - top, 80.0))
    if KEEP:
        factor = tl.where(there & (tl.load(keep_ptr + m * keep_step + e, there, 0) != 0), factor, 0.0)
    if GRAD_WEIGHT:
        tl.store(grad_weight_ptr + m * entries + e, hold(factor.to(tl.float64) * to_w), there)
    w = tl.where(logarithm > LOWEST, weight * factor, 0.0)
    pair_ptr += 2 * (m * entries + e)
    tl.store(pair_ptr, tl.where(tight, -w, w), there)
    if ATTENTION:
        free = score > -CAP
        if SHARED:
            free &= i != j
        tl.store(pair_ptr + 1, tl.where(free, hold(-w.to(tl.float64) * to_w), 0.0), there)


@triton.jit
def _feature_gradient(x, time, stretch, space, timed, beta):
    """Gradient in a feature x ``(A,)`` of Σ scale·d_L² from Σ scale·s y and Σ scale·T; and 4·(time·Σ − space·Σ)."""
    length = tl.sqrt(tl.sum(x * x, 0))
    own = (1 / tl.maximum(length, TINY)) * x
    along = tl.sum(space * own, 0)
    sine = stretch * length  # √β sinh r
    radial = 2 / tl.sqrt(beta) * (sine * timed - time * along)
    return (radial + 2 * stretch * along) * own - 2 * stretch * space, 4 * (time * timed - sine * along)


@triton.jit
def _store_feature(
    grad_ptr, beta_share_ptr, x_ptr, polar_ptr, node, f, space, timed, scaled, squares, careful, beta,
    A: tl.constexpr, ROLE: tl.constexpr, ADD: tl.constexpr,
):  # fmt: skip
    """Gradient in an attention feature, and its share of that in β.

    d_L² is homogeneous in (x, y, √β), so 2β ∂d²/∂β = 2d² − x·∂d²/∂x − y·∂d²/∂y; the rows take 2 Σ scale·d², a node that
    is row and column at once has met every entry twice. ``careful`` is the gradient, and ``squares`` is Σ scale·d², of
    entries that are not in the sums.
    """
    x = tl.load(x_ptr + node * A + f, f < A, 0.0).to(tl.float64)
    time, stretch = tl.load(polar_ptr + 2 * node), tl.load(polar_ptr + 2 * node + 1)
    grad, twice = _feature_gradient(x, time, stretch, space, timed, beta)
    grad += careful
    share = -tl.sum(grad * x, 0)
    if ROLE == "row":
        share += twice - 4 * beta * scaled + 2 * squares
    if ROLE == "both":
        share += twice / 2 - 2 * beta * scaled + squares
    tl.store(beta_share_ptr + 2 * node + 1, share)
    if ADD:
        grad += tl.load(grad_ptr + node * A + f, f < A, 0.0)
    tl.store(grad_ptr + node * A + f, hold(grad), f < A)


@triton.jit(do_not_specialize=["num", "others", "entries", "in_hubs"])
def pull_features(
    x_ptr, polar_ptr, y_ptr, other_polar_ptr, beta_ptr, score_ptr, pair_ptr, piece_ptr, other_ptr, entry_ptr,
    grad_ptr, beta_share_ptr, part_ptr, part_state_ptr, num, others, entries, in_hubs,
    INDEX: tl.constexpr, A: tl.constexpr, ROLE: tl.constexpr, ADD: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_A: tl.constexpr,
):  # fmt: skip
    """Gradient in the attention feature of one row, column, or node that is both, and its share of that in β."""
    piece, m = tl.program_id(0), tl.program_id(1).to(tl.int64)
    node = m * num + tl.load(piece_ptr + 3 * piece).to(tl.int64)
    start, stop = tl.load(piece_ptr + 3 * piece + 1), tl.load(piece_ptr + 3 * piece + 2)
    y_ptr += m * others * A
    other_polar_ptr += m * others * 2
    pair_ptr += m * entries * 2
    score_ptr += m * entries
    e, f = tl.arange(0, BLOCK_E), tl.arange(0, BLOCK_A)
    beta, time = tl.load(beta_ptr + m).to(tl.float64), tl.load(polar_ptr + 2 * node)
    space, careful = tl.zeros([BLOCK_A], tl.float64), tl.zeros([BLOCK_A], tl.float64)
    times, scales = tl.zeros([BLOCK_E], tl.float64), tl.zeros([BLOCK_E], tl.float64)
    squares = tl.zeros([BLOCK_E], tl.float64)
    for at in range(start, stop, BLOCK_E):
        there = at + e < stop
        j = tl.load(other_ptr + at + e, there, 0).to(INDEX)
        y = vectors(y_ptr, j, there, f, A)
        scale = tl.zeros([BLOCK_E], tl.float64)
        own = (at + e).to(tl.int64)
        if ROLE != "column":
            scale += tl.load(pair_ptr + 2 * own + 1, there, 0.0)
        if ROLE != "row":
            mirrored = tl.load(entry_ptr + at + e, there, 0).to(tl.int64)
            scale += tl.load(pair_ptr + 2 * mirrored + 1, there, 0.0)
            if ROLE == "column":
                own = mirrored
        its_time, its_stretch = (
            tl.load(other_polar_ptr + 2 * j, there, 0.0),
            tl.load(other_polar_ptr + 2 * j + 1, there, 0.0),
        )
        far = there & (time * its_time > FAR * beta)
        if tl.max(far.to(tl.int32), 0) > 0:
            close = far & cancels(tl.load(score_ptr + own, far, 0.0).to(tl.float64), time * its_time, beta)
            root, stretch = tl.sqrt(beta), tl.load(polar_ptr + 2 * node + 1)
            x = tl.load(x_ptr + node * A + f, f < A, 0.0).to(tl.float64)[None, :] + tl.zeros_like(y)
            n_x, n_y, d_n, turn, longer, turned = pair(x, y)
            s_x, s_y = stretch * n_x / root, its_stretch * n_y / root
            a = 2 * root * sinh(clip(d_n / root) / 2)
            its_scale = tl.where(close, scale, 0.0)
            careful += tl.sum(chord_gradient(x, n_x, s_x, s_y, d_n, turn, longer, turned, a, root, its_scale), 0)
            squares += its_scale * (a * a + beta * s_x * s_y * turned)
            scale = tl.where(close, 0.0, scale)
        space += tl.sum((scale * its_stretch)[:, None] * y, 0)
        times += scale * its_time
        scales += scale
    timed, scaled, squared = tl.sum(times, 0), tl.sum(scales, 0), tl.sum(squares, 0)
    if piece < in_hubs:
        slot = m * in_hubs + piece
        tl.store(part_ptr + 2 * slot * A + f, space, f < A)
        tl.store(part_ptr + (2 * slot + 1) * A + f, careful, f < A)
        tl.store(part_state_ptr + slot * 3, timed)
        tl.store(part_state_ptr + slot * 3 + 1, scaled)
        tl.store(part_state_ptr + slot * 3 + 2, squared)
    else:
        _store_feature(
            grad_ptr, beta_share_ptr, x_ptr, polar_ptr, node, f, space, timed, scaled, squared, careful, beta,
            A, ROLE, ADD,
        )  # fmt: skip


@triton.jit(do_not_specialize=["num", "in_hubs"])
def merge_features(
    part_ptr, part_state_ptr, hub_ptr, x_ptr, polar_ptr, beta_ptr, grad_ptr, beta_share_ptr, num, in_hubs,
    A: tl.constexpr, ROLE: tl.constexpr, ADD: tl.constexpr, BLOCK_A: tl.constexpr,
):  # fmt: skip
    """The same for a row or column in several pieces."""
    hub, m = tl.program_id(0), tl.program_id(1).to(tl.int64)
    f = tl.arange(0, BLOCK_A)
    space, careful = tl.zeros([BLOCK_A], tl.float64), tl.zeros([BLOCK_A], tl.float64)
    timed, scaled, squared = tl.zeros([], tl.float64), tl.zeros([], tl.float64), tl.zeros([], tl.float64)
    for piece in range(tl.load(hub_ptr + 3 * hub + 1), tl.load(hub_ptr + 3 * hub + 2)):
        slot = m * in_hubs + piece
        space += tl.load(part_ptr + 2 * slot * A + f, f < A, 0.0)
        careful += tl.load(part_ptr + (2 * slot + 1) * A + f, f < A, 0.0)
        timed += tl.load(part_state_ptr + slot * 3)
        scaled += tl.load(part_state_ptr + slot * 3 + 1)
        squared += tl.load(part_state_ptr + slot * 3 + 2)
    node = m * num + tl.load(hub_ptr + 3 * hub).to(tl.int64)
    beta = tl.load(beta_ptr + m).to(tl.float64)
    _store_feature(
        grad_ptr, beta_share_ptr, x_ptr, polar_ptr, node, f, space, timed, scaled, squared, careful, beta, A, ROLE, ADD
    )


@triton.jit
def _store_point(
    grad_ptr, beta_share_ptr, u_ptr, point_ptr, column, c, pulled, moved, weight, radial, root, D: tl.constexpr
):
    """Gradient in a point, and its share of that in β, from Σ w q and Σ w ∂L/∂g.

    A tight row i has no n ∂L/∂g in its q. With m = n_i − û, n·û = 1 − ‖m‖²/2: what it pulls along û is
    ∂L/∂g (‖m‖²/2 cosh r − e^−r), which is ``radial``, and −∂L/∂g m across, which is ``moved``.
    """
    u = tl.load(u_ptr + column * D + c, c < D, 0.0).to(tl.float64)
    stretch, s = tl.load(point_ptr + 4 * column), tl.load(point_ptr + 4 * column + 1)
    length = tl.load(point_ptr + 4 * column + 3)
    own = (1 / tl.maximum(length, TINY)) * u
    to_r = tl.sum(pulled * own, 0) * tl.sqrt(1 + s * s) + weight * s + radial
    pulled += moved
    along = tl.sum(pulled * own, 0)
    tl.store(grad_ptr + column * D + c, hold((to_r / root - stretch * along) * own + stretch * pulled), c < D)
    tl.store(beta_share_ptr + column * 2, -to_r * tl.minimum(length / root, CUT))


@triton.jit(do_not_specialize=["rows", "cols", "entries", "in_hubs"])
def pull_points(
    u_ptr, point_ptr, beta_ptr, q_ptr, to_gap_ptr, space_ptr, state_ptr, pair_ptr, piece_ptr, row_ptr, entry_ptr,
    grad_ptr, beta_share_ptr, part_ptr, part_state_ptr, rows, cols, entries, in_hubs,
    INDEX: tl.constexpr, D: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Gradient in the point of one column, and its share of that in β."""
    piece, m = tl.program_id(0), tl.program_id(1).to(tl.int64)
    column = m * cols + tl.load(piece_ptr + 3 * piece).to(tl.int64)
    start, stop = tl.load(piece_ptr + 3 * piece + 1), tl.load(piece_ptr + 3 * piece + 2)
    q_ptr += m * rows * D
    space_ptr += m * rows * D
    state_ptr += m * rows * 3
    to_gap_ptr += m * rows
    pair_ptr += m * entries * 2
    e, c = tl.arange(0, BLOCK_E), tl.arange(0, BLOCK_D)
    pulled, moved = tl.zeros([BLOCK_D], tl.float64), tl.zeros([BLOCK_D], tl.float64)
    weights, radials = tl.zeros([BLOCK_E], tl.float64), tl.zeros([BLOCK_E], tl.float64)
    for at in range(start, stop, BLOCK_E):
        there = at + e < stop
        i = tl.load(row_ptr + at + e, there, 0).to(INDEX)
        q = vectors(q_ptr, i, there, c, D)
        entry = tl.load(entry_ptr + at + e, there, 0).to(tl.int64)
        w = tl.load(pair_ptr + 2 * entry, there, 0.0).to(tl.float64)
        tight = w < 0
        pulled += tl.sum(tl.abs(w)[:, None] * q, 0)
        pull = tl.abs(w) * tl.load(to_gap_ptr + i, there, 0.0)
        if tl.max(tight.to(tl.int32), 0) > 0:
            sine, length = tl.load(point_ptr + 4 * column + 1), tl.load(point_ptr + 4 * column + 3)
            own = tl.load(u_ptr + column * D + c, c < D, 0.0).to(tl.float64) / tl.maximum(length, TINY)
            n = vectors(space_ptr, i, tight, c, D) / tl.load(state_ptr + 3 * i, tight, 1.0)[:, None]
            turn = n - own[None, :]
            turned = squared_length(turn)
            cosh, decayed = tl.sqrt(1 + sine * sine), tl.load(point_ptr + 4 * column + 2)
            radials += tl.where(tight, pull * (turned / 2 * cosh - decayed), 0.0)
            moved -= tl.sum(tl.where(tight & (turned > 0), pull, 0.0)[:, None] * turn, 0)
        weights += tl.where(tight, 0.0, pull)
    weight, radial = tl.sum(weights, 0), tl.sum(radials, 0)
    if piece < in_hubs:
        slot = m * in_hubs + piece
        tl.store(part_ptr + 2 * slot * D + c, pulled, c < D)
        tl.store(part_ptr + (2 * slot + 1) * D + c, moved, c < D)
        tl.store(part_state_ptr + 2 * slot, weight)
        tl.store(part_state_ptr + 2 * slot + 1, radial)
    else:
        root = tl.sqrt(tl.load(beta_ptr + m).to(tl.float64))
        _store_point(grad_ptr, beta_share_ptr, u_ptr, point_ptr, column, c, pulled, moved, weight, radial, root, D)


@triton.jit(do_not_specialize=["cols", "in_hubs"])
def merge_points(
    part_ptr, part_state_ptr, hub_ptr, u_ptr, point_ptr, beta_ptr, grad_ptr, beta_share_ptr, cols, in_hubs,
    D: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """The same for a column in several pieces."""
    hub, m = tl.program_id(0), tl.program_id(1).to(tl.int64)
    c = tl.arange(0, BLOCK_D)
    pulled, moved = tl.zeros([BLOCK_D], tl.float64), tl.zeros([BLOCK_D], tl.float64)
    weight, radial = tl.zeros([], tl.float64), tl.zeros([], tl.float64)
    for piece in range(tl.load(hub_ptr + 3 * hub + 1), tl.load(hub_ptr + 3 * hub + 2)):
        slot = m * in_hubs + piece
        pulled += tl.load(part_ptr + 2 * slot * D + c, c < D, 0.0)
        moved += tl.load(part_ptr + (2 * slot + 1) * D + c, c < D, 0.0)
        weight += tl.load(part_state_ptr + 2 * slot)
        radial += tl.load(part_state_ptr + 2 * slot + 1)
    column = m * cols + tl.load(hub_ptr + 3 * hub).to(tl.int64)
    root = tl.sqrt(tl.load(beta_ptr + m).to(tl.float64))
    _store_point(grad_ptr, beta_share_ptr, u_ptr, point_ptr, column, c, pulled, moved, weight, radial, root, D)
