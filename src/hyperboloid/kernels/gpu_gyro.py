r"""Triton kernels for gyrovector sums of rows, u ⊕ v, and what they share with `gpu_tangent.py`.

Formulas and names are those of `geometry/gyro.py`. u ⊕ v is the logarithm of v at x = −u, carried to the origin. It and
its gradient lie in the span of x, v, the gradient g and turn = (x̂ − v̂)·max(‖x‖, ‖v‖): with numbers that follow from
sums over coordinates alone,

.. math::  T/\sqrt β = α x + γ\,\mathrm{turn}, \qquad \log_v(x)/\sqrt β = α' v - γ'\,\mathrm{turn}.

So vectors are read for their products, again for those of turn, and a last time to be added up, a few coordinates at a
time: threads that share a row all compute its exponentials, and with few coordinates few threads share one. Everything
is double precision inside, whatever the inputs are.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .gpu_math import TINY, asinh, clip, excess, hold, sinh, turn_of

#: Closer points coincide.
CLOSE = tl.constexpr(1e-8)
#: Smaller differences from 1 are rounding.
ROUNDING = tl.constexpr(1e-15)


@triton.jit
def _half(inverse, cosh, d_sinh, turned, its_s, dot, longer, shrink):
    """α and γ of log_u(v); ``dot`` is turn·u, ``d_sinh`` sinh(r_u − r_v), ``longer`` 1/max(‖u‖, ‖v‖)."""
    radial = d_sinh + turned * 0.5 * its_s * cosh
    return -shrink * (radial - its_s * dot * longer * inverse) * inverse, -shrink * its_s * longer


@triton.jit
def logarithm(n_u, inverse_u, s_u, cosh_u, n_v, inverse_v, s_v, cosh_v, d_n, turned, dot_u, dot_v, root):
    """θ, θ/sinh θ, coth θ, α, γ, α', γ' of pairs of points whose numbers and sums are those of `gpu_pairs.py`.

    Exponentials are dear, and two suffice: what is left follows from sinh of half an angle.
    """
    half = sinh(clip(d_n * (1 / root)) * 0.5)
    d_sinh = 2 * half * tl.sqrt(1 + half * half)
    q = tl.sqrt(half * half + s_u * s_v * turned * 0.25)
    theta = 2 * asinh(q)
    inverse = 1 / tl.maximum(2 * q * tl.sqrt(1 + q * q), TINY)  # 1/sinh θ
    shrink = tl.where(theta > CLOSE, theta * inverse, 1.0)
    longer = tl.where(n_u >= n_v, inverse_u, inverse_v)
    a, c = _half(inverse_u, cosh_u, d_sinh, turned, s_v, dot_u, longer, shrink)
    its_a, its_c = _half(inverse_v, cosh_v, -d_sinh, turned, s_u, -dot_v, longer, shrink)
    return theta, shrink, (1 + 2 * q * q) * inverse, a, c, its_a, its_c


@triton.jit
def pulls(n_u, steep, n_v, turned, dot_u, dot_v, uv, gu, gv, g_turn, theta, shrink, coth, a, c, its_a, its_c):
    """How a gradient g of T/√β pulls at both points, in the frames there: numbers of vectors that add up to it.

    ``steep`` is tanh(r_u/2)/‖u‖; uv, gu, gv and g_turn are products. With T = α u + γ turn and B = α' v − γ' turn the
    pulls are of_g g + of_t T and its_g g + its_b B + its_t T; then g·T, and the products of the pulls with u and v.
    """
    longer = tl.maximum(n_u, n_v)
    turn2 = turned * longer * longer
    g_t, g_b = a * gu + c * g_turn, its_a * gv - its_c * g_turn
    t_u, t_v = a * n_u * n_u + c * dot_u, a * uv + c * dot_v
    b_v = its_a * n_v * n_v - its_c * dot_v
    t_b = a * its_a * uv - a * its_c * dot_u + c * its_a * dot_v - c * its_c * turn2
    apart = theta > CLOSE
    inverse = tl.where(apart, 1 / tl.maximum(theta, CLOSE), 0.0)

    # x moves
    stiff = excess(theta, coth)
    of_g = -1 - stiff - steep * t_u
    of_t = stiff * g_t * inverse * inverse + steep * gu

    # y moves: R leads from −B/θ to T/θ, its transpose back
    along, back = g_t * inverse, -g_b * inverse
    cosine = -t_b * inverse * inverse
    met = shrink * (back + along) + (1 - shrink) * along * (1 + cosine)
    scale = met / tl.maximum(1 + cosine, ROUNDING)  # 2·met/‖a + b‖²
    its_t = ((1 - shrink) * along - scale) * inverse
    its_b = (scale - 2 * along) * inverse
    return of_g, of_t, shrink, its_b, its_t, g_t, of_g * gu + of_t * t_u, shrink * gv + its_t * t_v + its_b * b_v


@triton.jit
def _wide(ptr, row, there, c, d):
    """Some coordinates of rows ``(R, d)``, as doubles."""
    inside = there[:, None] & (c < d)[None, :]
    return tl.load(ptr + row.to(tl.int64)[:, None] * d + c[None, :], inside, 0.0).to(tl.float64)


@triton.jit
def _end(square, root):
    """Length, its inverse (of nothing 0), sinh r and cosh r of points, from the squares of their coordinates."""
    n = tl.sqrt(square)
    s = sinh(clip(n * (1 / root)))
    return n, tl.where(n > TINY, 1 / tl.maximum(n, TINY), 0.0), s, tl.sqrt(1 + s * s)


@triton.jit
def _apart(
    u_ptr, v_ptr, row, there, root, d: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr, STEP: tl.constexpr
):
    """Of rows: length, inverse length, sinh r and cosh r of x and of v, ‖x‖ − ‖v‖, ‖x̂ − v̂‖², turn·x, turn·v and o."""
    c, none = tl.arange(0, STEP), tl.zeros([BLOCK_R, STEP], tl.float64)
    xx, vv, squares = none, none, none
    for at in tl.static_range(0, BLOCK_D, STEP):
        x, v = -_wide(u_ptr, row, there, at + c, d), _wide(v_ptr, row, there, at + c, d)
        xx, vv, squares = xx + x * x, vv + v * v, squares + (x - v) * (x + v)
    n_x, inverse_x, s_x, cosh_x = _end(tl.sum(xx, 1), root)
    n_v, inverse_v, s_v, cosh_v = _end(tl.sum(vv, 1), root)
    d_n = tl.sum(squares, 1) / tl.maximum(n_x + n_v, TINY)
    shorter, longer = tl.where(n_x >= n_v, inverse_v, inverse_x), tl.where(n_x >= n_v, inverse_x, inverse_v)
    o = d_n * shorter
    turned, dots_x, dots_v = none, none, none
    for at in tl.static_range(0, BLOCK_D, STEP):
        x, v = -_wide(u_ptr, row, there, at + c, d), _wide(v_ptr, row, there, at + c, d)
        turn = turn_of(x, v, o[:, None])
        turned, dots_x, dots_v = turned + turn * turn, dots_x + turn * x, dots_v + turn * v
    turned, dot_x, dot_v = tl.sum(turned, 1) * (longer * longer), tl.sum(dots_x, 1), tl.sum(dots_v, 1)
    return n_x, inverse_x, s_x, cosh_x, n_v, inverse_v, s_v, cosh_v, d_n, turned, dot_x, dot_v, o


@triton.jit
def _store(ptr, row, there, c, d, value):
    """Some coordinates of rows, held below the largest."""
    tl.store(ptr + row.to(tl.int64)[:, None] * d + c[None, :], hold(value), there[:, None] & (c < d)[None, :])


@triton.jit(do_not_specialize=["rows", "per_beta"])
def gyro_forward(
    u_ptr, v_ptr, beta_ptr, out_ptr, rows, per_beta, d: tl.constexpr,
    BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """u ⊕ v of rows ``(R, d)``; β belongs to ``per_beta`` rows each."""
    row = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    there = row < rows
    root = tl.sqrt(tl.load(beta_ptr + row // per_beta, there, 1.0).to(tl.float64))
    n_x, inverse_x, s_x, cosh_x, n_v, inverse_v, s_v, cosh_v, d_n, turned, dot_x, dot_v, o = _apart(
        u_ptr, v_ptr, row, there, root, d, BLOCK_R, BLOCK_D, STEP
    )
    _theta, _shrink, _coth, a, c, _a, _c = logarithm(
        n_x, inverse_x, s_x, cosh_x, n_v, inverse_v, s_v, cosh_v, d_n, turned, dot_x, dot_v, root
    )
    for at in tl.static_range(0, BLOCK_D, STEP):
        k = at + tl.arange(0, STEP)
        x, v = -_wide(u_ptr, row, there, k, d), _wide(v_ptr, row, there, k, d)
        turn = turn_of(x, v, o[:, None])
        _store(out_ptr, row, there, k, d, (root * a)[:, None] * x + (root * c)[:, None] * turn)


@triton.jit
def _stretch(n, s, root):
    """sinh r/r of points: lengths across the radius are so much larger than in normal coordinates."""
    r = clip(n * (1 / root))
    return tl.where(r > CLOSE, s / tl.maximum(r, CLOSE), 1.0)


@triton.jit(do_not_specialize=["rows", "per_beta"])
def gyro_backward(
    u_ptr, v_ptr, beta_ptr, grad_ptr, grad_u_ptr, grad_v_ptr, grad_beta_ptr, rows, per_beta, d: tl.constexpr,
    BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Gradients in u and v ``(R, d)``, and in β by row ``(R,)``."""
    row = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    there = row < rows
    root = tl.sqrt(tl.load(beta_ptr + row // per_beta, there, 1.0).to(tl.float64))
    n_x, inverse_x, s_x, cosh_x, n_v, inverse_v, s_v, cosh_v, d_n, turned, dot_x, dot_v, o = _apart(
        u_ptr, v_ptr, row, there, root, d, BLOCK_R, BLOCK_D, STEP
    )
    none = tl.zeros([BLOCK_R, STEP], tl.float64)
    xv, gx, gv, g_turn = none, none, none, none
    for at in tl.static_range(0, BLOCK_D, STEP):
        k = at + tl.arange(0, STEP)
        x, v, g = -_wide(u_ptr, row, there, k, d), _wide(v_ptr, row, there, k, d), _wide(grad_ptr, row, there, k, d)
        xv, gx, gv, g_turn = xv + x * v, gx + g * x, gv + g * v, g_turn + g * turn_of(x, v, o[:, None])
    theta, shrink, coth, a, c, its_a, its_c = logarithm(
        n_x, inverse_x, s_x, cosh_x, n_v, inverse_v, s_v, cosh_v, d_n, turned, dot_x, dot_v, root
    )
    steep = s_x * inverse_x / (1 + cosh_x)
    of_g, of_t, its_g, its_b, its_t, g_t, pulled_x, pulled_v = pulls(
        n_x, steep, n_v, turned, dot_x, dot_v, tl.sum(xv, 1), tl.sum(gx, 1), tl.sum(gv, 1), tl.sum(g_turn, 1), theta,
        shrink, coth, a, c, its_a, its_c,
    )  # fmt: skip
    # T/√β depends on u/√β and v/√β alone
    tl.store(grad_beta_ptr + row, hold((root * g_t - pulled_x - pulled_v) * 0.5 / (root * root)), there)

    # what lies across the radius is stretched, what lies along it is not; and x = −u
    stretch_x, stretch_v = -_stretch(n_x, s_x, root), _stretch(n_v, s_v, root)
    along_x = -(1 + stretch_x) * pulled_x * inverse_x * inverse_x
    along_v = (1 - stretch_v) * pulled_v * inverse_v * inverse_v
    g_in_u, x_in_u, turn_in_u = stretch_x * of_g, stretch_x * of_t * a + along_x, stretch_x * of_t * c
    g_in_v, x_in_v, v_in_v = stretch_v * its_g, stretch_v * its_t * a, stretch_v * its_b * its_a + along_v
    turn_in_v = stretch_v * (its_t * c - its_b * its_c)
    for at in tl.static_range(0, BLOCK_D, STEP):
        k = at + tl.arange(0, STEP)
        x, v, g = -_wide(u_ptr, row, there, k, d), _wide(v_ptr, row, there, k, d), _wide(grad_ptr, row, there, k, d)
        turn = turn_of(x, v, o[:, None])
        to_u = g_in_u[:, None] * g + x_in_u[:, None] * x + turn_in_u[:, None] * turn
        to_v = g_in_v[:, None] * g + x_in_v[:, None] * x + v_in_v[:, None] * v + turn_in_v[:, None] * turn
        _store(grad_u_ptr, row, there, k, d, to_u)
        _store(grad_v_ptr, row, there, k, d, to_v)
