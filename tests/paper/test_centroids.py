"""Table 2, measured: what each centroid minimises, against geoopt and formulas written out here."""

import geoopt
import pytest
import torch

from hyperboloid.paper.centroids import (
    EINSTEIN,
    FRECHET,
    LORENTZ,
    MOEBIUS,
    centroids,
    einstein,
    fixed_point_steps,
    frechet,
    lorentz,
    moebius,
)
from hyperboloid.paper.measure import minimum, random_points


@pytest.fixture(scope="module", params=[0, 3])
def rows(request):
    return {row["centroid"]: row for row in centroids(request.param).rows}


def test_which_sums_are_minimised(rows):
    held = {name: (row["sum_lorentz"].holds, row["sum_intrinsic"].holds) for name, row in rows.items()}
    assert held == {
        FRECHET: (False, True),
        EINSTEIN: (True, False),
        MOEBIUS: (True, False),
        LORENTZ: (True, False),
    }
    for row in rows.values():
        for cell in (row["sum_lorentz"], row["sum_intrinsic"]):
            assert cell.value < 1e-10 if cell.holds else cell.value > 1e-2


def test_the_paper_is_contradicted_for_the_two_midpoints_only(rows):
    said = {name: (row["sum_lorentz"].paper, row["sum_intrinsic"].paper) for name, row in rows.items()}
    assert said == {FRECHET: (None, True), EINSTEIN: (False, False), MOEBIUS: (False, False), LORENTZ: (True, None)}
    for name, row in rows.items():
        assert row["sum_lorentz"].contradicts == (name in (EINSTEIN, MOEBIUS))
        assert not row["sum_intrinsic"].contradicts
        assert not row["closed_form"].contradicts


def test_three_of_the_four_are_one(rows):
    assert rows[LORENTZ]["apart"] == 0
    assert 0 < rows[EINSTEIN]["apart"] < 1e-10
    assert 0 < rows[MOEBIUS]["apart"] < 1e-10
    assert rows[FRECHET]["apart"] > 0.1


def test_only_the_frechet_mean_is_iterated(rows):
    assert {name for name, row in rows.items() if not row["closed_form"].holds} == {FRECHET}
    assert 10 < rows[FRECHET]["closed_form"].value < 1000


@pytest.mark.parametrize("beta", [0.4, 1.0, 2.5])
def test_the_means_are_the_textbooks(beta):
    torch.manual_seed(0)
    u, weight = random_points(20, 7, radius=2.0, beta=beta), torch.rand(20, 7, dtype=torch.float64)
    root = beta**0.5
    r = u.norm(dim=-1, keepdim=True)
    close = {"rtol": 1e-10, "atol": 1e-10}

    # geoopt's gyromidpoint, its points in the ball of radius √β
    ball = geoopt.PoincareBall(c=torch.tensor(1 / beta, dtype=torch.float64))
    p = root * torch.tanh(r / (2 * root)) * u / r
    midpoint = ball.weighted_midpoint(p, weight, reducedim=[-2], dim=-1)
    torch.testing.assert_close(moebius(u, weight, beta), 2 * ball.logmap0(midpoint), **close)

    # Einstein's midpoint and Ratcliffe's centroid by their definitions
    k = root * torch.tanh(r / root) * u / r
    gamma = weight.unsqueeze(-1) / (1 - k.square().sum(-1, keepdim=True) / beta).sqrt()
    k = (gamma * k).sum(-2) / gamma.sum(-2)
    length = k.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(einstein(u, weight, beta), root * torch.atanh(length / root) * k / length, **close)
    x = torch.cat([root * torch.cosh(r / root), root * torch.sinh(r / root) * u / r], dim=-1)
    s = (weight.unsqueeze(-1) * x).sum(-2)
    s = root * s / (s[:, :1].square() - s[:, 1:].square().sum(-1, keepdim=True)).sqrt()
    length = s[:, 1:].norm(dim=-1, keepdim=True)
    torch.testing.assert_close(lorentz(u, weight, beta), root * torch.asinh(length / root) * s[:, 1:] / length, **close)


def test_the_librarys_frechet_mean_is_the_independent_minimum():
    torch.manual_seed(1)
    u, weight = random_points(30, 6, radius=4.0, beta=1.3), torch.rand(30, 6, dtype=torch.float64)
    torch.testing.assert_close(frechet(u, weight, 1.3), minimum(u, weight, 1.3, "intrinsic"), rtol=0, atol=1e-8)


def test_the_fixed_point_iteration_starts_at_the_answer_where_a_formula_exists():
    """Two points of equal weight: the Fréchet mean is the geodesic's midpoint, and so is the centroid."""
    u = random_points(5, 2, radius=2.0, beta=1.0)
    assert fixed_point_steps(u, torch.ones(5, 2, dtype=torch.float64), 1.0) == 1
    assert fixed_point_steps(u, torch.tensor([1.0, 3.0], dtype=torch.float64).expand(5, 2), 1.0) > 3
