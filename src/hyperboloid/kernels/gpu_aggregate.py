r"""Triton kernels of `lorentz_aggregate` for float32.

In double precision Minkowski space can be afforded: what cancels there is 1e-16 e^2r, nothing up to r = 10; where too
little is left further out, the kernels of `gpu_refine.py` compute it again. So all that is left per entry are dot
products and weighted sums, and a few numbers per row.
With T = √β cosh r and s = √β sinh r/n of attention features, c = cosh r and t = sinh r/n of points (n = ‖u‖):

.. math::
    μ_{ij} &= 2(β - T_i T_j + s_i s_j\, a_i·a_j), \qquad \vec s_i = \sum_j w_{ij} t_j u_j, \qquad
    g_i = \sum_j w_{ij} c_j - ‖\vec s_i‖ \\
    q_i &= ∂L/∂\vec s_i - n_i\, ∂L/∂g_i, \qquad ∂L/∂w_{ij} = t_j\, u_j·q_i + c_j\, ∂L/∂g_i

and the gradients in a_i, a_j and u_j follow from sums of s_j a_j, T_j, s_i a_i, T_i, q_i and ∂L/∂g_i, weighted by
numbers. Names are those of `geometry/centroid.py`; √β is left out of s⃗ and of the gap g.

What is per entry is done by entries, evenly; what is a sum is done by pieces of rows or columns
(:class:`hyperboloid.kernels.adjacency.Side`): where one is in several pieces, they leave partial sums that a second
kernel merges. Nothing is written per entry but numbers, and nothing is added atomically: results are always the same.

Numbers of the nodes lie side by side, so that a neighbour costs one access to memory for all of them: ``(T, s)`` of an
attention feature, ``(t, sinh r, e^−r, n)`` of a point. Widths are compiled in: masks vanish where they are powers of 2.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .gpu_math import CUT, STEP, TINY, block_of_rows, decay, sinh, some_pieces

#: The logarithm of a weight that is 0.
LOWEST = tl.constexpr(-3e38)
#: Too little is left of a difference that is this much smaller than what it is taken of.
TIGHT = tl.constexpr(1e-8)
#: Where the product of two cosh is smaller, a squared distance is right to ten digits after the point.
FAR = tl.constexpr(1e6)
#: Of that product, more than the rounding of a squared distance: one that is larger than a cap by it is larger indeed.
ROUNDING = tl.constexpr(1e-12)


@triton.jit
def _quick_log1p(y):
    """log(1 + y) for y ≥ 0 in double precision, right to float32's: a double logarithm would cost more than a row."""
    small = tl.minimum(y, 1.0).to(tl.float32)
    w = 1 + small
    near = tl.log(w) * (small / tl.where(w == 1, 1.0, w - 1))
    bits = (1 + y).to(tl.int64, bitcast=True)
    exponent = (bits >> 52) - 1023
    mantissa = ((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000).to(tl.float64, bitcast=True).to(tl.float32)
    far = exponent.to(tl.float32) * 0.6931471805599453 + tl.log(mantissa)
    return tl.where(y < 1, tl.where(w == 1, small, near), far).to(tl.float64)


@triton.jit
def held_exp(x):
    """e^x, at most e^80; what is no number stays none, which tl.minimum would hide."""
    return tl.exp(tl.where(x > 80.0, 80.0, x))


@triton.jit
def factors(score, top, ATTENTION: tl.constexpr):
    """e^(score − top), which without attention is 1."""
    if ATTENTION:
        factor = held_exp(score - top)
    else:
        factor = tl.full(score.shape, 1.0, tl.float32)
    return factor


@triton.jit
def rows_of(ptr, node, there, c, WIDTH: tl.constexpr):
    """Rows of a matrix with WIDTH columns ``(…, D)``, as they are."""
    inside = tl.expand_dims(there, -1) & (c < WIDTH)
    return tl.load(ptr + tl.expand_dims(node, -1) * WIDTH + c, inside, 0.0)


@triton.jit
def vectors(ptr, node, there, c, WIDTH: tl.constexpr):
    """The same in double precision."""
    return rows_of(ptr, node, there, c, WIDTH).to(tl.float64)


@triton.jit
def products(x_ptr, i, y_ptr, j, there, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """x_i·y_j of rows of two matrices with WIDTH columns, in double precision."""
    step: tl.constexpr = min(BLOCK, STEP)
    c = tl.arange(0, step)
    total = vectors(x_ptr, i, there, c, WIDTH) * vectors(y_ptr, j, there, c, WIDTH)
    for at in tl.static_range(step, BLOCK, step):
        total += vectors(x_ptr, i, there, at + c, WIDTH) * vectors(y_ptr, j, there, at + c, WIDTH)
    return tl.sum(total, 1)


@triton.jit
def cancels(score, times, beta):
    """Whether too little is left of −d_L², where T_i T_j is what it is taken of."""
    return (times > FAR * beta) & (-score < 2 * TIGHT * times)


@triton.jit
def radii(u_ptr, inside, beta_ptr, room_ptr, there):
    """n = ‖u‖, √β, sinh r and sinh r/n of rows; each has room for one number."""
    u = tl.load(u_ptr, inside, 0.0).to(tl.float64)
    tl.store(room_ptr, tl.sum(u * u, 1), there)
    # read back, each thread has rows of its own; else all the threads of a row would compute the same sinh
    tl.debug_barrier()
    n = tl.sqrt(tl.load(room_ptr, there, 0.0))
    root = tl.sqrt(tl.load(beta_ptr, there, 1.0).to(tl.float64))
    s = sinh(tl.minimum(n / root, CUT))
    return n, root, s, tl.where(n > TINY, s / tl.maximum(n, TINY), 1 / root)


@triton.jit(do_not_specialize=["rows", "per_beta"])
def polar(
    u_ptr, beta_ptr, out_ptr, flag_ptr, rows, per_beta, d,
    POINTS: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Numbers of rows ``(R, d)``: ``(R, 4)`` of points, ``(R, 2)`` of attention features.

    That of points is the first kernel of all, and takes the flags ``(M, 2)`` down: the first row of a model does it.
    """
    row, there, place, inside = block_of_rows(tl.program_id(0), rows, d, BLOCK_R, BLOCK_D)
    if POINTS:
        first = there & (row % per_beta == 0)
        tl.store(flag_ptr + 2 * (row // per_beta), 0, first)
        tl.store(flag_ptr + 2 * (row // per_beta) + 1, 0, first)
    out_ptr += row.to(tl.int64) * (4 if POINTS else 2)
    n, root, s, stretch = radii(u_ptr + place, inside, beta_ptr + row // per_beta, out_ptr, there)
    if POINTS:
        tl.store(out_ptr, stretch, there)
        tl.store(out_ptr + 1, s, there)
        tl.store(out_ptr + 2, decay(s), there)
        tl.store(out_ptr + 3, n, there)
    else:
        tl.store(out_ptr, root * tl.sqrt(1 + s * s), there)
        tl.store(out_ptr + 1, root * stretch, there)


@triton.jit(do_not_specialize=["rows", "cols", "entries", "count"])
def scores(
    query_ptr, query_polar_ptr, key_ptr, key_polar_ptr, beta_ptr, row_ptr, col_ptr, score_ptr, flag_ptr, rows, cols,
    entries, cap, upper_ptr, entry_ptr, count,
    INDEX: tl.constexpr, A: tl.constexpr, SHARED: tl.constexpr, HALF: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_A: tl.constexpr,
):  # fmt: skip
    """−d_L² of some entries, at least −cap; 0 of a node to itself, where rows and columns share their features.

    With HALF those of the upper half are computed, and are the same for the others. Where too little is left of one,
    and it is not certain to be below −cap, it is 1, and the model's first flag is raised.
    """
    m = tl.program_id(1).to(tl.int64)
    e = tl.program_id(0).to(tl.int64) * BLOCK_E + tl.arange(0, BLOCK_E)
    there = e < count
    if HALF:
        e = tl.load(upper_ptr + e, there, 0).to(tl.int64)
    i, j = tl.load(row_ptr + e, there, 0).to(INDEX), tl.load(col_ptr + e, there, 0).to(INDEX)
    product = products(query_ptr + m * rows * A, i, key_ptr + m * cols * A, j, there, A, BLOCK_A)
    query_polar_ptr += m * rows * 2
    key_polar_ptr += m * cols * 2
    times = tl.load(query_polar_ptr + 2 * i, there, 0.0) * tl.load(key_polar_ptr + 2 * j, there, 0.0)
    spaces = tl.load(query_polar_ptr + 2 * i + 1, there, 0.0) * tl.load(key_polar_ptr + 2 * j + 1, there, 0.0)
    beta = tl.load(beta_ptr + m).to(tl.float64)
    score = 2 * (beta - times + spaces * product)
    close = there & cancels(score, times, beta) & (-score < cap + ROUNDING * times)
    if SHARED:
        score = tl.where(i == j, 0.0, score)  # far out it would be rounding
        close &= i != j
    tl.store(flag_ptr + 2 * m, 1, tl.max(close.to(tl.int32), 0) > 0)
    score = tl.where(score > 0, 0.0, tl.where(score < -cap, -cap, score))  # what is no number stays none
    score = tl.where(close, 1.0, score)
    score_ptr += m * entries
    tl.store(score_ptr + e, score, there)
    if HALF:
        tl.store(score_ptr + tl.load(entry_ptr + e, there, 0), score, there)


@triton.jit
def _store_centroids(
    out_ptr, space_ptr, state_ptr, flag_ptr, row, there, c, space, total, near, top, root, D: tl.constexpr
):
    """½ √β log((g + 2S)/g) n of rows, and what the gradient needs: s⃗ and (S, g, top); an empty row has weights e^0.

    Where too little is left of g it has a minus, and the model's second flag is raised.
    """
    size = tl.sqrt(tl.sum(space * space, 1))
    gap = near + tl.maximum(total - size, 0.0)
    tight = gap < TIGHT * total
    tl.store(flag_ptr + 1, 1, tl.max((there & tight).to(tl.int32), 0) > 0)
    gap = tl.where(gap > 0, gap, 1.0)
    half = _quick_log1p(2 * size / gap) * 0.5
    place, inside = row[:, None] * D + c, there[:, None] & (c < D)
    tl.store(out_ptr + place, (root * half / tl.maximum(size, TINY))[:, None] * space, inside)
    tl.store(space_ptr + place, space, inside)
    tl.store(state_ptr + row * 3, size, there)
    tl.store(state_ptr + row * 3 + 1, tl.where(tight, -gap, gap), there)
    tl.store(state_ptr + row * 3 + 2, tl.where(top > LOWEST, top, 0.0), there)


@triton.jit
def logarithms(
    score_ptr, weight_ptr, keep_ptr, e, there, ATTENTION: tl.constexpr, WEIGHT: tl.constexpr, KEEP: tl.constexpr
):
    """Scores, weights beside them, and the logarithms of both, of the entries that take part.

    Without attention the weights are taken as they are: of those that take part the logarithm is said to be 0.
    """
    if KEEP:
        there &= tl.load(keep_ptr + e, there, 0) != 0
    score = tl.zeros(e.shape, tl.float32)
    if ATTENTION:
        score = tl.load(score_ptr + e, there, 0.0)
    weight, logarithm = tl.where(there, 1.0, 0.0), score
    if WEIGHT:
        weight = tl.load(weight_ptr + e, there, 0.0)
        if ATTENTION:
            logarithm = score + tl.log(tl.where(weight > 0, weight, 1.0))
        logarithm = tl.where(weight > 0, logarithm, LOWEST)
    return score, weight, tl.where(there, logarithm, LOWEST)


@triton.jit(do_not_specialize=["rows", "cols", "entries", "in_hubs", "pieces"])
def centroids(
    u_ptr, point_ptr, beta_ptr, score_ptr, weight_ptr, keep_ptr,
    out_ptr, space_ptr, state_ptr, flag_ptr, part_ptr, part_state_ptr,
    rows, cols, entries, in_hubs, weight_step, keep_step, piece_ptr, col_ptr, pieces,
    INDEX: tl.constexpr, D: tl.constexpr, ATTENTION: tl.constexpr, WEIGHT: tl.constexpr, KEEP: tl.constexpr,
    SHIFT: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Centroids of rows; of pieces of long rows the partial sums.

    ``top`` is the largest logarithm of a weight: weights are those of the softmax up to a common factor, which the
    centroid does not mind. Without SHIFT it is known to be 0.
    """
    m, piece, i, own, start, stop, longest = some_pieces(piece_ptr, pieces, BLOCK_R)
    root = tl.sqrt(tl.load(beta_ptr + m).to(tl.float64))
    u_ptr += m * cols * D
    point_ptr += m * cols * 4
    score_ptr += m * entries
    weight_ptr += m * weight_step
    keep_ptr += m * keep_step
    e, c = tl.arange(0, BLOCK_E)[None, :], tl.arange(0, BLOCK_D)
    top = tl.zeros([BLOCK_R], tl.float32)
    if SHIFT:
        tops = tl.full([BLOCK_R, BLOCK_E], LOWEST, tl.float32)
        for at in range(0, longest, BLOCK_E):
            place = start + at + e
            _s, _w, logarithm = logarithms(
                score_ptr, weight_ptr, keep_ptr, place, place < stop, ATTENTION, WEIGHT, KEEP
            )
            tops = tl.maximum(tops, logarithm)
        top = tl.max(tops, 1)
    space = tl.zeros([BLOCK_R, BLOCK_D], tl.float64)
    totals, nears = tl.zeros([BLOCK_R, BLOCK_E], tl.float64), tl.zeros([BLOCK_R, BLOCK_E], tl.float64)
    for at in range(0, longest, BLOCK_E):
        place = start + at + e
        score, weight, logarithm = logarithms(
            score_ptr, weight_ptr, keep_ptr, place, place < stop, ATTENTION, WEIGHT, KEEP
        )
        there = ~(logarithm <= LOWEST)  # what is no number takes part, and shows
        j = tl.load(col_ptr + place, there, 0).to(INDEX)
        u = vectors(u_ptr, j, there, c, D)
        w = tl.where(there, weight * factors(score, top[:, None], ATTENTION), 0.0).to(tl.float64)
        space += tl.sum((w * tl.load(point_ptr + 4 * j, there, 0.0))[:, :, None] * u, 1)
        totals += w * tl.load(point_ptr + 4 * j + 1, there, 0.0)
        nears += w * tl.load(point_ptr + 4 * j + 2, there, 0.0)
    total, near = tl.sum(totals, 1), tl.sum(nears, 1)
    in_hub, slot = own & (piece < in_hubs), m * in_hubs + piece
    tl.store(part_ptr + slot[:, None] * D + c, space, in_hub[:, None] & (c < D))
    tl.store(part_state_ptr + slot * 3, total, in_hub)
    tl.store(part_state_ptr + slot * 3 + 1, near, in_hub)
    tl.store(part_state_ptr + slot * 3 + 2, top, in_hub)
    _store_centroids(
        out_ptr, space_ptr, state_ptr, flag_ptr + 2 * m, m * rows + i, own & (piece >= in_hubs), c, space, total, near,
        top, root, D,
    )  # fmt: skip


@triton.jit(do_not_specialize=["rows", "in_hubs"])
def merge_centroids(
    part_ptr, part_state_ptr, hub_ptr, beta_ptr, out_ptr, space_ptr, state_ptr, flag_ptr, rows, in_hubs,
    D: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Centroid of a row in several pieces."""
    hub, m = tl.program_id(0), tl.program_id(1).to(tl.int64)
    c = tl.arange(0, BLOCK_D)
    space = tl.zeros([BLOCK_D], tl.float64)
    total, near = tl.zeros([], tl.float64), tl.zeros([], tl.float64)
    top = tl.full([], LOWEST, tl.float64)
    for piece in range(tl.load(hub_ptr + 3 * hub + 1), tl.load(hub_ptr + 3 * hub + 2)):
        slot = m * in_hubs + piece
        its_top = tl.load(part_state_ptr + slot * 3 + 2)
        new_top = tl.maximum(top, its_top)
        mine, its = tl.exp(top - new_top), tl.exp(its_top - new_top)
        space = mine * space + its * tl.load(part_ptr + slot * D + c, c < D, 0.0)
        total = mine * total + its * tl.load(part_state_ptr + slot * 3)
        near = mine * near + its * tl.load(part_state_ptr + slot * 3 + 1)
        top = new_top
    one = tl.arange(0, 1)
    row = m * rows + tl.load(hub_ptr + 3 * hub + one).to(tl.int64)
    root = tl.sqrt(tl.load(beta_ptr + m).to(tl.float64))
    _store_centroids(
        out_ptr, space_ptr, state_ptr, flag_ptr + 2 * m, row, one == 0, c, space[None, :], total + one, near + one,
        top + one, root, D,
    )  # fmt: skip
