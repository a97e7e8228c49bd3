"""The Fermi-Dirac decoder against its formula."""

import math

import pytest
import torch

from hyperboloid import InputError
from hyperboloid.geometry import Euclidean, Lorentz
from hyperboloid.nn import FermiDirac


def pairs(scale=1.0):
    u, v = scale * torch.randn(2, 50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return u, v


def minkowski(u, v, beta):
    """−⟨x, y⟩_L of the points with normal coordinates u and v."""
    root = math.sqrt(beta)
    a, b = u.norm(dim=-1) / root, v.norm(dim=-1) / root
    cosine = (u * v).sum(-1) / (u.norm(dim=-1) * v.norm(dim=-1))
    return beta * (a.cosh() * b.cosh() - a.sinh() * b.sinh() * cosine)


def fermi_dirac(square, r, t):
    return 1 / (((square - r) / t).exp() + 1)


@pytest.mark.parametrize("beta", [0.5, 1.0, 4.0])
@pytest.mark.parametrize(("r", "t"), [(2.0, 1.0), (0.5, 3.0)])
def test_intrinsic_distance(beta, r, t):
    u, v = pairs()
    square = beta * torch.acosh(minkowski(u, v, beta) / beta).square()
    torch.testing.assert_close(FermiDirac(r=r, t=t)(u, v, Lorentz(beta)).sigmoid(), fermi_dirac(square, r, t))


@pytest.mark.parametrize("beta", [0.5, 1.0, 4.0])
@pytest.mark.parametrize(("r", "t"), [(2.0, 1.0), (0.5, 3.0)])
def test_lorentzian_distance(beta, r, t):
    u, v = pairs()
    square = (2 * minkowski(u, v, beta) - 2 * beta).clamp(max=50)
    decoder = FermiDirac("lorentz", r=r, t=t)
    torch.testing.assert_close(decoder(u, v, Lorentz(beta)).sigmoid(), fermi_dirac(square, r, t))


@pytest.mark.parametrize("distance", ["intrinsic", "lorentz"])
def test_flat_space(distance):
    u, v = pairs()
    square = (u - v).square().sum(-1)
    torch.testing.assert_close(FermiDirac(distance)(u, v, Euclidean()).sigmoid(), fermi_dirac(square, 2.0, 1.0))


def test_half_at_r():
    u, v = torch.zeros(1, 2), torch.tensor([[math.sqrt(2.0), 0.0]])
    assert FermiDirac()(u, v, Lorentz(1.0)).sigmoid().item() == pytest.approx(0.5, abs=1e-6)


def test_the_cap_bounds_the_lorentzian_distance_only():
    u, v = (x.float() for x in pairs(scale=20.0))
    logits = FermiDirac("lorentz", cap=10.0)(u, v, Lorentz(1.0))
    assert torch.equal(logits, torch.full((50,), 2.0 - 10.0))
    assert FermiDirac("intrinsic", cap=10.0)(u, v, Lorentz(1.0)).max() < -100


@pytest.mark.parametrize("distance", ["intrinsic", "lorentz"])
@pytest.mark.parametrize("scale", [0.0, 1.0, 40.0])
def test_loss_and_gradient_are_finite(distance, scale):
    u, v = (x.float().requires_grad_() for x in pairs(scale))
    logits = FermiDirac(distance)(u, v, Lorentz(1.0))
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.ones(50))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(u.grad).all()
    assert torch.isfinite(v.grad).all()


def test_repr_shows_the_choice():
    assert repr(FermiDirac("lorentz", r=1.5, t=0.5)) == "FermiDirac(distance='lorentz', r=1.5, t=0.5)"


def test_a_distance_that_there_is_not_is_refused():
    with pytest.raises(InputError, match="no distance 'lorentzian'; choose one of: intrinsic, lorentz"):
        FermiDirac("lorentzian")
