r"""Triton kernels for distances of pairs of nodes, float32: they gather and scatter by themselves.

Formulas and names are those of `geometry/chord.py`, in double precision. What takes exponentials, roots and divisions
is known by node, for a node has many pairs, or done by kernels over pairs alone, a thread for each: in those over
coordinates every thread of a pair would do the same. So the first kernel takes numbers of nodes, a second one sums over
the coordinates of pairs, a third one makes distances of them; for the gradient a fourth one makes of them the numbers
with which

.. math::  ∂L/∂u = R_u u + S_u\,\mathrm{turn}, \qquad ∂L/∂v = R_v v + S_v\,\mathrm{turn}, \qquad
           \mathrm{turn} = (û - v̂) \max(‖u‖, ‖v‖)

are added to the nodes by the last one. Nodes are added to by many pairs at once, in no fixed order: the last digits of
a gradient may differ from one call to the next.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .gpu import _block, _held, _over_rows, _tile
from .gpu_aggregate import products, radii, rows_of, vectors
from .gpu_math import STEP, TINY, asinh, block_of_rows, clip, excess, hold, sinh, turn_of, unrounded

#: Numbers of a node: n = ‖u‖, 1/n (at the origin 0), sinh r, cosh r, sinh r/n, r coth r − 1 and tanh(r/2)/n; side by
#: side, and room for one more, so that none lies across two lines of memory.
ENDS = tl.constexpr(8)
#: Sums of a pair: ‖u‖ − ‖v‖ and ‖û − v̂‖².
SUMS = tl.constexpr(2)
#: Numbers of a pair: o, R_u, S_u, R_v, S_v.
NUMBERS = tl.constexpr(5)
#: Where less than this part is left of ‖u − v‖² without (‖u‖ − ‖v‖)², the rest is taken as ‖turn‖² again.
RADIAL = tl.constexpr(1e-6)
#: Pairs that one program takes where there are no coordinates, one to a thread: with two, the numbers of both need so
#: many registers that few programs run at once (`tangent_slopes` took 39 instead of 30 µs on Amazon).
TAKEN = 128
#: Larger squares count as this one, with gradient 0.
LARGEST_SQUARE = tl.constexpr(1e30)


@triton.jit(do_not_specialize=["rows", "per_beta"])
def end_numbers(
    u_ptr, beta_ptr, out_ptr, rows, per_beta, d: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr
):
    """Numbers of nodes ``(R, ENDS)``."""
    row, there, place, inside = block_of_rows(tl.program_id(0), rows, d, BLOCK_R, BLOCK_D)
    out_ptr += row.to(tl.int64) * ENDS
    n, root, s, stretch = radii(u_ptr + place, inside, beta_ptr + row // per_beta, out_ptr, there)
    cosh = tl.sqrt(1 + s * s)
    tl.store(out_ptr, n, there)
    near = n <= TINY  # what is no number, or infinite, is not near, and has no direction
    tl.store(out_ptr + 1, tl.where(near, 0.0, 1 / tl.where(near, 1.0, n) + (n - n)), there)
    tl.store(out_ptr + 2, s, there)
    tl.store(out_ptr + 3, cosh, there)
    tl.store(out_ptr + 4, stretch, there)
    tl.store(out_ptr + 5, excess(clip(n / root), cosh / tl.maximum(s, TINY)), there)
    tl.store(out_ptr + 6, stretch / (1 + cosh), there)


@triton.jit
def these(pairs_ptr, count, pairs_step, side_step, BLOCK_P: tl.constexpr):
    """A program's model, its pairs, which of them there are, and their two ends."""
    m = tl.program_id(1).to(tl.int64)
    p = tl.program_id(0).to(tl.int64) * BLOCK_P + tl.arange(0, BLOCK_P)
    there = p < count
    pairs_ptr += m * pairs_step + p
    i, j = tl.load(pairs_ptr, there, 0), tl.load(pairs_ptr + side_step, there, 0)
    return m, p, there, i.to(tl.int64), j.to(tl.int64)


@triton.jit(do_not_specialize=["rows", "cols", "count", "pairs_step", "side_step"])
def pair_sums(
    x_ptr, x_ends_ptr, y_ptr, y_ends_ptr, pairs_ptr, sums_ptr, rows, cols, count, pairs_step, side_step,
    D: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Sums over coordinates of pairs of x ``(M, rows, D)`` and y ``(M, cols, D)``: ``(M, SUMS, P)``.

    ‖û − v̂‖² = (‖u − v‖² − (‖u‖ − ‖v‖)²)/‖u‖‖v‖ takes less than ‖turn‖² does, and doubles have digits to spare; only
    where u and v lie on almost the same ray too few of them are left.
    """
    m, p, there, i, j = these(pairs_ptr, count, pairs_step, side_step, BLOCK_P)
    x_ptr += m * rows * D
    y_ptr += m * cols * D
    step: tl.constexpr = min(BLOCK_D, STEP)
    c, none = tl.arange(0, step), tl.zeros([BLOCK_P, step], tl.float64)
    squares, apart = none, none
    for at in tl.static_range(0, BLOCK_D, step):
        u, v = vectors(x_ptr, i, there, at + c, D), vectors(y_ptr, j, there, at + c, D)
        squares, apart = squares + (u - v) * (u + v), apart + (u - v) * (u - v)
    x_ends_ptr += (m * rows + i) * ENDS
    y_ends_ptr += (m * cols + j) * ENDS
    n_u, inverse_u = tl.load(x_ends_ptr, there, 0.0), tl.load(x_ends_ptr + 1, there, 0.0)
    n_v, inverse_v = tl.load(y_ends_ptr, there, 0.0), tl.load(y_ends_ptr + 1, there, 0.0)
    d_n, whole = tl.sum(squares, 1) / tl.maximum(n_u + n_v, TINY), tl.sum(apart, 1)
    left, inverse = whole - d_n * d_n, inverse_u * inverse_v
    turned = tl.where(inverse == 0, 1.0, left * inverse)  # the origin has no direction, and counts as 0
    again = there & (left < RADIAL * whole) & (inverse > 0)
    if tl.max(again.to(tl.int32), 0) > 0:
        o, turns = overlap(d_n, n_u, inverse_u, n_v, inverse_v)[:, None], none
        for at in tl.static_range(0, BLOCK_D, step):
            u, v = vectors(x_ptr, i, there, at + c, D), vectors(y_ptr, j, there, at + c, D)
            turn = unrounded(turn_of(u, v, o), u, v)
            turns += turn * turn
        longer = tl.minimum(inverse_u, inverse_v)
        turned = tl.where(again, tl.sum(turns, 1) * longer * longer, turned)
    sums_ptr += m * SUMS * count + p
    tl.store(sums_ptr, d_n, there)
    tl.store(sums_ptr + count, turned, there)


@triton.jit
def overlap(d_n, n_u, inverse_u, n_v, inverse_v):
    """o of pairs, see :func:`turn_of`: (‖u‖ − ‖v‖)/min(‖u‖, ‖v‖), or 0 at the origin."""
    return d_n * tl.where(n_u >= n_v, inverse_v, inverse_u)


@triton.jit
def in_turn(o):
    """Numbers of u and v in turn."""
    return 1 + tl.where(o < 0, -o, 0.0), -1 - tl.where(o > 0, o, 0.0)


@triton.jit
def turn_products(n_u, inverse_u, n_v, inverse_v, turned):
    """turn·u, turn·v and 1 − û·v̂ of pairs, from ‖û − v̂‖²; the origin has no direction, and counts as 0."""
    bend = tl.where((inverse_u == 0) | (inverse_v == 0), 1.0, turned * 0.5)
    longer = tl.maximum(n_u, n_v) * bend
    return longer * n_u, -longer * n_v, bend


@triton.jit
def _legs(sums_ptr, ends_ptr, beta_ptr, m, p, there, i, j, nodes, count):
    """Where the numbers of pairs' ends lie, sinh r_u, sinh r_v, (r_u − r_v)/2 and its sinh, ‖û − v̂‖², √β and t²."""
    mine, its = ends_ptr + (m * nodes + i) * ENDS, ends_ptr + (m * nodes + j) * ENDS
    s_u, s_v = tl.load(mine + 2, there, 0.0), tl.load(its + 2, there, 0.0)
    d_n, turned = tl.load(sums_ptr + p, there, 0.0), tl.load(sums_ptr + count + p, there, 0.0)
    root = tl.sqrt(tl.load(beta_ptr + m).to(tl.float64))
    angle = clip(d_n * (1 / root)) * 0.5
    return mine, its, s_u, s_v, angle, sinh(angle), turned, root, root * root * s_u * s_v * turned


@triton.jit(do_not_specialize=["nodes", "count", "pairs_step", "side_step"])
def pair_values(
    sums_ptr, ends_ptr, pairs_ptr, beta_ptr, out_ptr, nodes, count, pairs_step, side_step,
    LORENTZ: tl.constexpr, BLOCK_P: tl.constexpr,
):  # fmt: skip
    """d_L² of pairs if ``LORENTZ``, else d_H²."""
    m, p, there, i, j = these(pairs_ptr, count, pairs_step, side_step, BLOCK_P)
    sums_ptr += m * SUMS * count
    _u, _v, _su, _sv, _angle, half, _t, root, tt = _legs(sums_ptr, ends_ptr, beta_ptr, m, p, there, i, j, nodes, count)
    square = 4 * root * root * half * half + tt
    if not LORENTZ:
        arc = 2 * root * asinh(tl.sqrt(square) * (0.5 / root))
        square = arc * arc
    tl.store(out_ptr + m * count + p, tl.where(square > LARGEST_SQUARE, LARGEST_SQUARE, square), there)


@triton.jit
def _coefficients(end_ptr, inverse, there, its_s, dot, along, across, turned, root, scale):
    """R and S of one end of pairs, and r coth r − 1.

    ``dot`` is its product with turn, ``along`` a cosh((r_u − r_v)/2), ``across`` √β/max(‖u‖, ‖v‖).
    """
    # a turn that is rounding is none: far out the product with both sinh would make much of it
    sideways = tl.where(turned == 0, 0.0, 2 * scale * (root * tl.load(end_ptr + 4, there, 0.0)) * its_s * across)
    lift = root * tl.load(end_ptr + 3, there, 0.0) * its_s * turned * 0.5
    radial = 2 * scale * (along + lift) * inverse
    # only the part of turn across the end counts
    return radial - sideways * (dot * inverse * inverse), sideways, tl.load(end_ptr + 5, there, 0.0)


@triton.jit(do_not_specialize=["nodes", "count", "pairs_step", "side_step"])
def pair_slopes(
    sums_ptr, ends_ptr, pairs_ptr, beta_ptr, grad_ptr, numbers_ptr, share_ptr, nodes, count, pairs_step, side_step,
    LORENTZ: tl.constexpr, BLOCK_P: tl.constexpr,
):  # fmt: skip
    """Numbers for :func:`pair_pull` ``(M, NUMBERS, P)``, and shares of the gradient in β by program."""
    m, p, there, i, j = these(pairs_ptr, count, pairs_step, side_step, BLOCK_P)
    sums_ptr += m * SUMS * count
    mine, its, s_u, s_v, angle, half, turned, root, tt = _legs(
        sums_ptr, ends_ptr, beta_ptr, m, p, there, i, j, nodes, count
    )
    a = 2 * root * half
    square = a * a + tt
    scale = tl.load(grad_ptr + m * count + p, there, 0.0).to(tl.float64)
    bent = tl.zeros_like(scale)  # the part of the gradient in β that does not come by way of d_L
    if LORENTZ:
        scale = tl.where(square < LARGEST_SQUARE, scale, 0.0)
    else:
        t = tl.sqrt(square) * (0.5 / root)
        arc = asinh(t)
        # ∂d_H²/∂d_L²
        slope = tl.where(t > 1e-5, arc / (tl.maximum(t, 1e-5) * tl.sqrt(1 + t * t)), 1.0)
        bent = 4 * scale * (arc * arc - t * t * slope)
        scale *= slope
    n_u, inverse_u = tl.load(mine, there, 0.0), tl.load(mine + 1, there, 0.0)
    n_v, inverse_v = tl.load(its, there, 0.0), tl.load(its + 1, there, 0.0)
    across = root * tl.where(n_u >= n_v, inverse_u, inverse_v)
    cosh = tl.sqrt(1 + half * half)
    along = a * cosh
    dot_u, dot_v, _bend = turn_products(n_u, inverse_u, n_v, inverse_v, turned)
    of_u, across_u, bent_u = _coefficients(mine, inverse_u, there, s_v, dot_u, along, across, turned, root, scale)
    of_v, across_v, bent_v = _coefficients(its, inverse_v, there, s_u, -dot_v, -along, across, turned, root, scale)
    of_beta = a * a * excess(tl.abs(angle), cosh / tl.maximum(tl.abs(half), TINY)) + tt * (bent_u + bent_v) * 0.5
    share = tl.where(there, bent - scale * of_beta * (1 / (root * root)), 0.0)
    numbers_ptr += m * NUMBERS * count + p
    tl.store(numbers_ptr, overlap(tl.load(sums_ptr + p, there, 0.0), n_u, inverse_u, n_v, inverse_v), there)
    tl.store(numbers_ptr + count, of_u, there)  # of tiny vectors larger than a float32, its product with them is not
    tl.store(numbers_ptr + 2 * count, hold(across_u), there)
    tl.store(numbers_ptr + 3 * count, of_v, there)
    tl.store(numbers_ptr + 4 * count, hold(-across_v), there)
    tl.store(share_ptr + m * tl.num_programs(0) + tl.program_id(0), tl.sum(hold(share), 0))


@triton.jit
def one_end(i, there):
    """Whether all pairs of a program begin at one node, as many do where they are sorted."""
    i = i.to(tl.int32)
    return tl.min(tl.where(there, i, 2147483647), 0) == tl.max(i, 0)  # what is not there has i = 0


@triton.jit
def add_to_ends(grad_ptr, i, j, there, alike, c, to_u, to_v, D: tl.constexpr):
    """Add some coordinates of vectors ``(P, C)`` to both nodes of pairs; those of one node are added up before."""
    inside = there[:, None] & (c < D)
    tl.atomic_add(grad_ptr + j[:, None] * D + c, to_v, inside, sem="relaxed")
    if alike:
        tl.atomic_add(grad_ptr + tl.max(i, 0) * D + c, tl.sum(to_u, 0), c < D, sem="relaxed")
    else:
        tl.atomic_add(grad_ptr + i[:, None] * D + c, to_u, inside, sem="relaxed")


@triton.jit(do_not_specialize=["nodes", "count", "pairs_step", "side_step"])
def pair_pull(
    z_ptr, pairs_ptr, numbers_ptr, grad_ptr, nodes, count, pairs_step, side_step,
    D: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Add the gradients of pairs to those of their nodes ``(M, N, D)``."""
    m, p, there, i, j = these(pairs_ptr, count, pairs_step, side_step, BLOCK_P)
    z_ptr += m * nodes * D
    grad_ptr += m * nodes * D
    numbers_ptr += m * NUMBERS * count + p
    o = tl.load(numbers_ptr, there, 0.0)[:, None]
    numbers_ptr += count
    of_u, across_u = tl.load(numbers_ptr, there, 0.0)[:, None], tl.load(numbers_ptr + count, there, 0.0)[:, None]
    numbers_ptr += 2 * count
    of_v, across_v = tl.load(numbers_ptr, there, 0.0)[:, None], tl.load(numbers_ptr + count, there, 0.0)[:, None]
    alike = one_end(i, there)
    step: tl.constexpr = min(BLOCK_D, STEP)
    for at in tl.static_range(0, BLOCK_D, step):
        c = at + tl.arange(0, step)
        u, v = vectors(z_ptr, i, there, c, D), vectors(z_ptr, j, there, c, D)
        turn = turn_of(u, v, o)
        to_u, to_v = of_u * u + across_u * turn, of_v * v + across_v * turn
        add_to_ends(grad_ptr, i, j, there, alike, c, hold(to_u.to(tl.float32)), hold(to_v.to(tl.float32)), D)


@triton.jit(do_not_specialize=["nodes", "count", "pairs_step", "side_step"])
def flat_squares(
    z_ptr, pairs_ptr, out_ptr, nodes, count, pairs_step, side_step,
    D: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """‖u − v‖² of pairs ``(M, P)``, in single precision: no difference of floats loses more than its last digit."""
    m, p, there, i, j = these(pairs_ptr, count, pairs_step, side_step, BLOCK_P)
    z_ptr += m * nodes * D
    step: tl.constexpr = min(BLOCK_D, STEP)
    total = tl.zeros([BLOCK_P, step], tl.float32)
    for at in tl.static_range(0, BLOCK_D, step):
        c = at + tl.arange(0, step)
        delta = rows_of(z_ptr, i, there, c, D) - rows_of(z_ptr, j, there, c, D)
        total += delta * delta
    tl.store(out_ptr + m * count + p, tl.sum(total, 1), there)


@triton.jit(do_not_specialize=["nodes", "count", "pairs_step", "side_step"])
def flat_pull(
    z_ptr, pairs_ptr, scale_ptr, grad_ptr, nodes, count, pairs_step, side_step,
    D: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Add ±2 scale (u − v) of pairs to their nodes ``(M, N, D)``."""
    m, p, there, i, j = these(pairs_ptr, count, pairs_step, side_step, BLOCK_P)
    z_ptr += m * nodes * D
    grad_ptr += m * nodes * D
    scale = 2 * tl.load(scale_ptr + m * count + p, there, 0.0)[:, None]
    alike = one_end(i, there)
    step: tl.constexpr = min(BLOCK_D, STEP)
    for at in tl.static_range(0, BLOCK_D, step):
        c = at + tl.arange(0, step)
        pull = scale * (rows_of(z_ptr, i, there, c, D) - rows_of(z_ptr, j, there, c, D))
        add_to_ends(grad_ptr, i, j, there, alike, c, pull, -pull, D)


@triton.jit(do_not_specialize=["rows", "cols", "count", "pairs_step", "side_step"])
def entry_products(
    g_ptr, y_ptr, pairs_ptr, out_ptr, rows, cols, count, pairs_step, side_step,
    D: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """g_i·v_j of entries ``(M, E)``."""
    m, p, there, i, j = these(pairs_ptr, count, pairs_step, side_step, BLOCK_P)
    product = products(g_ptr + m * rows * D, i, y_ptr + m * cols * D, j, there, D, BLOCK_D)
    tl.store(out_ptr + m * count + p, product, there)


@triton.jit(do_not_specialize=["rows", "cols", "count", "pairs_step", "side_step"])
def flat_products(
    g_ptr, y_ptr, pairs_ptr, out_ptr, rows, cols, count, pairs_step, side_step,
    D: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """The same in single precision."""
    m, p, there, i, j = these(pairs_ptr, count, pairs_step, side_step, BLOCK_P)
    g_ptr += m * rows * D
    y_ptr += m * cols * D
    step: tl.constexpr = min(BLOCK_D, STEP)
    total = tl.zeros([BLOCK_P, step], tl.float32)
    for at in tl.static_range(0, BLOCK_D, step):
        c = at + tl.arange(0, step)
        total += rows_of(g_ptr, i, there, c, D) * rows_of(y_ptr, j, there, c, D)
    tl.store(out_ptr + m * count + p, tl.sum(total, 1), there)


class PairCall:
    """What the kernels of one call share.

    Args:
        pairs: rows and columns ``(M, 2, P)``; one list for all models has the step 0.
        d: width of the vectors.
    """

    def __init__(self, pairs: Tensor, d: int) -> None:
        self.pairs = pairs if pairs.stride(2) == 1 else pairs.contiguous()
        self.models, _, self.count = pairs.shape
        self.d, self.sizes = d, (self.count, self.pairs.stride(0), self.pairs.stride(1))

    def numbers(self, count: int) -> Tensor:
        """Room for so many doubles of every pair."""
        return torch.empty(self.models, count, self.count, dtype=torch.float64, device=self.pairs.device)

    def ends(self, x: Tensor, beta: Tensor) -> Tensor:
        """Numbers of nodes ``(M, N, ENDS)``."""
        out = torch.empty(*x.shape[:2], ENDS.value, dtype=torch.float64, device=x.device)
        _over_rows(end_numbers, x, beta, x, beta, out, num_warps=1)
        return out

    def sums(self, x: Tensor, x_ends: Tensor, y: Tensor, y_ends: Tensor) -> Tensor:
        """See :func:`pair_sums`."""
        out = self.numbers(SUMS.value)
        given = (x, x_ends, y, y_ends, self.pairs, out, x.size(1), y.size(1))
        self._by_coordinates(pair_sums, *given, tile=_tile(self.d, 32, 512))
        return out

    def programs(self, tile: int) -> tuple[int, int]:
        """How many there are, for so many pairs each."""
        return -(-self.count // tile), self.models

    def take_products(self, kernel: Any, *args: Any) -> None:
        """Run a kernel that takes one sum over coordinates."""
        self._by_coordinates(kernel, *args, tile=32)

    def add_up(self, kernel: Any, *args: Any) -> None:
        """Run a kernel that adds vectors to nodes."""
        self._by_coordinates(kernel, *args, tile=max(8, _tile(self.d, 32, 256)))

    def _by_coordinates(self, kernel: Any, *args: Any, tile: int, **constants: Any) -> None:
        """Run a kernel over coordinates; a warp takes so many pairs at a time."""
        if self.count:
            constants |= {"D": self.d, "BLOCK_P": tile, "BLOCK_D": _block(self.d)}
            kernel[self.programs(tile)](*args, *self.sizes, **constants, num_warps=1)

    def by_pairs(self, kernel: Any, *args: Any, **constants: Any) -> None:
        """Run a kernel that looks at no vector."""
        if self.count:
            kernel[self.programs(TAKEN)](*args, *self.sizes, BLOCK_P=TAKEN, **constants)

    def shares(self) -> Tensor:
        """Room for a double of each program of :meth:`by_pairs`."""
        return torch.zeros(self.models, self.programs(TAKEN)[0], dtype=torch.float64, device=self.pairs.device)


def entry_call(ends: Tensor, weight: Tensor, d: int) -> tuple[PairCall, Tensor]:
    """The call for a graph's entries ``(2, E)``, shared by all models, and their weights ``(M, E)`` with dense rows."""
    weight = weight if weight.stride(1) == 1 else weight.contiguous()
    return PairCall(ends.expand(weight.size(0), *ends.shape), d), weight


def pair_squares(z: Tensor, pairs: Tensor, beta: Tensor, lorentz: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Squares ``(M, P)``, and what the gradient needs; see :mod:`hyperboloid.kernels.pairs`."""
    call, z, beta = PairCall(pairs, z.size(2)), z.contiguous(), beta.contiguous()
    ends, out = call.ends(z, beta), z.new_empty(call.models, call.count)
    sums = call.sums(z, ends, z, ends)
    call.by_pairs(pair_values, sums, ends, call.pairs, beta, out, z.size(1), LORENTZ=lorentz)
    return out, sums, ends


def pair_gradients(
    grad: Tensor, z: Tensor, pairs: Tensor, beta: Tensor, lorentz: bool, sums: Tensor, ends: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients in z and β."""
    call, z, beta = PairCall(pairs, z.size(2)), z.contiguous(), beta.contiguous()
    numbers, shares, out = call.numbers(NUMBERS.value), call.shares(), torch.zeros_like(z)
    given = (sums, ends, call.pairs, beta, grad.contiguous(), numbers, shares, z.size(1))
    call.by_pairs(pair_slopes, *given, LORENTZ=lorentz)
    call.add_up(pair_pull, z, call.pairs, numbers, out, z.size(1))
    return out, _held(shares.sum(1), beta)


def flat_pair_squares(z: Tensor, pairs: Tensor) -> Tensor:
    """‖u − v‖² ``(M, P)``."""
    call, z = PairCall(pairs, z.size(2)), z.contiguous()
    out = z.new_empty(call.models, call.count)
    call.take_products(flat_squares, z, call.pairs, out, z.size(1))
    return out


def flat_pair_gradients(grad: Tensor, z: Tensor, pairs: Tensor) -> Tensor:
    """Gradient in z."""
    call, z = PairCall(pairs, z.size(2)), z.contiguous()
    out = torch.zeros_like(z)
    call.add_up(flat_pull, z, call.pairs, grad.contiguous(), out, z.size(1))
    return out
