"""The trainable curvature: what is asked for is what one gets, and no optimiser can break it."""

import math

import pytest
import torch

from hyperboloid.errors import InputError
from hyperboloid.geometry import Curvature, Lorentz


@pytest.mark.parametrize("beta", [1e-3, 0.01, 0.5, 1.0, 30.0, 1e3])
def test_asking_for_beta_gives_beta(beta):
    curvature = Curvature(beta)
    assert curvature.beta.item() == pytest.approx(beta, rel=1e-6)
    assert curvature().item() == curvature.beta.item()
    assert curvature.K.item() == pytest.approx(-1 / beta, rel=1e-6)


@pytest.mark.parametrize("step", [-1e6, -100.0, 100.0, 1e6])
def test_positive_after_wild_steps(step):
    curvature = Curvature(1.0)
    with torch.no_grad():
        curvature.raw += step
    beta = curvature.beta
    assert 0 < beta.item() < math.inf
    beta.backward()
    assert curvature.raw.grad.isfinite()
    u, v = torch.tensor([0.3, 0.1]), torch.tensor([-0.2, 0.4])
    assert Lorentz(curvature).normal.dist(u, v).isfinite()


def test_descent_moves_beta_the_right_way():
    """d_H from the origin's two sides grows as curvature grows: making it small makes β large, and conversely."""
    u, v = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    for sign in (1, -1):
        curvature = Curvature(1.0)
        optimiser = torch.optim.SGD(curvature.parameters(), lr=0.1)
        (sign * Lorentz(curvature).normal.dist(u, v)).backward()
        optimiser.step()
        assert sign * (curvature.beta.item() - 1) > 1e-4


def test_fixed():
    curvature = Curvature(2.0, trainable=False)
    u = torch.ones(3, requires_grad=True)
    Lorentz(curvature).normal.dist(u, torch.zeros(3)).backward()
    assert curvature.raw.grad is None
    assert not curvature.beta.requires_grad


def test_state_round_trip_and_reset():
    trained = Curvature(1.0)
    with torch.no_grad():
        trained.raw += 0.7
    fresh = Curvature(5.0)
    fresh.load_state_dict(trained.state_dict())
    assert fresh.beta.item() == trained.beta.item() != pytest.approx(5.0)
    fresh.reset_parameters()
    assert fresh.beta.item() == pytest.approx(5.0, rel=1e-6)


def test_dtype_follows_the_module():
    curvature = Curvature(0.7).double()
    assert curvature.beta.dtype == torch.float64
    curvature.reset_parameters()
    assert curvature.beta.item() == pytest.approx(0.7, rel=1e-15)
    # and the input's dtype decides the output's
    assert Lorentz(curvature).exp0(torch.ones(3)).dtype == torch.float32


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_beta_is_refused(bad):
    with pytest.raises(InputError, match="beta"):
        Curvature(bad)
