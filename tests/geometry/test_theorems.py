"""The paper's theorems (4.1 to 4.3) and definitions, as properties of random points, in float64."""

import math

import geoopt
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from hyperboloid.geometry import Klein, Lorentz, PoincareBall

seeds = st.integers(0, 2**31)
betas = st.floats(0.05, 20)
dimensions = st.integers(1, 8)


def for_all(*args, examples=40, **kwargs):
    """hypothesis' ``given``, the same examples in every run."""
    chosen = settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    return lambda test: chosen(given(*args, **kwargs)(test))


def draw(seed, beta, *shape, radius=3.0):
    """Random normal coordinates with radii ‖v‖/√β up to ``radius``, and now and then the origin."""
    generator = torch.Generator().manual_seed(seed)
    v = torch.randn(*shape, generator=generator, dtype=torch.float64)
    r = radius * torch.rand(*shape[:-1], 1, generator=generator, dtype=torch.float64)
    r = torch.where(torch.rand(r.shape, generator=generator) < 0.05, 0, r)
    return v / v.norm(dim=-1, keepdim=True) * r * math.sqrt(beta)


def gaussian(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def same(a, b, rtol=1e-10, atol=1e-12):
    torch.testing.assert_close(a, b, rtol=rtol, atol=atol)


def tangent_at_origin(space, v):
    """(0, v), and that it satisfies the constraint ⟨o, (0, v)⟩_L = 0."""
    lifted = torch.cat([torch.zeros_like(v[..., :1]), v], dim=-1)
    assert (space.inner(space.origin(v.size(-1), v), lifted) == 0).all()
    return lifted


# ---- Theorem 4.1 and Definition 4.2


@for_all(seeds, betas, dimensions, dimensions)
def test_matrix_product_is_the_mobius_product(seed, beta, d, m):
    space, ball = Lorentz(beta), PoincareBall(beta)
    x, matrix = space.exp0(draw(seed, beta, 5, d)), gaussian(seed, m, d) / math.sqrt(d)
    same(space.to_poincare(space.matvec(matrix, x)), ball.matvec(matrix, space.to_poincare(x)))


@for_all(seeds, betas, dimensions, dimensions)
def test_mobius_product_is_that_of_the_proof(seed, beta, d, m):
    """1/√α tanh(‖Mp‖/‖p‖ artanh(√α‖p‖)) Mp/‖Mp‖ (appendix B.1; Ganea et al.)."""
    p, matrix = PoincareBall(beta).from_normal(draw(seed, beta, 5, d)), gaussian(seed, m, d) / math.sqrt(d)
    p = p[p.norm(dim=-1) > 0]
    size, moved = p.norm(dim=-1, keepdim=True), p @ matrix.mT
    stretch = moved.norm(dim=-1, keepdim=True)
    root = math.sqrt(beta)
    expected = root * torch.tanh(stretch / size * torch.atanh(size / root)) * moved / stretch
    same(PoincareBall(beta).matvec(matrix, p), expected)


@for_all(seeds, betas, dimensions, dimensions, dimensions)
def test_matrix_associativity(seed, beta, d, m, k):
    space = Lorentz(beta)
    x = space.exp0(draw(seed, beta, 5, d))
    first, second = gaussian(seed, m, d) / math.sqrt(d), gaussian(seed + 1, k, m) / math.sqrt(m)
    same(space.matvec(second @ first, x), space.matvec(second, space.matvec(first, x)))


@for_all(seeds, betas, dimensions, dimensions)
def test_matrix_product_stays_on_the_hyperboloid(seed, beta, d, m):
    """Only the last d coordinates are multiplied: (0, M v) is a tangent vector at the origin, and its exp a point."""
    space, matrix = Lorentz(beta), gaussian(seed, m, d) / math.sqrt(d)
    v = draw(seed, beta, 5, d)
    lifted = tangent_at_origin(space, v @ matrix.mT)
    result = space.matvec(matrix, space.exp0(v))
    same(result, space.exp(space.origin(m, v).expand_as(lifted), lifted))
    same(space.inner(result, result) / result[:, 0] ** 2, -beta / result[:, 0] ** 2, atol=1e-14)


# ---- Theorem 4.3


@pytest.mark.parametrize("act", [torch.relu, torch.nn.LeakyReLU(0.2)], ids=["relu", "leaky_relu"])
@for_all(seed=seeds, beta=betas, d=dimensions)
def test_homogeneous_activations_agree(act, seed, beta, d):
    space, ball = Lorentz(beta), PoincareBall(beta)
    x = space.exp0(draw(seed, beta, 5, d))
    same(space.to_poincare(space.pointwise(act, x)), ball.pointwise(act, space.to_poincare(x)))


@pytest.mark.parametrize("act", [torch.nn.functional.elu, torch.tanh], ids=["elu", "tanh"])
def test_other_activations_do_not(act):
    """λ_0 = 2: the ball's log_0 is half of the normal coordinates, and elu(v/2) ≠ elu(v)/2."""
    space, ball = Lorentz(1.0), PoincareBall(1.0)
    x = space.exp0(torch.tensor([[-1.0, 0.5]], dtype=torch.float64))
    gap = space.to_poincare(space.pointwise(act, x)) - ball.pointwise(act, space.to_poincare(x))
    assert gap.norm() > 0.01


# ---- Theorem 4.2


def members(seed, beta, m, d):
    weight = torch.rand(m, generator=torch.Generator().manual_seed(seed + 1), dtype=torch.float64) + 0.01
    return draw(seed, beta, m, d), weight


@for_all(seeds, betas, st.integers(1, 6), st.integers(1, 4), examples=15)
def test_centroid_minimises_the_squared_lorentzian_distance(seed, beta, m, d):
    v, weight = members(seed, beta, m, d)
    space = Lorentz(beta)
    x = space.exp0(v).numpy()
    root, w = math.sqrt(beta), weight.numpy()

    def cost(c):
        """Σ w d_L²/β from the definition (Eq. 16), not from the library."""
        r = np.linalg.norm(c) / root
        point = np.concatenate([[root * np.cosh(r)], root * np.sinh(r) * c / max(np.linalg.norm(c), 1e-300)])
        return w @ (-2 * beta - 2 * (x[:, 1:] @ point[1:] - x[:, 0] * point[0])) / beta

    ours = space.normal.centroid(v, weight).numpy()
    found = minimize(cost, v.mean(0).numpy(), method="BFGS", options={"gtol": 1e-8})
    assert cost(ours) <= found.fun * (1 + 1e-9) + 1e-12
    # a minimum is flat: its place is known to the square root of its depth
    np.testing.assert_allclose(ours, found.x, atol=1e-4 * root)
    for nudge in 1e-3 * root * np.concatenate([np.eye(d), -np.eye(d)]):
        assert cost(ours + nudge) > cost(ours)


@for_all(seeds, betas, st.integers(1, 9), dimensions)
def test_centroid_is_the_formula_and_every_other_midpoint(seed, beta, m, d):
    v, weight = members(seed, beta, m, d)
    space, ball, klein = Lorentz(beta), PoincareBall(beta), Klein(beta)
    centre = space.normal.centroid(v, weight)
    x = space.exp0(v)
    s = (weight.unsqueeze(-1) * x).sum(0)
    formula = math.sqrt(beta) * s / (-space.inner(s, s)).sqrt()  # Eq. 15
    same(space.exp0(centre), formula)
    same(space.centroid(x, weight), formula)
    assert space.check(formula, tol=1e-12)
    same(ball.from_normal(centre), ball.midpoint(ball.from_normal(v), weight))
    same(klein.from_normal(centre), klein.midpoint(klein.from_normal(v), weight))
    theirs = geoopt.PoincareBall(c=torch.tensor(1 / beta, dtype=torch.float64))
    # geoopt adds 1e-10 to its denominator Σ w (λ − 1): large weights make that harmless
    same(ball.from_normal(centre), theirs.weighted_midpoint(ball.from_normal(v), 1e6 * weight, reducedim=[0]))


@for_all(seeds, betas, st.integers(1, 6), dimensions)
def test_equal_weights_are_the_default_and_scale_is_free(seed, beta, m, d):
    v, weight = members(seed, beta, m, d)
    space, ball, klein = Lorentz(beta), PoincareBall(beta), Klein(beta)
    same(space.normal.centroid(v), space.normal.centroid(v, torch.full((m,), 7.0, dtype=torch.float64)))
    same(space.normal.centroid(v, weight), space.normal.centroid(v, 1e6 * weight))
    same(ball.from_normal(space.normal.centroid(v)), ball.midpoint(ball.from_normal(v)))
    same(klein.from_normal(space.normal.centroid(v)), klein.midpoint(klein.from_normal(v)))


@for_all(seeds, betas, dimensions)
def test_centroid_moves_with_isometries(seed, beta, d):
    """Translating all members translates the centroid (a gyrotranslation is an isometry)."""
    v, weight = members(seed, beta, 5, d)
    by = draw(seed + 2, beta, 1, d)
    space = Lorentz(beta).normal
    moved = space.centroid(space.exp_at(by.expand_as(v), v), weight)
    same(moved, space.exp_at(by[0], space.centroid(v, weight)), rtol=1e-8, atol=1e-9)


def test_no_weight_at_all_gives_the_origin():
    v = torch.ones(2, 3, dtype=torch.float64)
    assert (Lorentz(1.0).normal.centroid(v, torch.zeros(2, dtype=torch.float64)) == 0).all()


# ---- points and normal coordinates


@for_all(seeds, betas, dimensions)
def test_lorentzian_versions_are_plain_in_normal_coordinates(seed, beta, d):
    """f^⊗(x) = exp_0(f(log_0 x)) (Definitions 4.1 to 4.3)."""
    space, v, matrix = Lorentz(beta), draw(seed, beta, 5, d), gaussian(seed, 4, d) / math.sqrt(d)
    x = space.exp0(v)
    same(space.log0(space.pointwise(torch.tanh, x)), torch.tanh(v))
    same(space.log0(space.matvec(matrix, x)), v @ matrix.mT)
    same(space.log0(space.centroid(x)), space.normal.centroid(v))
    y = draw(seed + 1, beta, 5, d)
    same(space.dist(x, space.exp0(y)), space.normal.dist(v, y))
    same(space.sqdist(x, space.exp0(y)), space.normal.sqdist(v, y))
    same(space.lorentz_sqdist(x, space.exp0(y)), space.normal.lorentz_sqdist(v, y))
    same(space.lorentz_sqdist(x, space.exp0(y)) / beta, -2 - 2 * space.inner(x, space.exp0(y)) / beta, atol=1e-10)


@for_all(seeds, betas, betas, dimensions)
def test_change_of_curvature(seed, beta, other, d):
    """Eq. 7 keeps normal coordinates, lands on the other hyperboloid, and comes back."""
    here, there = Lorentz(beta), Lorentz(other)
    v = draw(seed, min(beta, other), 5, d)
    x = here.exp0(v)
    y = here.change_curvature(x, there)
    assert there.check(y, tol=1e-12)
    same(there.log0(y), v)
    same(there.change_curvature(y, here), x)


@for_all(seeds, betas, dimensions)
def test_logarithms_are_tangent_vectors(seed, beta, d):
    space = Lorentz(beta)
    x, y = space.exp0(draw(seed, beta, 5, d)), space.exp0(draw(seed + 1, beta, 5, d))
    v = space.log(x, y)
    assert (space.inner(x, v).abs() <= 1e-12 * x.norm(dim=-1) * v.norm(dim=-1) + 1e-12).all()
    same(space.tangent_norm(x, v), space.dist(x, y), rtol=1e-9)
