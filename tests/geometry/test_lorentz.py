"""The models: against geoopt in float64, and by the properties that define them."""

import math

import geoopt
import pytest
import torch

from hyperboloid.errors import InputError
from hyperboloid.geometry import Euclidean, Klein, Lorentz, PoincareBall

from . import reference

BETAS = (0.3, 1.0, 7.0)


@pytest.fixture(params=BETAS)
def beta(request):
    return request.param


def normal(beta, seed, n=50, d=5, radius=3.0):
    """Random normal coordinates with radii spread over (0, radius)."""
    r = torch.linspace(0.02, radius, n, dtype=torch.float64).unsqueeze(-1)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    return math.sqrt(beta) * r[order] * reference.sphere(n, d, seed)


def tangent(space, x, seed):
    """A random tangent vector at x: one at the origin, carried there by geoopt's projection."""
    v = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return geoopt.Lorentz(k=space.beta(x)).proju(x, v) / x.norm(dim=-1, keepdim=True)


def lift(v):
    return torch.cat([torch.zeros_like(v[..., :1]), v], dim=-1)


def same(a, b, rtol=1e-9, atol=1e-10):
    torch.testing.assert_close(a, b, rtol=rtol, atol=atol)


def geoopt_ball(beta):
    return geoopt.PoincareBall(c=torch.tensor(1 / beta, dtype=torch.float64))


# ---- against geoopt


def test_against_geoopt_lorentz(beta):
    space, theirs = Lorentz(beta), geoopt.Lorentz(k=torch.tensor(beta, dtype=torch.float64))
    v, w = normal(beta, 1), normal(beta, 2)
    x, y = space.exp0(v), space.exp0(w)
    same(x, theirs.expmap0(lift(v)))
    same(lift(space.log0(x)), theirs.logmap0(x))
    same(space.dist(x, y), theirs.dist(x, y), rtol=1e-8)
    same(space.log(x, y), theirs.logmap(x, y), rtol=1e-7)
    t = tangent(space, x, 3)
    same(space.tangent_norm(x, t), theirs.norm(t), rtol=1e-8)
    same(space.exp(x, t), theirs.expmap(x, t), rtol=1e-8)
    same(space.transport(x, y, t), theirs.transp(x, y, t), rtol=1e-7, atol=1e-8)


def test_against_geoopt_ball(beta):
    ball, theirs = PoincareBall(beta), geoopt_ball(beta)
    v, w = normal(beta, 1), normal(beta, 2)
    p, q = ball.from_normal(v), ball.from_normal(w)
    same(ball.exp0(v / 2), theirs.expmap0(v / 2))
    same(ball.log0(p), theirs.logmap0(p))
    same(ball.dist(p, q), theirs.dist(p, q))
    same(ball.sqdist(p, q), theirs.dist(p, q) ** 2)
    same(ball.add(p, q), theirs.mobius_add(p, q))


def test_log_at_is_the_gyrovector_difference(beta):
    """⊖p ⊕ q on the ball, with geoopt's Möbius addition."""
    ball, theirs = PoincareBall(beta), geoopt_ball(beta)
    v, w = normal(beta, 1), normal(beta, 2)
    p, q = ball.from_normal(v), ball.from_normal(w)
    same(ball.from_normal(ball.normal.log_at(v, w)), theirs.mobius_add(-p, q))
    same(ball.from_normal(ball.normal.exp_at(v, w)), theirs.mobius_add(p, q))


# ---- defining properties


def test_distance_is_a_metric(beta):
    space = Lorentz(beta).normal
    u, v, w = (normal(beta, seed) for seed in (1, 2, 3))
    same(space.dist(u, v), space.dist(v, u), rtol=1e-14)
    assert (space.dist(u, u) == 0).all()
    assert (space.dist(u, v) > 0).all()
    assert (space.dist(u, w) <= (space.dist(u, v) + space.dist(v, w)) * (1 + 1e-14)).all()
    same(space.dist(torch.zeros_like(u), v), v.norm(dim=-1), rtol=1e-14)


def test_origin(beta):
    space = Lorentz(beta)
    o = space.origin(3, torch.zeros(0, dtype=torch.float64))
    same(o, torch.tensor([math.sqrt(beta), 0, 0, 0], dtype=torch.float64))
    assert (space.log0(o) == 0).all()


def test_exp_and_log_are_inverse(beta):
    space = Lorentz(beta)
    v, w = normal(beta, 1), normal(beta, 2)
    x, y = space.exp0(v), space.exp0(w)
    same(space.log0(x), v, rtol=1e-14, atol=1e-14)
    assert space.check(x, tol=1e-14)
    same(space.exp(x, space.log(x, y)), y)
    t = tangent(space, x, 3)
    same(space.log(x, space.exp(x, t)), t)
    same(space.normal.exp_at(v, space.normal.log_at(v, w)), w)
    same(space.normal.log_at(v, space.normal.exp_at(v, w)), w)


def test_log_at_is_log_carried_to_the_origin(beta):
    space = Lorentz(beta)
    v, w = normal(beta, 1), normal(beta, 2)
    x, y = space.exp0(v), space.exp0(w)
    o = space.origin(5, x).expand_as(x)
    same(lift(space.normal.log_at(v, w)), space.transport(x, o, space.log(x, y)))
    same(space.normal.log_at(v, w).norm(dim=-1), space.normal.dist(v, w))
    assert (space.normal.log_at(v, v).norm(dim=-1) < 1e-15 * math.sqrt(beta)).all()
    same(space.normal.log_at(torch.zeros_like(v), w), w, rtol=1e-14)
    same(space.normal.log_at(v, torch.zeros_like(v)), -v, rtol=1e-14)


def test_transport_is_an_isometry(beta):
    space = Lorentz(beta)
    x, y = space.exp0(normal(beta, 1)), space.exp0(normal(beta, 2))
    s, t = tangent(space, x, 3), tangent(space, x, 4)
    moved_s, moved_t = space.transport(x, y, s), space.transport(x, y, t)
    same(space.inner(y, moved_s), torch.zeros(50, dtype=torch.float64), atol=1e-11)
    same(space.inner(moved_s, moved_t), space.inner(s, t))
    same(space.transport(y, x, moved_s), s)
    same(space.transport(x, y, space.log(x, y)), -space.log(y, x))


def test_isometries_between_the_models(beta):
    space, ball, klein = Lorentz(beta), PoincareBall(beta), Klein(beta)
    v, w = normal(beta, 1), normal(beta, 2)
    x, y = space.exp0(v), space.exp0(w)
    p, k = space.to_poincare(x), space.to_klein(x)
    same(p, ball.from_normal(v))
    same(k, klein.from_normal(v))
    same(ball.to_normal(p), v)
    same(klein.to_normal(k), v)
    same(space.from_poincare(p), x)
    same(space.from_klein(k), x)
    same(k, 2 * p / (1 + p.square().sum(-1, keepdim=True) / beta))  # the textbook's map from ball to ball
    distance = space.dist(x, y)
    same(ball.dist(p, space.to_poincare(y)), distance)
    same(klein.dist(k, space.to_klein(y)), distance)


def test_check_tells_points_from_others(beta):
    space = Lorentz(beta)
    x = space.exp0(normal(beta, 1).float())
    assert space.check(x)
    assert space.check(space.exp0(30 * math.sqrt(beta) * reference.sphere(5, 3, 0, torch.float32)))
    assert not space.check(x * 1.001)
    assert not space.check(-x)
    assert not Lorentz(1.1 * beta).check(x)
    assert not space.check(torch.full_like(x, math.nan))


@pytest.mark.parametrize("bad", [0, -1.0, math.nan])
def test_beta_must_be_positive(bad):
    with pytest.raises(InputError):
        Lorentz(bad)


# ---- flat space


def test_euclidean():
    flat = Euclidean()
    u, v = reference.sphere(6, 3, 1), reference.sphere(6, 3, 2)
    weight = torch.tensor([1.0, 2, 3, 4, 5, 0], dtype=torch.float64)
    assert flat.normal is flat
    assert torch.equal(flat.exp0(u), u)
    assert torch.equal(flat.log0(u), u)
    same(flat.dist(u, v), (u - v).norm(dim=-1))
    same(flat.sqdist(u, v), flat.dist(u, v) ** 2)
    same(flat.centroid(u), u.mean(0))
    same(flat.centroid(u, weight), weight @ u / 15)
    x = u.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(flat.dist(x, u).sum(), x)
    assert (gradient == 0).all()


def test_hyperbolic_space_becomes_flat():
    """The error falls like 1/β: a hundredfold β leaves a hundredth of it."""
    u, v = reference.sphere(20, 3, 1), 2 * reference.sphere(20, 3, 2)

    def errors(beta):
        space, flat = Lorentz(beta).normal, Euclidean()
        return torch.stack(
            [
                (space.dist(u, v) - flat.dist(u, v)).abs().max(),
                (space.sqdist(u, v) - flat.sqdist(u, v)).abs().max(),
                (space.lorentz_sqdist(u, v) - flat.sqdist(u, v)).abs().max(),
                (space.centroid(u) - flat.centroid(u)).norm(),
                (space.log_at(u, v) - (v - u)).norm(dim=-1).max(),
            ]
        )

    small, large = errors(1e4), errors(1e2)
    assert (small < 1e-3).all()
    same(large / small, torch.full((5,), 100.0, dtype=torch.float64), rtol=0.05)
