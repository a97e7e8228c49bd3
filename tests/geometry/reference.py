"""The geometry from its definitions in Minkowski space, with 50 digits, and the points that the tests look at."""

import math

import torch
from mpmath import mp, mpf

mp.dps = 50


def numbers(v):
    """A torch vector as exact mpmath numbers."""
    return [mpf(x) for x in v.detach().double().tolist()]


def to_tensor(v):
    return torch.tensor([float(x) for x in v], dtype=torch.float64)


def norm(v):
    return mp.sqrt(mp.fdot(v, v))


def inner(x, y):
    return mp.fdot(x[1:], y[1:]) - x[0] * y[0]


def exp0(v, beta):
    root, length = mp.sqrt(beta), norm(v)
    stretch = root * mp.sinh(length / root) / length if length else mpf(1)
    return [root * mp.cosh(length / root)] + [stretch * a for a in v]


def log0(x, beta):
    root, length = mp.sqrt(beta), norm(x[1:])
    stretch = root * mp.asinh(length / root) / length if length else mpf(1)
    return [stretch * a for a in x[1:]]


def lorentz_sqdist(u, v, beta):
    return -2 * beta - 2 * inner(exp0(u, beta), exp0(v, beta))


def dist(u, v, beta):
    return mp.sqrt(beta) * mp.acosh(-inner(exp0(u, beta), exp0(v, beta)) / beta)


def sqdist(u, v, beta):
    return dist(u, v, beta) ** 2


def centroid(members, weights, beta):
    """log_0 of √β s/|‖s‖_L| with s = Σ w x (Theorem 4.2)."""
    points = [exp0(v, beta) for v in members]
    s = [mp.fdot(weights, column) for column in zip(*points, strict=True)]
    shrink = mp.sqrt(beta) / mp.sqrt(-inner(s, s))
    return log0([shrink * a for a in s], beta)


def log_at(u, v, beta):
    """log_x(y) (Eq. 4), parallel transported from x to the origin o: t + ⟨o, t⟩(x + o)/(β − ⟨x, o⟩)."""
    x, y, o = exp0(u, beta), exp0(v, beta), exp0([mpf(0)] * len(u), beta)
    tangent = [b + inner(x, y) / beta * a for a, b in zip(x, y, strict=True)]
    stretch = dist(u, v, beta) / mp.sqrt(inner(tangent, tangent))
    tangent = [stretch * a for a in tangent]
    slide = inner(o, tangent) / (beta - inner(x, o))
    return [t + slide * (a + b) for t, a, b in zip(tangent, x, o, strict=True)][1:]


def gradient(f, u, v, beta):
    """Derivatives of f(u, v, β) in every coordinate and in β, by differences of 10⁻³⁰ with 100 digits."""
    flat = [*u, *v, beta]
    d, h = len(u), mpf(10) ** -30

    def along(i, step):
        moved = [x + step * (i == k) for k, x in enumerate(flat)]
        return f(moved[:d], moved[d:-1], moved[-1])

    with mp.workdps(100):
        slopes = [(along(i, h) - along(i, -h)) / (2 * h) for i in range(len(flat))]
    return to_tensor(slopes[:d]), to_tensor(slopes[d:-1]), float(slopes[-1])


def sphere(n, d, seed, dtype=torch.float64):
    """n random unit vectors ``(n, d)``."""
    v = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (v / v.norm(dim=-1, keepdim=True)).to(dtype)


def around(radius, beta, n, d, seed, apart=0.25):
    """n pairs (u, v) in float64: ‖u‖ = radius and d_H(u, v) = apart, both in units of √β."""
    from hyperboloid.geometry import Lorentz

    root = math.sqrt(beta)
    u = radius * root * sphere(n, d, seed)
    return u, Lorentz(beta).normal.exp_at(u, apart * root * sphere(n, d, seed + 1))
