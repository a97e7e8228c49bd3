r"""Triton kernels for what too little is left of in `gpu_aggregate.py`: points far out in almost the same direction.

They follow the kernels that they correct, and find nothing to do in most models: a flag of each model says so. A row is
*tight* where its gap g is much smaller than Σ w c; its state has a minus before g. With m = n − û_j

.. math::
    g = \sum_j w_j (e^{-r_j} + \sinh r_j ‖m‖²/2), \qquad
    ∂L/∂w_j = t_j\, u_j·∂L/∂\vec s + (e^{-r_j} + \sinh r_j ‖m‖²/2)\, ∂L/∂g

and a tight row pulls u_j by w_j ∂L/∂g (cosh r_j ‖m‖²/2 − e^−r_j) along û_j, and by −w_j ∂L/∂g m across, besides what
∂L/∂s⃗ does. Attention features that are too close for their distance from the origin take the forms of
`geometry/chord.py`; T has a minus where they have a gradient from it.

A program looks at many rows together, and takes those in turn, one at a time, that need it: that is slow, and seldom.
"""

from __future__ import annotations

import triton
import triton.language as tl

from hyperboloid.geometry.centroid import SAME as _SAME

from .gpu_aggregate import LOWEST, cancels, factors, logarithms, vectors
from .gpu_math import CUT, TINY, clip, hold, log1p, sinh
from .gpu_rows import chord_gradient, pair

SAME = tl.constexpr(_SAME)
#: Entries and nodes that a program looks at together: when a flag is raised, then mostly for a few of them.
SOME_ENTRIES, SOME_NODES = tl.constexpr(128), tl.constexpr(32)


@triton.jit
def _squared_length(m):
    """‖m‖² ``(E,)`` of differences ``(E, D)`` of directions, 0 where they are rounding."""
    square = tl.sum(m * m, 1)
    return tl.where(square > SAME, square, 0.0)


@triton.jit
def _direction(ptr, length_ptr, node, there, c, WIDTH: tl.constexpr):
    """û ``(E, D)`` of points; 0 of the origin."""
    inverse = 1 / tl.maximum(tl.load(length_ptr, there, 1.0), TINY)
    return inverse[:, None] * vectors(ptr, node, there, c, WIDTH)


@triton.jit(do_not_specialize=["rows", "cols", "entries"])
def refine_scores(
    query_ptr, query_polar_ptr, key_ptr, key_polar_ptr, beta_ptr, row_ptr, col_ptr, score_ptr, flag_ptr,
    rows, cols, entries, cap,
    INDEX: tl.constexpr, A: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_A: tl.constexpr,
):  # fmt: skip
    """Scores of which too little is left; T of nodes that have a gradient from one gets a minus."""
    m = tl.program_id(1).to(tl.int64)
    f = tl.arange(0, BLOCK_A)
    score_ptr += m * entries
    if tl.load(flag_ptr + 2 * m) != 0:
        root = tl.sqrt(tl.load(beta_ptr + m).to(tl.float64))
        for first in range(tl.program_id(0) * SOME_ENTRIES, entries, tl.num_programs(0) * SOME_ENTRIES):
            some = first + tl.arange(0, SOME_ENTRIES)
            if tl.max(tl.load(score_ptr + some, some < entries, -1.0), 0) > 0:
                for at in range(first, first + SOME_ENTRIES, BLOCK_E):
                    e = at + tl.arange(0, BLOCK_E)
                    close = tl.load(score_ptr + e, e < entries, -1.0) > 0
                    if tl.max(close.to(tl.int32), 0) > 0:
                        i, j = tl.load(row_ptr + e, close, 0).to(INDEX), tl.load(col_ptr + e, close, 0).to(INDEX)
                        mine, its = query_polar_ptr + 2 * (m * rows + i), key_polar_ptr + 2 * (m * cols + j)
                        x = vectors(query_ptr + m * rows * A, i, close, f, A)
                        y = vectors(key_ptr + m * cols * A, j, close, f, A)
                        n_x, n_y, d_n, _turn, _longer, turned = pair(x, y, True)
                        a = 2 * root * sinh(clip(d_n / root) * 0.5)
                        spaces = tl.load(mine + 1, close, 0.0) * tl.load(its + 1, close, 0.0)
                        square = a * a + spaces * n_x * n_y * turned
                        tl.store(score_ptr + e, tl.maximum(-square, -cap), close)
                        free = close & (square < cap)
                        tl.store(mine, -tl.abs(tl.load(mine, free, 0.0)), free)
                        tl.store(its, -tl.abs(tl.load(its, free, 0.0)), free)


@triton.jit
def _refine_centroid(
    u_ptr, point_ptr, root, score_ptr, weight_ptr, keep_ptr, ptr_ptr, col_ptr, out_ptr, space_ptr, state_ptr, i, row,
    INDEX: tl.constexpr, D: tl.constexpr, ATTENTION: tl.constexpr, WEIGHT: tl.constexpr, KEEP: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Gap and centroid of one row."""
    e, c = tl.arange(0, BLOCK_E), tl.arange(0, BLOCK_D)
    size, top = tl.load(state_ptr + 3 * row), tl.load(state_ptr + 3 * row + 2).to(tl.float32)
    space = tl.load(space_ptr + row * D + c, c < D, 0.0)
    gaps = tl.zeros([BLOCK_E], tl.float64)
    start, stop = tl.load(ptr_ptr + i), tl.load(ptr_ptr + i + 1)
    for at in range(start, stop, BLOCK_E):
        score, weight, logarithm = logarithms(
            score_ptr, weight_ptr, keep_ptr, at + e, at + e < stop, ATTENTION, WEIGHT, KEEP
        )
        there = logarithm > LOWEST
        j = tl.load(col_ptr + at + e, there, 0).to(INDEX)
        w = tl.where(there, weight * factors(score, top, ATTENTION), 0.0).to(tl.float64)
        point = point_ptr + 4 * j
        own = _direction(u_ptr, point + 3, j, there, c, D)
        turned = _squared_length((space / size)[None, :] - own)
        gaps += w * (tl.load(point + 1, there, 0.0) * turned * 0.5 + tl.load(point + 2, there, 0.0))
    gap = tl.sum(gaps, 0)
    half = log1p(2 * size / gap) * 0.5
    tl.store(out_ptr + row * D + c, (root * half / size) * space, c < D)
    tl.store(state_ptr + 3 * row + 1, -gap)


@triton.jit(do_not_specialize=["rows", "cols", "entries"])
def refine_centroids(
    u_ptr, point_ptr, beta_ptr, score_ptr, weight_ptr, keep_ptr, ptr_ptr, col_ptr, out_ptr, space_ptr, state_ptr,
    flag_ptr, rows, cols, entries, weight_step, keep_step,
    INDEX: tl.constexpr, D: tl.constexpr, ATTENTION: tl.constexpr, WEIGHT: tl.constexpr, KEEP: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Gaps and centroids of tight rows."""
    m = tl.program_id(1).to(tl.int64)
    gap_ptr = state_ptr + 3 * m * rows + 1
    if tl.load(flag_ptr + 2 * m + 1) != 0:
        root = tl.sqrt(tl.load(beta_ptr + m).to(tl.float64))
        for first in range(tl.program_id(0) * SOME_NODES, rows, tl.num_programs(0) * SOME_NODES):
            some = first + tl.arange(0, SOME_NODES)
            if tl.min(tl.load(gap_ptr + 3 * some, some < rows, 1.0), 0) < 0:
                for i in range(first, tl.minimum(first + SOME_NODES, rows)):
                    if tl.load(gap_ptr + 3 * i) < 0:
                        _refine_centroid(
                            u_ptr + m * cols * D, point_ptr + m * cols * 4, root, score_ptr + m * entries,
                            weight_ptr + m * weight_step, keep_ptr + m * keep_step, ptr_ptr, col_ptr, out_ptr,
                            space_ptr, state_ptr, i, m * rows + i, INDEX, D, ATTENTION, WEIGHT, KEEP, BLOCK_E, BLOCK_D,
                        )  # fmt: skip


@triton.jit
def _refine_entries_of(
    u_ptr, point_ptr, q_ptr, to_gap_ptr, space_ptr, state_ptr, score_ptr, weight_ptr, keep_ptr, ptr_ptr, col_ptr,
    pair_ptr, grad_weight_ptr, touched_ptr, i, row, cap,
    INDEX: tl.constexpr, D: tl.constexpr, ATTENTION: tl.constexpr, WEIGHT: tl.constexpr,
    KEEP: tl.constexpr, GRAD_WEIGHT: tl.constexpr, SHARED: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Gradients in the weights and squared distances of one row; its columns are marked as touched."""
    e, c = tl.arange(0, BLOCK_E), tl.arange(0, BLOCK_D)
    size, top = tl.load(state_ptr + 3 * row), tl.load(state_ptr + 3 * row + 2).to(tl.float32)
    n = tl.load(space_ptr + row * D + c, c < D, 0.0) / size
    q, to_gap = tl.load(q_ptr + row * D + c, c < D, 0.0), tl.load(to_gap_ptr + row)
    start, stop = tl.load(ptr_ptr + i), tl.load(ptr_ptr + i + 1)
    for at in range(start, stop, BLOCK_E):
        place = (at + e).to(tl.int64)
        there = place < stop
        score, weight, logarithm = logarithms(score_ptr, weight_ptr, keep_ptr, place, there, ATTENTION, WEIGHT, KEEP)
        j = tl.load(col_ptr + place, there, 0).to(INDEX)
        tl.store(touched_ptr + j, 1, there)
        point = point_ptr + 4 * j
        own = _direction(u_ptr, point + 3, j, there, c, D)
        turned = _squared_length(n[None, :] - own)
        sine = tl.load(point + 1, there, 0.0)
        to_w = sine * tl.sum(own * q[None, :], 1)
        to_w += (sine * turned * 0.5 + tl.load(point + 2, there, 0.0)) * to_gap
        factor = factors(score, top, ATTENTION)
        if KEEP:
            kept = tl.load(keep_ptr + place, there, 0) != 0
            factor = tl.where(kept, factor, 0.0)
        if GRAD_WEIGHT:
            tl.store(grad_weight_ptr + place, hold(factor.to(tl.float64) * to_w), there)
        w = tl.where(logarithm > LOWEST, weight * factor, 0.0)
        tl.store(pair_ptr + 2 * place, -w, there)
        if ATTENTION:
            free = score > -cap
            if SHARED:
                free &= j != i
            scale = tl.where(free, hold(-w.to(tl.float64) * to_w), 0.0)
            tl.store(pair_ptr + 2 * place + 1, scale, there)


@triton.jit(do_not_specialize=["rows", "cols", "entries"])
def refine_entries(
    u_ptr, point_ptr, q_ptr, to_gap_ptr, space_ptr, state_ptr, score_ptr, weight_ptr, keep_ptr, ptr_ptr, col_ptr,
    pair_ptr, grad_weight_ptr, touched_ptr, flag_ptr, rows, cols, entries, weight_step, keep_step, cap,
    INDEX: tl.constexpr, D: tl.constexpr, ATTENTION: tl.constexpr, WEIGHT: tl.constexpr,
    KEEP: tl.constexpr, GRAD_WEIGHT: tl.constexpr, SHARED: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Gradients in the weights and squared distances of tight rows, whose weights get a minus."""
    m = tl.program_id(1).to(tl.int64)
    gap_ptr = state_ptr + 3 * m * rows + 1
    if tl.load(flag_ptr + 2 * m + 1) != 0:
        for first in range(tl.program_id(0) * SOME_NODES, rows, tl.num_programs(0) * SOME_NODES):
            some = first + tl.arange(0, SOME_NODES)
            if tl.min(tl.load(gap_ptr + 3 * some, some < rows, 1.0), 0) < 0:
                for i in range(first, tl.minimum(first + SOME_NODES, rows)):
                    if tl.load(gap_ptr + 3 * i) < 0:
                        _refine_entries_of(
                            u_ptr + m * cols * D, point_ptr + m * cols * 4, q_ptr, to_gap_ptr, space_ptr, state_ptr,
                            score_ptr + m * entries, weight_ptr + m * weight_step, keep_ptr + m * keep_step, ptr_ptr,
                            col_ptr, pair_ptr + 2 * m * entries, grad_weight_ptr + m * entries,
                            touched_ptr + m * cols, i, m * rows + i, cap,
                            INDEX, D, ATTENTION, WEIGHT, KEEP, GRAD_WEIGHT, SHARED, BLOCK_E, BLOCK_D,
                        )  # fmt: skip


@triton.jit
def _refine_point(
    u_ptr, point_ptr, root, q_ptr, to_gap_ptr, space_ptr, state_ptr, pair_ptr, ptr_ptr, row_ptr, entry_ptr, grad_ptr,
    beta_share_ptr, j, column,
    INDEX: tl.constexpr, D: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """The gradient in one column's point, and its share of that in β."""
    e, c = tl.arange(0, BLOCK_E), tl.arange(0, BLOCK_D)
    point_ptr += 4 * column
    stretch, sine, decayed = tl.load(point_ptr), tl.load(point_ptr + 1), tl.load(point_ptr + 2)
    length, cosh = tl.load(point_ptr + 3), tl.sqrt(1 + sine * sine)
    own = tl.load(u_ptr + column * D + c, c < D, 0.0).to(tl.float64) / tl.maximum(length, TINY)
    pulled, moved = tl.zeros([BLOCK_D], tl.float64), tl.zeros([BLOCK_D], tl.float64)
    weights, radials = tl.zeros([BLOCK_E], tl.float64), tl.zeros([BLOCK_E], tl.float64)
    start, stop = tl.load(ptr_ptr + j), tl.load(ptr_ptr + j + 1)
    for at in range(start, stop, BLOCK_E):
        there = at + e < stop
        i = tl.load(row_ptr + at + e, there, 0).to(INDEX)
        entry = tl.load(entry_ptr + at + e, there, 0).to(tl.int64)
        w = tl.load(pair_ptr + 2 * entry, there, 0.0).to(tl.float64)
        tight, pull = w < 0, tl.abs(w) * tl.load(to_gap_ptr + i, there, 0.0)
        pulled += tl.sum(tl.abs(w)[:, None] * vectors(q_ptr, i, there, c, D), 0)
        weights += tl.where(tight, 0.0, pull)
        turn = vectors(space_ptr, i, tight, c, D) / tl.load(state_ptr + 3 * i, tight, 1.0)[:, None] - own[None, :]
        turned = _squared_length(turn)
        radials += tl.where(tight, pull * (turned * 0.5 * cosh - decayed), 0.0)
        moved -= tl.sum(tl.where(tight & (turned > 0), pull, 0.0)[:, None] * turn, 0)
    to_r = tl.sum(pulled * own, 0) * cosh + tl.sum(weights, 0) * sine + tl.sum(radials, 0)
    pulled += moved
    along = tl.sum(pulled * own, 0)
    grad = (to_r / root - stretch * along) * own + stretch * pulled
    tl.store(grad_ptr + column * D + c, hold(grad), c < D)
    tl.store(beta_share_ptr + 2 * column, -to_r * tl.minimum(length / root, CUT))


@triton.jit(do_not_specialize=["rows", "cols", "entries"])
def refine_points(
    u_ptr, point_ptr, beta_ptr, q_ptr, to_gap_ptr, space_ptr, state_ptr, pair_ptr, ptr_ptr, row_ptr, entry_ptr,
    grad_ptr, beta_share_ptr, touched_ptr, flag_ptr, rows, cols, entries,
    INDEX: tl.constexpr, D: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Gradients in points that tight rows pull, and their shares of that in β."""
    m = tl.program_id(1).to(tl.int64)
    touched_ptr += m * cols
    if tl.load(flag_ptr + 2 * m + 1) != 0:
        root = tl.sqrt(tl.load(beta_ptr + m).to(tl.float64))
        for first in range(tl.program_id(0) * SOME_NODES, cols, tl.num_programs(0) * SOME_NODES):
            some = first + tl.arange(0, SOME_NODES)
            if tl.max(tl.load(touched_ptr + some, some < cols, 0).to(tl.int32), 0) > 0:
                for j in range(first, tl.minimum(first + SOME_NODES, cols)):
                    if tl.load(touched_ptr + j) > 0:
                        _refine_point(
                            u_ptr, point_ptr, root, q_ptr + m * rows * D, to_gap_ptr + m * rows,
                            space_ptr + m * rows * D, state_ptr + 3 * m * rows, pair_ptr + 2 * m * entries, ptr_ptr,
                            row_ptr, entry_ptr, grad_ptr, beta_share_ptr, j, m * cols + j,
                            INDEX, D, BLOCK_E, BLOCK_D,
                        )  # fmt: skip


@triton.jit
def _careful_sums(
    x, time, stretch, y_ptr, other_polar_ptr, score_ptr, pair_ptr, other_ptr, entry_ptr, start, stop, beta, e, f,
    INDEX: tl.constexpr, A: tl.constexpr, COLUMN: tl.constexpr,
):  # fmt: skip
    """Over a row's or a column's entries Σ scale·s y, Σ scale·T and Σ scale; of close ones gradient and Σ scale·d²."""
    root = tl.sqrt(beta)
    space, careful = tl.zeros(f.shape, tl.float64), tl.zeros(f.shape, tl.float64)
    times, scales = tl.zeros(e.shape, tl.float64), tl.zeros(e.shape, tl.float64)
    squares = tl.zeros(e.shape, tl.float64)
    for at in range(start, stop, e.shape[0]):
        there = at + e < stop
        j = tl.load(other_ptr + at + e, there, 0).to(INDEX)
        entry = (at + e).to(tl.int64)
        if COLUMN:
            entry = tl.load(entry_ptr + at + e, there, 0).to(tl.int64)
        scale = tl.load(pair_ptr + 2 * entry + 1, there, 0.0).to(tl.float64)
        its_time = tl.abs(tl.load(other_polar_ptr + 2 * j, there, 0.0))
        its_stretch = tl.load(other_polar_ptr + 2 * j + 1, there, 0.0)
        y = vectors(y_ptr, j, there, f, A)
        close = there & cancels(tl.load(score_ptr + entry, there, -1.0).to(tl.float64), time * its_time, beta)
        own = x[None, :] + tl.zeros_like(y)
        n_x, n_y, d_n, turn, longer, turned = pair(own, y, True)
        s_x, s_y = stretch * n_x / root, its_stretch * n_y / root
        half = sinh(clip(d_n / root) * 0.5)
        its_scale = tl.where(close, scale, 0.0)
        careful += tl.sum(chord_gradient(own, n_x, s_x, s_y, half, turn, longer, turned, root, its_scale), 0)
        squares += tl.where(close, scale * beta * (4 * half * half + s_x * s_y * turned), 0.0)
        scale = tl.where(close, 0.0, scale)
        space += tl.sum((scale * its_stretch)[:, None] * y, 0)
        times += scale * its_time
        scales += scale
    return space, careful, tl.sum(times, 0), tl.sum(scales, 0), tl.sum(squares, 0)


@triton.jit
def _refine_feature(
    x_ptr, polar_ptr, y_ptr, other_polar_ptr, beta, score_ptr, pair_ptr, row_ptr_ptr, row_other_ptr, column_ptr_ptr,
    column_other_ptr, entry_ptr, grad_ptr, row_share_ptr, column_share_ptr, i, node,
    INDEX: tl.constexpr, A: tl.constexpr, ROW: tl.constexpr, COLUMN: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_A: tl.constexpr,
):  # fmt: skip
    """The gradient in one node's attention feature, and its share of that in β."""
    e, f = tl.arange(0, BLOCK_E), tl.arange(0, BLOCK_A)
    x = tl.load(x_ptr + node * A + f, f < A, 0.0).to(tl.float64)
    time, stretch = tl.abs(tl.load(polar_ptr + 2 * node)), tl.load(polar_ptr + 2 * node + 1)
    length = tl.sqrt(tl.sum(x * x, 0))
    own, sine = x / tl.maximum(length, TINY), stretch * length
    space, careful = tl.zeros([BLOCK_A], tl.float64), tl.zeros([BLOCK_A], tl.float64)
    timed, scaled, squared = tl.zeros([], tl.float64), tl.zeros([], tl.float64), tl.zeros([], tl.float64)
    if ROW:
        start, stop = tl.load(row_ptr_ptr + i), tl.load(row_ptr_ptr + i + 1)
        space, careful, timed, scaled, squared = _careful_sums(
            x, time, stretch, y_ptr, other_polar_ptr, score_ptr, pair_ptr, row_other_ptr, entry_ptr,
            start, stop, beta, e, f, INDEX, A, False,
        )  # fmt: skip
    if COLUMN:
        start, stop = tl.load(column_ptr_ptr + i), tl.load(column_ptr_ptr + i + 1)
        its_space, its_careful, its_timed, its_scaled, its_squared = _careful_sums(
            x, time, stretch, y_ptr, other_polar_ptr, score_ptr, pair_ptr, column_other_ptr, entry_ptr,
            start, stop, beta, e, f, INDEX, A, True,
        )  # fmt: skip
        space += its_space
        careful += its_careful
        timed += its_timed
        scaled += its_scaled
        squared += its_squared
    along = tl.sum(space * own, 0)
    radial = 2 / tl.sqrt(beta) * (sine * timed - time * along)
    grad = (radial + 2 * stretch * along) * own - 2 * stretch * space + careful
    tl.store(grad_ptr + node * A + f, hold(grad), f < A)
    share = 2 * (time * timed - sine * along) - 2 * beta * scaled + squared - tl.sum(grad * x, 0)
    if ROW:
        tl.store(row_share_ptr + 2 * node + 1, share)
        if COLUMN:
            tl.store(column_share_ptr + 2 * node + 1, 0.0)
    else:
        tl.store(column_share_ptr + 2 * node + 1, share)


@triton.jit(do_not_specialize=["num", "others", "entries"])
def refine_features(
    x_ptr, polar_ptr, y_ptr, other_polar_ptr, beta_ptr, score_ptr, pair_ptr, row_ptr_ptr, row_other_ptr,
    column_ptr_ptr, column_other_ptr, entry_ptr, grad_ptr, row_share_ptr, column_share_ptr, flag_ptr,
    num, others, entries,
    INDEX: tl.constexpr, A: tl.constexpr, ROW: tl.constexpr, COLUMN: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_A: tl.constexpr,
):  # fmt: skip
    """Gradients in attention features that are rows, columns or both, of nodes whose T has a minus, all anew."""
    m = tl.program_id(1).to(tl.int64)
    if tl.load(flag_ptr + 2 * m) != 0:
        beta = tl.load(beta_ptr + m).to(tl.float64)
        y_ptr += m * others * A
        other_polar_ptr += m * others * 2
        score_ptr += m * entries
        pair_ptr += 2 * m * entries
        for first in range(tl.program_id(0) * SOME_NODES, num, tl.num_programs(0) * SOME_NODES):
            some = first + tl.arange(0, SOME_NODES)
            if tl.min(tl.load(polar_ptr + 2 * (m * num + some), some < num, 1.0), 0) < 0:
                for i in range(first, tl.minimum(first + SOME_NODES, num)):
                    if tl.load(polar_ptr + 2 * (m * num + i)) < 0:
                        _refine_feature(
                            x_ptr, polar_ptr, y_ptr, other_polar_ptr, beta, score_ptr, pair_ptr, row_ptr_ptr,
                            row_other_ptr, column_ptr_ptr, column_other_ptr, entry_ptr, grad_ptr, row_share_ptr,
                            column_share_ptr, i, m * num + i, INDEX, A, ROW, COLUMN, BLOCK_E, BLOCK_A,
                        )  # fmt: skip
