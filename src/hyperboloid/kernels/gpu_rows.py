"""Triton kernels over rows of vectors: chords and squared distances.

Formulas and names are those of `geometry/chord.py`, in double precision: far out, single precision would see turns
where there are none, which the product with both sinh makes much of. Coordinates are multiplied by reciprocals of a
row's scalars: divisions of doubles are slow, and exponentials slower; most of them follow from others, as sinh 2x from
sinh x. Sizes that change with the number of models are not specialised on: each of them would compile the kernel again.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .gpu_math import LARGEST, TINY, asinh, block_of_rows, clip, coth_of, excess, hold, sinh, unrounded


@triton.jit
def pair(u, v, SINGLE: tl.constexpr):
    """Lengths, ‖u‖ − ‖v‖, (û − v̂)·max(‖u‖, ‖v‖), max(‖u‖, ‖v‖) and ‖û − v̂‖² of rows ``(R, D)`` of doubles.

    Where they were numbers of single precision, turns that are rounding are none.
    """
    n_u, n_v = tl.sqrt(tl.sum(u * u, 1)), tl.sqrt(tl.sum(v * v, 1))
    d_n = tl.sum((u - v) * (u + v), 1) / tl.maximum(n_u + n_v, TINY)
    short = tl.minimum(n_u, n_v)
    slope = tl.where(short > TINY, d_n / tl.maximum(short, TINY), 0.0)  # 0 · ∞ is no number
    shorter = tl.where((n_u >= n_v)[:, None], v, u)
    turn = (u - v) - slope[:, None] * shorter
    if SINGLE:
        turn = unrounded(turn, u, v)
    longer = tl.maximum(tl.maximum(n_u, n_v), TINY)
    return n_u, n_v, d_n, turn, longer, tl.sum(turn * turn, 1) / (longer * longer)


@triton.jit
def _doubles(ptr, place, inside):
    """Coordinates of rows; outside they are 0."""
    return tl.load(ptr + place, inside, 0.0).to(tl.float64)


@triton.jit(do_not_specialize=["rows", "per_beta"])
def chord_forward(
    u_ptr, v_ptr, beta_ptr, out_ptr, rows, per_beta, d, SQUARED: tl.constexpr,
    BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """d_L of rows ``(R, d)``, or d_H² if ``SQUARED``; β belongs to ``per_beta`` rows each."""
    row, there, place, inside = block_of_rows(tl.program_id(0), rows, d, BLOCK_R, BLOCK_D)
    u, v = _doubles(u_ptr, place, inside), _doubles(v_ptr, place, inside)
    root = tl.sqrt(tl.load(beta_ptr + row // per_beta, there, 1.0).to(tl.float64))
    n_u, n_v, d_n, _turn, _longer, turned = pair(u, v, u_ptr.dtype.element_ty == tl.float32)
    inverse = 1 / root
    a = 2 * root * sinh(clip(d_n * inverse) * 0.5)
    tt = root * root * sinh(clip(n_u * inverse)) * sinh(clip(n_v * inverse)) * turned
    chord = tl.sqrt(a * a + tt)
    if SQUARED:
        arc = 2 * root * asinh(chord * 0.5 * inverse)
        tl.store(out_ptr + row, arc * arc, there)
    else:
        tl.store(out_ptr + row, hold(chord), there)


@triton.jit
def chord_gradient(u, n_u, s_u, s_v, half, turn, longer, turned, root, scale):
    """scale·∂d_L²/∂u of rows ``(R, D)``; ``half`` is sinh (r_u − r_v)/2."""
    inverse = tl.where(n_u > TINY, 1 / tl.maximum(n_u, TINY), 0.0)  # the square of a tiny float is 0, it itself is not
    sinhc = tl.where(n_u > TINY, s_u / tl.maximum(clip(n_u * (1 / root)), TINY), 1.0)
    sideways = 2 * scale * sinhc * s_v * root / longer
    lift = root * tl.sqrt(1 + s_u * s_u) * s_v * turned * 0.5
    radial = 2 * scale * (2 * root * half * tl.sqrt(1 + half * half) + lift) * inverse
    # only the part of turn across u counts
    radial -= sideways * (tl.sum(turn * u, 1) * inverse * inverse)
    return radial[:, None] * u + sideways[:, None] * turn


@triton.jit(do_not_specialize=["rows", "per_beta"])
def chord_backward(
    u_ptr, v_ptr, beta_ptr, grad_ptr, grad_u_ptr, grad_v_ptr, grad_beta_ptr, rows, per_beta, d, SQUARED: tl.constexpr,
    BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Gradients in u and v ``(R, d)``, and in β by row ``(R,)``; those of d_L are 0 where the points coincide.

    Beyond the largest d_L its logarithm has its own gradient still, so that an intrinsic distance keeps its slope.
    """
    row, there, place, inside = block_of_rows(tl.program_id(0), rows, d, BLOCK_R, BLOCK_D)
    u, v = _doubles(u_ptr, place, inside), _doubles(v_ptr, place, inside)
    root = tl.sqrt(tl.load(beta_ptr + row // per_beta, there, 1.0).to(tl.float64))
    grad = tl.load(grad_ptr + row, there, 0.0).to(tl.float64)
    n_u, n_v, d_n, turn, longer, turned = pair(u, v, u_ptr.dtype.element_ty == tl.float32)
    inverse = 1 / root
    r_u, r_v, d_r = clip(n_u * inverse), clip(n_v * inverse), clip(d_n * inverse)
    s_u, s_v, half = sinh(r_u), sinh(r_v), sinh(d_r * 0.5)
    a = 2 * root * half
    tt = root * root * s_u * s_v * turned
    chord = tl.sqrt(a * a + tt)
    bent = tl.zeros_like(grad)  # the part of the gradient in β that does not come by way of d_L
    if SQUARED:
        t = chord * 0.5 * inverse
        arc = asinh(t)
        # ∂d_H²/∂d_L²
        slope = tl.where(t > 1e-5, arc / (tl.maximum(t, 1e-5) * tl.sqrt(1 + t * t)), 1.0)
        scale = grad * slope
        bent = 4 * grad * (arc * arc - t * t * slope)
    else:
        inverse = 1 / tl.maximum(chord, TINY)
        scale = tl.where(chord > TINY, grad * inverse * 0.5 * tl.minimum(LARGEST * inverse, 1.0), 0.0)
    to_u = chord_gradient(u, n_u, s_u, s_v, half, turn, longer, turned, root, scale)
    to_v = chord_gradient(v, n_v, s_v, s_u, -half, -turn, longer, turned, root, scale)
    both = excess(r_u, coth_of(s_u)) + excess(r_v, coth_of(s_v))
    of_beta = a * a * excess(tl.abs(d_r) * 0.5, coth_of(tl.abs(half))) + tt * both * 0.5
    tl.store(grad_u_ptr + place, hold(to_u), inside)
    tl.store(grad_v_ptr + place, hold(to_v), inside)
    tl.store(grad_beta_ptr + row, hold(bent - scale * of_beta / (root * root)), there)
