"""Triton kernels of the GPU backend: one program per row of vectors, or per row of the graph, and model.

Formulas and names are those of `geometry/chord.py`, `geometry/gyro.py` and `geometry/centroid.py`. Logarithms and
centroids are double precision inside, whatever the inputs are; chords have vectors in the inputs' precision and scalars
in double. Coordinates are multiplied by reciprocals of a row's scalars: divisions of doubles are slow. Only exp, log
and sqrt are used, so that Triton's interpreter can run the kernels where there is no GPU. Sizes that change with the
number of models are not specialised on: each of them would compile the kernel again.
"""

from __future__ import annotations

import triton
import triton.language as tl

# kernels read module constants only as constexpr
CUT = tl.constexpr(300.0)
TINY = tl.constexpr(1e-100)
LARGEST = tl.constexpr(3e35)  # gradients stay below: a float32 could hold a thousand times more


@triton.jit
def _sinh(x):
    s = x * x
    series = x * (1 + s / 6 * (1 + s / 20 * (1 + s / 42 * (1 + s / 72 * (1 + s / 110 * (1 + s / 156))))))
    e = tl.exp(tl.minimum(tl.maximum(x, -2 * CUT), 2 * CUT))
    return tl.where(s < 0.25, series, (e - 1 / e) / 2)


@triton.jit
def _asinh(x):
    """For x ≥ 0: log(1 + y) with y = x + x²/(1 + √(1 + x²)), the logarithm corrected for the rounding of 1 + y."""
    y = x + x / (1 + tl.sqrt(1 + x * x)) * x
    w = 1 + y
    exact = w == 1
    return tl.where(exact, y, tl.log(w) * (y / tl.where(exact, 1, w - 1)))


@triton.jit
def _excess(x):
    """x·coth(x) − 1 for x ≥ 0."""
    s = tl.minimum(x * x, 0.09)
    series = s / 3 * (1 - s / 15 * (1 - s * 2 / 21 * (1 - s / 10 * (1 - s * 10 / 99 * (1 - s * 691 / 6825)))))
    e = tl.exp(-2 * tl.maximum(x, 0.3))
    return tl.where(x < 0.3, series, x * (1 + e) / (1 - e) - 1)


@triton.jit
def _hold(x):
    return tl.minimum(tl.maximum(x, -LARGEST), LARGEST)


@triton.jit
def _rows(index, rows, d, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr):
    """Row numbers of this program, which of them there are, and the places of their coordinates."""
    row = index * BLOCK_R + tl.arange(0, BLOCK_R)
    c = tl.arange(0, BLOCK_D)
    there = row < rows
    return row, there, row[:, None].to(tl.int64) * d + c[None, :], there[:, None] & (c < d)[None, :]


@triton.jit
def _pair(u, v):
    """Lengths, ‖u‖ − ‖v‖, (û − v̂)·max(‖u‖, ‖v‖), max(‖u‖, ‖v‖) and ‖û − v̂‖² of rows ``(R, D)``."""
    n_u, n_v = tl.sqrt(tl.sum(u * u, 1).to(tl.float64)), tl.sqrt(tl.sum(v * v, 1).to(tl.float64))
    d_n = tl.sum((u - v) * (u + v), 1).to(tl.float64) / tl.maximum(n_u + n_v, TINY)
    short = tl.minimum(n_u, n_v)
    slope = tl.where(short > TINY, d_n / tl.maximum(short, TINY), 0.0).to(u.dtype)  # 0 · ∞ is no number
    shorter = tl.where((n_u >= n_v)[:, None], v, u)
    turn = (u - v) - slope[:, None] * shorter
    longer = tl.maximum(tl.maximum(n_u, n_v), TINY)
    return n_u, n_v, d_n, turn, longer, tl.sum(turn * turn, 1).to(tl.float64) / (longer * longer)


@triton.jit
def _clip(x):
    return tl.minimum(tl.maximum(x, -CUT), CUT)


@triton.jit(do_not_specialize=["rows", "per_beta"])
def chord_forward(u_ptr, v_ptr, beta_ptr, out_ptr, rows, per_beta, d, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr):
    """d_L of rows ``(R, d)``; β belongs to ``per_beta`` rows each."""
    row, there, place, inside = _rows(tl.program_id(0), rows, d, BLOCK_R, BLOCK_D)
    u = tl.load(u_ptr + place, inside, 0.0)
    v = tl.load(v_ptr + place, inside, 0.0)
    root = tl.sqrt(tl.load(beta_ptr + row // per_beta, there, 1.0).to(tl.float64))
    n_u, n_v, d_n, _turn, _longer, turned = _pair(u, v)
    a = 2 * root * _sinh(_clip(d_n / root) / 2)
    tt = root * root * _sinh(_clip(n_u / root)) * _sinh(_clip(n_v / root)) * turned
    tl.store(out_ptr + row, tl.minimum(tl.sqrt(a * a + tt), LARGEST), there)


@triton.jit
def _chord_gradient(u, n_u, s_u, s_v, d_n, turn, longer, turned, a, root, scale):
    """scale·∂d_L²/∂u of rows ``(R, D)``."""
    shown = tl.maximum(n_u, TINY)
    sinhc = tl.where(n_u > TINY, s_u / tl.maximum(_clip(n_u / root), TINY), 1.0)
    sideways = 2 * scale * sinhc * s_v * root / longer
    half = _sinh(_clip(d_n / root) / 2)
    lift = root * tl.sqrt(1 + s_u * s_u) * s_v * turned / 2
    radial = 2 * scale * (a * tl.sqrt(1 + half * half) + lift) / shown
    # only the part of turn across u counts
    radial -= sideways * tl.sum(turn * u, 1).to(tl.float64) / (shown * shown)
    return radial[:, None] * u.to(tl.float64) + sideways[:, None] * turn.to(tl.float64)


@triton.jit(do_not_specialize=["rows", "per_beta"])
def chord_backward(
    u_ptr, v_ptr, beta_ptr, grad_ptr, grad_u_ptr, grad_v_ptr, grad_beta_ptr, rows, per_beta, d,
    BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Gradients in u and v ``(R, d)``, and in β by row ``(R,)``; 0 where the points coincide."""
    row, there, place, inside = _rows(tl.program_id(0), rows, d, BLOCK_R, BLOCK_D)
    u = tl.load(u_ptr + place, inside, 0.0)
    v = tl.load(v_ptr + place, inside, 0.0)
    root = tl.sqrt(tl.load(beta_ptr + row // per_beta, there, 1.0).to(tl.float64))
    grad = tl.load(grad_ptr + row, there, 0.0).to(tl.float64)
    n_u, n_v, d_n, turn, longer, turned = _pair(u, v)
    s_u, s_v = _sinh(_clip(n_u / root)), _sinh(_clip(n_v / root))
    a = 2 * root * _sinh(_clip(d_n / root) / 2)
    tt = root * root * s_u * s_v * turned
    chord = tl.sqrt(a * a + tt)
    scale = tl.where(chord > TINY, grad / (2 * tl.maximum(chord, TINY)), 0.0)
    to_u = _chord_gradient(u, n_u, s_u, s_v, d_n, turn, longer, turned, a, root, scale)
    to_v = _chord_gradient(v, n_v, s_v, s_u, -d_n, -turn, longer, turned, -a, root, scale)
    excess = _excess(_clip(n_u / root)) + _excess(_clip(n_v / root))
    of_beta = a * a * _excess(tl.abs(_clip(d_n / root)) / 2) + tt * excess / 2
    tl.store(grad_u_ptr + place, _hold(to_u), inside)
    tl.store(grad_v_ptr + place, _hold(to_v), inside)
    tl.store(grad_beta_ptr + row, _hold(-scale * of_beta / (root * root)), there)


@triton.jit
def _difference(u, v, root):
    """T ``(R, D)`` in units of √β and its length θ ``(R,)``."""
    n_u, n_v, d_n, turn, longer, turned = _pair(u, v)
    s_u, s_v = _sinh(_clip(n_u / root)), _sinh(_clip(n_v / root))
    half = _sinh(_clip(d_n / root) / 2)
    theta = 2 * _asinh(tl.sqrt(half * half + s_u * s_v * turned / 4))
    own = tl.where(n_u > TINY, 1 / tl.maximum(n_u, TINY), 0.0)[:, None] * u
    turn = (1 / longer)[:, None] * turn
    across = turn - tl.sum(turn * own, 1)[:, None] * own
    radial = _sinh(_clip(d_n / root)) + turned / 2 * s_v * tl.sqrt(1 + s_u * s_u)
    shrink = -1 / _sinhc(theta)
    return (shrink * radial)[:, None] * own + (shrink * s_v)[:, None] * across, theta


@triton.jit
def _sinhc(x):
    return tl.where(x > 1e-8, _sinh(x) / tl.maximum(x, 1e-8), 1.0)


@triton.jit(do_not_specialize=["rows", "per_beta"])
def gyro_forward(u_ptr, v_ptr, beta_ptr, out_ptr, rows, per_beta, d, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr):
    """⊖u ⊕ v of rows ``(R, d)``."""
    row, there, place, inside = _rows(tl.program_id(0), rows, d, BLOCK_R, BLOCK_D)
    u = tl.load(u_ptr + place, inside, 0.0).to(tl.float64)
    v = tl.load(v_ptr + place, inside, 0.0).to(tl.float64)
    root = tl.sqrt(tl.load(beta_ptr + row // per_beta, there, 1.0).to(tl.float64))
    t, _theta = _difference(u, v, root)
    tl.store(out_ptr + place, root[:, None] * t, inside)


@triton.jit
def _to_coordinates(grad, v, n_v, root):
    direction = tl.where(n_v > TINY, 1 / tl.maximum(n_v, TINY), 0.0)[:, None] * v
    along = tl.sum(grad * direction, 1)[:, None] * direction
    return along + _sinhc(_clip(n_v / root))[:, None] * (grad - along)


@triton.jit(do_not_specialize=["rows", "per_beta"])
def gyro_backward(
    u_ptr, v_ptr, beta_ptr, grad_ptr, grad_u_ptr, grad_v_ptr, grad_beta_ptr, rows, per_beta, d,
    BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Gradients in u and v ``(R, d)``, and in β by row ``(R,)``."""
    row, there, place, inside = _rows(tl.program_id(0), rows, d, BLOCK_R, BLOCK_D)
    u = tl.load(u_ptr + place, inside, 0.0).to(tl.float64)
    v = tl.load(v_ptr + place, inside, 0.0).to(tl.float64)
    g = tl.load(grad_ptr + place, inside, 0.0).to(tl.float64)
    root = tl.sqrt(tl.load(beta_ptr + row // per_beta, there, 1.0).to(tl.float64))
    t, theta = _difference(u, v, root)
    inverse = (1 / tl.maximum(theta, TINY))[:, None]
    unit = t * inverse
    g_along = tl.sum(g * unit, 1)[:, None]

    n_u, n_v = tl.sqrt(tl.sum(u * u, 1)), tl.sqrt(tl.sum(v * v, 1))
    half = _sinh(_clip(n_u / root) / 2)
    steep = tl.where(n_u > TINY, half / tl.sqrt(1 + half * half) / tl.maximum(n_u, TINY), 0.0)
    turning = steep[:, None] * u
    excess = _excess(theta)[:, None]
    of_g = -1 - excess - tl.sum(turning * t, 1)[:, None]
    to_u = of_g * g + excess * g_along * unit + tl.sum(turning * g, 1)[:, None] * t
    to_u = _to_coordinates(to_u, u, n_u, root)

    back, _same = _difference(v, u, root)
    a = -back * inverse
    both = a + unit
    shrink = (1 / _sinhc(theta))[:, None]
    pulled = shrink * g + (1 - shrink) * g_along * unit
    scale = 2 * tl.sum(pulled * both, 1) / tl.maximum(tl.sum(both * both, 1), TINY)
    to_v = pulled - scale[:, None] * both + 2 * g_along * a
    to_v = _to_coordinates(tl.where((theta > 1e-8)[:, None], to_v, g), v, n_v, root)

    parts = tl.sum(root[:, None] * g * t - u * to_u - v * to_v, 1) / (2 * root * root)
    tl.store(grad_u_ptr + place, _hold(to_u), inside)
    tl.store(grad_v_ptr + place, _hold(to_v), inside)
    tl.store(grad_beta_ptr + row, _hold(parts), there)


@triton.jit(do_not_specialize=["rows", "per_beta"])
def polar(u_ptr, beta_ptr, inverse_ptr, sinh_ptr, rows, per_beta, d, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr):
    """1/‖u‖, with the origin's length counted as tiny, and sinh r of rows ``(R, d)``."""
    row, there, place, inside = _rows(tl.program_id(0), rows, d, BLOCK_R, BLOCK_D)
    u = tl.load(u_ptr + place, inside, 0.0).to(tl.float64)
    root = tl.sqrt(tl.load(beta_ptr + row // per_beta, there, 1.0).to(tl.float64))
    n = tl.sqrt(tl.sum(u * u, 1))
    tl.store(inverse_ptr + row, 1 / tl.maximum(n, TINY), there)
    tl.store(sinh_ptr + row, _sinh(_clip(n / root)), there)


@triton.jit
def _points(u_ptr, inverse_ptr, sinh_ptr, node, there, d, c):
    """Directions ``(B, D)`` and sinh r ``(B,)`` of some nodes."""
    place = node[:, None].to(tl.int64) * d + c[None, :]
    u = tl.load(u_ptr + place, there[:, None] & (c < d)[None, :], 0.0).to(tl.float64)
    inverse = tl.load(inverse_ptr + node, there, 0.0)
    return inverse[:, None] * u, tl.load(sinh_ptr + node, there, 0.0)


@triton.jit
def _decay(sinh):
    """e^−r from sinh r."""
    return 1 / (sinh + tl.sqrt(1 + sinh * sinh))


@triton.jit(do_not_specialize=["rows", "cols", "entries"])
def centroid_forward(
    u_ptr, inverse_ptr, sinh_ptr, weight_ptr, beta_ptr, rowptr_ptr, col_ptr,
    out_ptr, n_ptr, size_ptr, gap_ptr, top_ptr,
    rows, cols, entries, d, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Centroid of one row, and what its gradient needs: direction n, S, gap, largest weight."""
    i, m = tl.program_id(0), tl.program_id(1).to(tl.int64)
    u_ptr, weight_ptr = u_ptr + m * cols * d, weight_ptr + m * entries
    inverse_ptr, sinh_ptr = inverse_ptr + m * cols, sinh_ptr + m * cols
    root = tl.sqrt(tl.load(beta_ptr + m).to(tl.float64))
    c, e = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_E)
    start, stop = tl.load(rowptr_ptr + i), tl.load(rowptr_ptr + i + 1)
    top = tl.zeros([BLOCK_E], tl.float64)
    for at in range(start, stop, BLOCK_E):
        top = tl.maximum(top, tl.load(weight_ptr + at + e, at + e < stop, 0.0).to(tl.float64))
    largest = tl.max(top, 0)
    largest = tl.where(largest > 0, largest, 1.0)
    share = 1 / largest
    space = tl.zeros([BLOCK_D], tl.float64)
    for at in range(start, stop, BLOCK_E):
        there = at + e < stop
        j = tl.load(col_ptr + at + e, there, 0)
        w = share * tl.load(weight_ptr + at + e, there, 0.0).to(tl.float64)
        direction, sinh = _points(u_ptr, inverse_ptr, sinh_ptr, j, there, d, c)
        space += tl.sum((w * sinh)[:, None] * direction, 0)
    size = tl.sqrt(tl.sum(space * space, 0))
    n = tl.where(size > TINY, (1 / tl.maximum(size, TINY)) * space, tl.where(c == 0, 1.0, 0.0))
    gap = tl.zeros([BLOCK_E], tl.float64)
    for at in range(start, stop, BLOCK_E):
        there = at + e < stop
        j = tl.load(col_ptr + at + e, there, 0)
        w = share * tl.load(weight_ptr + at + e, there, 0.0).to(tl.float64)
        direction, sinh = _points(u_ptr, inverse_ptr, sinh_ptr, j, there, d, c)
        off = tl.where((c < d)[None, :], direction - n[None, :], 0.0)
        gap += w * (_decay(sinh) + sinh * tl.sum(off * off, 1) / 2)
    total = tl.sum(gap, 0)
    total = tl.where(total > 0, total, 1.0)
    half = _log1p(2 * size / total) / 2
    row = m * rows + i
    tl.store(out_ptr + row * d + c, root * half * tl.where(size > TINY, n, 0.0), c < d)
    tl.store(n_ptr + row * d + c, n, c < d)
    tl.store(size_ptr + row, size)
    tl.store(gap_ptr + row, total)
    tl.store(top_ptr + row, largest)


@triton.jit
def _log1p(y):
    w = 1 + y
    exact = w == 1
    return tl.where(exact, y, tl.log(w) * (y / tl.where(exact, 1, w - 1)))


@triton.jit(do_not_specialize=["rows", "cols", "entries"])
def centroid_backward_rows(
    u_ptr, inverse_ptr, sinh_ptr, beta_ptr, rowptr_ptr, col_ptr, n_ptr, size_ptr, gap_ptr, top_ptr, grad_ptr,
    grad_space_ptr, grad_gap_ptr, grad_weight_ptr, grad_root_ptr,
    rows, cols, entries, d, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Gradients of one row in s⃗, in the gap, in its weights, and in the factor √β."""
    i, m = tl.program_id(0), tl.program_id(1).to(tl.int64)
    u_ptr, grad_weight_ptr = u_ptr + m * cols * d, grad_weight_ptr + m * entries
    inverse_ptr, sinh_ptr = inverse_ptr + m * cols, sinh_ptr + m * cols
    root = tl.sqrt(tl.load(beta_ptr + m).to(tl.float64))
    c, e = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_E)
    row = m * rows + i
    n = tl.load(n_ptr + row * d + c, c < d, 0.0)
    grad = tl.load(grad_ptr + row * d + c, c < d, 0.0).to(tl.float64)
    size, gap, largest = tl.load(size_ptr + row), tl.load(gap_ptr + row), tl.load(top_ptr + row)
    share = 1 / largest
    along = tl.sum(grad * n, 0)
    half = _log1p(2 * size / gap) / 2
    outer = gap + 2 * size
    to_gap = -root * size / (gap * outer) * along
    across = root * tl.where(size > TINY, half / tl.maximum(size, TINY), 1 / gap)  # S → 0: half/S → 1/gap
    to_space = (root / outer * along - across * along) * n + across * grad
    start, stop = tl.load(rowptr_ptr + i), tl.load(rowptr_ptr + i + 1)
    for at in range(start, stop, BLOCK_E):
        there = at + e < stop
        j = tl.load(col_ptr + at + e, there, 0)
        direction, sinh = _points(u_ptr, inverse_ptr, sinh_ptr, j, there, d, c)
        off = tl.where((c < d)[None, :], direction - n[None, :], 0.0)
        dot = tl.sum(to_space[None, :] * direction, 1) + to_gap * tl.sum(off * off, 1) / 2
        tl.store(grad_weight_ptr + at + e, _hold(share * (sinh * dot + to_gap * _decay(sinh))), there)
    tl.store(grad_space_ptr + row * d + c, to_space, c < d)
    tl.store(grad_gap_ptr + row, to_gap)
    tl.store(grad_root_ptr + row, half * along)


@triton.jit(do_not_specialize=["rows", "cols", "entries"])
def centroid_backward_cols(
    u_ptr, weight_ptr, beta_ptr, colptr_ptr, row_ptr, entry_ptr, n_ptr, top_ptr, grad_space_ptr, grad_gap_ptr,
    grad_u_ptr, grad_beta_ptr,
    rows, cols, entries, d, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Gradients of one column in its point, and in β through its radius."""
    j, m = tl.program_id(0), tl.program_id(1).to(tl.int64)
    weight_ptr = weight_ptr + m * entries
    root = tl.sqrt(tl.load(beta_ptr + m).to(tl.float64))
    c, e = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_E)
    place = (m * cols + j) * d + c
    u = tl.load(u_ptr + place, c < d, 0.0).to(tl.float64)
    length = tl.sqrt(tl.sum(u * u, 0))
    direction = (1 / tl.maximum(length, TINY)) * u
    sinh = _sinh(_clip(length / root))
    to_direction = tl.zeros([BLOCK_D], tl.float64)
    to_sinh, to_decay = tl.zeros([BLOCK_E], tl.float64), tl.zeros([BLOCK_E], tl.float64)
    start, stop = tl.load(colptr_ptr + j), tl.load(colptr_ptr + j + 1)
    for at in range(start, stop, BLOCK_E):
        there = at + e < stop
        row = m * rows + tl.load(row_ptr + at + e, there, 0)
        w = tl.load(weight_ptr + tl.load(entry_ptr + at + e, there, 0), there, 0.0).to(tl.float64)
        w = w / tl.load(top_ptr + row, there, 1.0)
        inside = there[:, None] & (c < d)[None, :]
        n = tl.load(n_ptr + row[:, None] * d + c[None, :], inside, 0.0)
        to_space = tl.load(grad_space_ptr + row[:, None] * d + c[None, :], inside, 0.0)
        to_gap = tl.load(grad_gap_ptr + row, there, 0.0)
        off = tl.where(inside, direction[None, :] - n, 0.0)
        to_direction += tl.sum(w[:, None] * (to_space + to_gap[:, None] * off), 0)
        to_sinh += w * (tl.sum(to_space * direction[None, :], 1) + to_gap * tl.sum(off * off, 1) / 2)
        to_decay += w * to_gap
    to_r = tl.sum(to_sinh, 0) * tl.sqrt(1 + sinh * sinh) - tl.sum(to_decay, 0) * _decay(sinh)
    stretch = tl.where(length > TINY, sinh / tl.maximum(length, TINY), 1 / root)
    dot = tl.sum(to_direction * direction, 0)
    to_u = stretch * (to_direction - dot * direction) + to_r / root * direction
    tl.store(grad_u_ptr + place, _hold(to_u), c < d)
    tl.store(grad_beta_ptr + m * cols + j, -to_r * _clip(length / root) / (2 * root * root))
