"""The Fréchet mean from its definition."""

import math

import pytest
import torch
from scipy.optimize import minimize

from hyperboloid.geometry import Lorentz

from .reference import sphere


def cloud(m, d, radius, seed, dtype=torch.float64):
    scale = torch.rand(m, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    weight = torch.rand(m, generator=torch.Generator().manual_seed(seed + 1), dtype=torch.float64) + 0.05
    return (radius * scale * sphere(m, d, seed)).to(dtype), weight.to(dtype)


@pytest.mark.parametrize("beta", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("d", [1, 2, 6])
@pytest.mark.parametrize("radius", [0.5, 3.0, 6.0])
def test_no_other_point_has_a_smaller_sum_of_squared_distances(beta, d, radius):
    space = Lorentz(beta).normal
    u, weight = cloud(7, d, radius * math.sqrt(beta), seed=d)
    mean = space.frechet(u, weight)

    def cost(x):
        point = torch.as_tensor(x, dtype=torch.float64).requires_grad_()
        value = (weight * space.sqdist(point, u)).sum()
        return value.item(), torch.autograd.grad(value, point)[0].numpy()

    found = minimize(cost, u.mean(0).numpy(), jac=True, options={"gtol": 1e-12})
    assert cost(mean)[0] <= found.fun * (1 + 1e-12)
    assert space.dist(mean, torch.as_tensor(found.x)) < 1e-5 * math.sqrt(beta)
    pull = (weight.unsqueeze(-1) * space.log_at(mean, u)).sum(0)
    assert pull.norm() < 1e-8


def test_two_points_have_their_midpoint():
    space = Lorentz(2.0).normal
    u, v = cloud(2, 3, 3.0, seed=0)[0]
    mean = space.frechet(torch.stack([u, v]))
    torch.testing.assert_close(space.dist(u, mean), space.dist(u, v) / 2)
    torch.testing.assert_close(space.dist(mean, v), space.dist(u, v) / 2)


def test_points_on_a_line_through_the_origin_have_their_mean_there():
    """A geodesic is isometric to the real line."""
    positions, weight = torch.tensor([-2.0, 0.5, 3.0, 5.0]).double(), torch.tensor([1.0, 2.0, 0.5, 1.0]).double()
    axis = sphere(1, 4, seed=0)[0]
    mean = Lorentz(0.7).normal.frechet(positions.unsqueeze(-1) * axis, weight)
    torch.testing.assert_close(mean, (positions * weight).sum() / weight.sum() * axis)


def test_it_is_not_the_centroid():
    """A far point pulls the centroid exponentially more."""
    space = Lorentz(1.0).normal
    u = torch.tensor([[12.0, 0.0], [0.0, 1.0], [0.0, -1.0]]).double()
    assert space.dist(space.frechet(u), space.centroid(u)) > 1


@pytest.mark.parametrize("radius", [0.5, 3.0, 6.0])
def test_gradients_against_differences(radius):
    u, weight = cloud(5, 3, radius, seed=4)
    inputs = (u.requires_grad_(), weight.requires_grad_(), torch.tensor(1.3, dtype=torch.float64, requires_grad=True))
    assert torch.autograd.gradcheck(lambda u, w, b: Lorentz(b).normal.frechet(u, w), inputs, rtol=1e-4, atol=1e-6)


def test_a_batch_is_its_members():
    space = Lorentz(1.0).normal
    u, weight = torch.stack([cloud(4, 3, r, seed=r)[0] for r in (1, 2, 5)]), cloud(4, 3, 1.0, seed=9)[1]
    many = space.frechet(u, weight.expand(3, 4))
    for k in range(3):
        torch.testing.assert_close(many[k], space.frechet(u[k], weight))


@pytest.mark.parametrize("radius", [12.0, 15.0])
def test_newton_arrives_where_it_would_overshoot(radius):
    space = Lorentz(1.0).normal
    u = radius * sphere(200 * 6, 3, seed=1).view(200, 6, 3)
    mean = space.frechet(u)
    assert space.log_at(mean.unsqueeze(-2), u).mean(-2).norm(dim=-1).max() < 1e-6
