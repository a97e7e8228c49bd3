"""Functions that the Triton kernels share: only exp, log and sqrt are used, which its interpreter has too.

Kernels multiply by 0.5: a division by 2 would be compiled as a division, a dozen instructions.
"""

from __future__ import annotations

import triton
import triton.language as tl

# kernels read module constants only as constexpr
CUT = tl.constexpr(300.0)
TINY = tl.constexpr(1e-100)
LARGEST = tl.constexpr(3e35)  # gradients stay below: a float32 could hold a thousand times more
ONE_RAY = tl.constexpr(2.0**-49)  # see `cpu_loops.py`
#: Coordinates of vectors that are taken at a time where something is computed once a vector, or summed over them. The
#: threads of a warp are laid over coordinates first, four to a thread: with few of them, few threads do the same.
STEP = tl.constexpr(16)


@triton.jit
def sinh(x):
    """sinh x, by its series near 0."""
    s = x * x
    series = 1 + s * (1 / 72) * (1 + s * (1 / 110) * (1 + s * (1 / 156)))
    series = x * (1 + s * (1 / 6) * (1 + s * (1 / 20) * (1 + s * (1 / 42) * series)))
    e = tl.exp(tl.minimum(tl.maximum(x, -2 * CUT), 2 * CUT))
    return tl.where(s < 0.25, series, (e - 1 / e) * 0.5)


@triton.jit
def log1p(y):
    """log(1 + y) for y ≥ 0, corrected for the rounding of 1 + y."""
    w = 1 + y
    exact = w == 1
    return tl.where(exact, y, tl.log(w) * (y / tl.where(exact, 1, w - 1)))


@triton.jit
def asinh(x):
    """For x ≥ 0: log(1 + y) with y = x + x²/(1 + √(1 + x²))."""
    return log1p(x + x / (1 + tl.sqrt(1 + x * x)) * x)


@triton.jit
def excess(x, coth):
    """x·coth(x) − 1 for x ≥ 0; coth(x) is given, for whoever needs this knows sinh x, and an exponential costs more."""
    s = tl.minimum(x * x, 0.09)
    series = 1 - s * (1 / 10) * (1 - s * (10 / 99) * (1 - s * (691 / 6825)))
    series = s * (1 / 3) * (1 - s * (1 / 15) * (1 - s * (2 / 21) * series))
    return tl.where(x < 0.3, series, x * coth - 1)


@triton.jit
def coth_of(s):
    """coth(x) for x ≥ 0, from s = sinh x."""
    return tl.sqrt(1 + s * s) / tl.maximum(s, TINY)


@triton.jit
def decay(sinh_r):
    """e^−r from sinh r."""
    return 1 / (sinh_r + tl.sqrt(1 + sinh_r * sinh_r))


@triton.jit
def hold(x):
    """x, at most LARGEST in size; what is no number stays none, which tl.minimum would hide."""
    return tl.where(x > LARGEST, LARGEST, tl.where(x < -LARGEST, -LARGEST, x))


@triton.jit
def clip(x):
    """x, at most CUT in size."""
    return tl.minimum(tl.maximum(x, -CUT), CUT)


@triton.jit
def turn_of(u, v, o):
    """turn = (û − v̂)·max(‖u‖, ‖v‖) of pairs ``(…, D)``: u − v less o times the shorter one, u if o is negative."""
    return (u - v) - o * tl.where(o < 0, u, v)


@triton.jit
def block_of_rows(index, rows, d, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr):
    """Row numbers of this program, which of them there are, and the places of their coordinates."""
    row = index * BLOCK_R + tl.arange(0, BLOCK_R)
    c = tl.arange(0, BLOCK_D)
    there = row < rows
    return row, there, row[:, None].to(tl.int64) * d + c[None, :], there[:, None] & (c < d)[None, :]


@triton.jit
def some_pieces(pieces_ptr, count, BLOCK_R: tl.constexpr):
    """A program's model, its pieces of rows or columns (:class:`hyperboloid.kernels.adjacency.Side`) and their nodes.

    Then which of the pieces there are, their starts and ends ``(R, 1)``, and the length of the longest.
    """
    piece = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    there = piece < count
    pieces_ptr += 3 * piece
    node = tl.load(pieces_ptr, there, 0).to(tl.int64)
    start, stop = tl.load(pieces_ptr + 1, there, 0), tl.load(pieces_ptr + 2, there, 0)
    return tl.program_id(1).to(tl.int64), piece, node, there, start[:, None], stop[:, None], tl.max(stop - start, 0)


@triton.jit
def unrounded(turn, u, v):
    """turn of vectors that had single precision, 0 where it is rounding; what is no number stays none."""
    return tl.where(tl.abs(turn) <= ONE_RAY * tl.maximum(tl.abs(u), tl.abs(v)), 0.0, turn)
