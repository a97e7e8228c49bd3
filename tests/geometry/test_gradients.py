"""Derivatives: against finite differences where those work, and against 50 digits where they do not."""

import math

import pytest
import torch
from mpmath import mpf
from torch.autograd import gradcheck

from hyperboloid.geometry import Lorentz

from . import reference

SQUARES = ("sqdist", "lorentz_sqdist")
ZERO = torch.zeros(3, dtype=torch.float64)
U = torch.tensor([0.3, -1.2, 0.8], dtype=torch.float64)
V = torch.tensor([-0.7, 0.4, 1.5], dtype=torch.float64)


def of(name):
    """A function of normal coordinates with β as its last argument."""
    return lambda *args: getattr(Lorentz(args[-1]).normal, name)(*args[:-1])


def leaf(x, dtype=torch.float64):
    return torch.as_tensor(x, dtype=dtype).clone().requires_grad_()


def gradients(name, u, v, beta, dtype=torch.float64):
    """The value's gradient in u, v and β, as float64."""
    inputs = [leaf(u, dtype), leaf(v, dtype), leaf(beta, dtype)]
    return [g.double() for g in torch.autograd.grad(of(name)(*inputs), inputs)]


def exact_gradients(name, u, v, beta, dtype=torch.float64):
    """The same by mpmath, for the inputs as ``dtype`` rounds them."""
    u, v, beta = (torch.as_tensor(x, dtype=torch.float64).to(dtype) for x in (u, v, beta))
    exact = reference.gradient(getattr(reference, name), reference.numbers(u), reference.numbers(v), mpf(beta.item()))
    return [torch.as_tensor(x, dtype=torch.float64) for x in exact]


def relative(ours, exact):
    return float((ours - exact).norm() / exact.norm())


# ---- distances


@pytest.mark.parametrize("beta", [0.2, 1.0, 9.0])
@pytest.mark.parametrize("name", SQUARES)
@pytest.mark.parametrize(
    ("u", "v"),
    [(U, V), (V, U), (U, U), (U, -U), (U, 0.5 * U), (ZERO, V), (U, ZERO), (ZERO, ZERO)],
    ids=["pair", "swapped", "equal", "antipodal", "ray", "from 0", "to 0", "both 0"],
)
def test_squared_distances(name, u, v, beta):
    assert gradcheck(of(name), (leaf(u), leaf(v), leaf(beta)))


@pytest.mark.parametrize("name", SQUARES)
def test_squared_distances_of_random_pairs(name):
    for d in (1, 2, 16):
        u, v = 2 * reference.sphere(4, d, 1), 3 * reference.sphere(4, d, 2)
        assert gradcheck(of(name), (leaf(u), leaf(v), leaf(0.7)))


@pytest.mark.parametrize("radius", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("name", ["dist", *SQUARES])
def test_at_separation_1e_12(name, radius):
    """Finite differences see nothing here. Near u = v the square is a quadratic form: its gradient is of size 1e-12."""
    u = radius * reference.sphere(1, 3, 1)[0]
    v = u + 1e-12 * reference.sphere(1, 3, 2)[0]
    ours, exact = gradients(name, u, v, 1.0), exact_gradients(name, u, v, 1.0)
    # the last bit of a coordinate, against a separation that shrinks by r/sinh(r) across the radius
    bound = 1e-14 * math.sinh(radius) / radius if radius else 1e-14
    assert relative(ours[0], exact[0]) < bound
    assert relative(ours[1], exact[1]) < bound


@pytest.mark.parametrize("name", ["dist", *SQUARES])
@pytest.mark.parametrize("radius", [1e-2, 1.0, 8.0])
@pytest.mark.parametrize("beta", [1e-3, 1.0, 1e3])
def test_beta_gradient(name, radius, beta):
    """At r = 0.01 it is 1e-5 of the terms it is usually computed from; float32 must not lose it."""
    u = radius * math.sqrt(beta) * reference.sphere(1, 4, 1)[0]
    v = radius * math.sqrt(beta) * reference.sphere(1, 4, 2)[0]
    for dtype, bound in ((torch.float64, 1e-13), (torch.float32, 2e-5)):
        ours = gradients(name, u, v, beta, dtype)[2]
        exact = exact_gradients(name, u, v, beta, dtype)[2]
        assert abs(float(ours / exact) - 1) < bound, dtype


@pytest.mark.parametrize("u", [U, ZERO, 80 * U], ids=["point", "origin", "far"])
def test_dist_has_subgradient_zero_where_points_coincide(u):
    for dtype in (torch.float32, torch.float64):
        for gradient in gradients("dist", u, u, 1.0, dtype):
            assert (gradient == 0).all()


def test_dist_is_differentiable_elsewhere():
    for u, v in ((U, V), (ZERO, V), (U, ZERO), (U, -U), (U, 2 * U)):
        assert gradcheck(of("dist"), (leaf(u), leaf(v), leaf(0.7)))


def test_second_derivatives_away_from_the_diagonal():
    inputs = (leaf(U), leaf(V), leaf(0.7))
    for name in SQUARES:
        assert torch.autograd.gradgradcheck(of(name), inputs)


@pytest.mark.parametrize("name", ["dist", *SQUARES])
def test_float32_gradients_of_neighbours_at_radius_6(name):
    """In the tangent space's own metric, where what lies across the radius is shorter by r/sinh(r).

    The bound is that of the directions themselves: two last bits of u − v, which count sinh(r)/r times.
    """
    u, v = (x.float() for x in reference.around(6, 1.0, 200, 8, 5))
    ours, exact = batch(name, u, v), batch(name, u.double(), v.double())
    for ours_at, exact_at, x in zip(ours, exact, (u.double(), v.double()), strict=True):
        error = riemannian_norm(ours_at.double() - exact_at, x) / riemannian_norm(exact_at, x)
        assert error.max() < 2 * 2**-23 * math.sinh(6) / 6


def riemannian_norm(gradient, x):
    r = x.norm(dim=-1)
    along = (gradient * x).sum(-1) / r
    across = (gradient - (along / r).unsqueeze(-1) * x).norm(dim=-1)
    return torch.hypot(along, across * r / torch.sinh(r))


def batch(name, u, v):
    inputs = [leaf(u, u.dtype), leaf(v, v.dtype)]
    return torch.autograd.grad(of(name)(*inputs, 1.0).sum(), inputs)


# ---- centroid


@pytest.mark.parametrize("beta", [0.2, 1.0, 9.0])
@pytest.mark.parametrize(
    "members",
    [[U, V, -0.3 * U], [U, ZERO, V], [U, -U], [U, -U, V], [U], [ZERO], [ZERO, ZERO], [U, U, U]],
    ids=["three", "one at 0", "antipodal", "antipodal and one", "single", "single at 0", "all at 0", "equal"],
)
def test_centroid(members, beta):
    weight = torch.linspace(0.5, 1, len(members), dtype=torch.float64)
    if len(members) == 2:
        weight.fill_(0.5)  # antipodal members of equal weight meet at the origin
    # one weight is the largest and scales the others: only ratios matter, and that must show in the gradient too
    assert gradcheck(of("centroid"), (leaf(torch.stack(members)), leaf(weight), leaf(beta)))


def test_centroid_gradient_vanishes_along_the_weights():
    """Scaling all weights changes nothing, so Σ w ∂c/∂w = 0."""
    members, weight = leaf(torch.stack([U, V, -0.3 * U])), leaf([0.2, 3.0, 1.0])
    centre = Lorentz(2.0).normal.centroid(members, weight)
    for component in centre:
        (gradient,) = torch.autograd.grad(component, weight, retain_graph=True)
        assert gradient.abs().max() > 1e-2
        assert abs(float(gradient @ weight.detach())) < 1e-15


# ---- maps at a point


@pytest.mark.parametrize("name", ["log_at", "exp_at"])
@pytest.mark.parametrize("beta", [0.2, 9.0])
@pytest.mark.parametrize(
    ("u", "v"),
    [(U, V), (3 * U, 3 * V), (U, U), (U, -U), (4 * U, 4 * U), (4 * U, 4.1 * U), (ZERO, V), (U, ZERO), (ZERO, ZERO)],
    ids=["pair", "far pair", "equal", "antipodal", "far equal", "far ray", "from 0", "to 0", "both 0"],
)
def test_maps_at_a_point(name, beta, u, v):
    assert gradcheck(of(name), (leaf(u), leaf(v), leaf(beta)))


@pytest.mark.parametrize("members", [1, 5])
@pytest.mark.parametrize("radius", [1.0, 6.0, 9.0, 12.0])
def test_float32_gradient_of_the_centroid_is_that_of_float64(radius, members):
    generator = torch.Generator().manual_seed(0)
    directions = torch.randn(40, 1, 16, dtype=torch.float64, generator=generator)
    centre = directions / directions.norm(dim=-1, keepdim=True) * radius
    step = 0.1 * torch.randn(40, members, 16, dtype=torch.float64, generator=generator)
    points = Lorentz(1.0).normal.exp_at(centre.expand_as(step), step).float()
    outer = torch.randn(40, 16, dtype=torch.float64, generator=generator)
    found = []
    for dtype in (torch.float32, torch.float64):
        u = points.to(dtype, copy=True).requires_grad_()
        (Lorentz(1.0).normal.centroid(u) * outer.to(dtype)).sum().backward()
        found.append(u.grad.double())
    assert (found[0] - found[1]).norm() < 2e-7 * found[1].norm()
