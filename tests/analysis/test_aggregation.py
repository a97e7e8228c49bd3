"""The four means: where they lie, and what they minimise."""

import pytest
import torch

from hyperboloid.analysis.aggregation import (
    OFF_SURFACE,
    disk_mean,
    euclidean_mean,
    example_points,
    frechet_mean,
    lorentz_mean,
    measure_means,
    tangent_mean,
)
from hyperboloid.geometry import Lorentz


def cloud(beta, seed):
    return beta**0.5 * torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("beta", [1.0, 0.4])
def test_the_ray_through_the_euclidean_mean_meets_the_surface_in_the_centroid(beta):
    space, v = Lorentz(beta), cloud(beta, 1)
    outside = euclidean_mean(v, beta)
    back = outside * (beta / -space.inner(outside, outside)).sqrt()
    torch.testing.assert_close(back, space.exp0(lorentz_mean(v, beta)))


@pytest.mark.parametrize("beta", [1.0, 0.4])
def test_properties_of_the_means(beta):
    found = {mean.name: mean for mean in measure_means(cloud(beta, 2), beta)}
    outside = found.pop(OFF_SURFACE)
    assert outside.off > 0.05
    assert outside.lorentz_excess is outside.intrinsic_excess is outside.left_behind is None
    for mean in found.values():
        assert mean.off < 1e-12
        assert mean.lorentz_excess >= -1e-12
        assert mean.intrinsic_excess >= -1e-12
    least = {name: (m.lorentz_excess < 1e-12, m.intrinsic_excess < 1e-12) for name, m in found.items()}
    assert least == {
        "Euclidean on the disk": (False, False),
        "Lorentz centroid": (True, False),
        "Fréchet mean": (False, True),
        "tangent mean": (False, False),
    }
    stays = {name: m.left_behind > 1e-6 for name, m in found.items()}
    assert stays == {
        "Euclidean on the disk": True,
        "Lorentz centroid": False,
        "Fréchet mean": False,
        "tangent mean": True,
    }


def test_all_means_of_two_opposite_points_are_the_origin():
    v = torch.tensor([[1.3, -0.4], [-1.3, 0.4]], dtype=torch.float64)
    for mean in (disk_mean, lorentz_mean, frechet_mean, tangent_mean):
        torch.testing.assert_close(mean(v, 1.0), torch.zeros(2, dtype=torch.float64))


def test_the_means_of_the_example_can_be_told_apart():
    space = Lorentz(1.0)
    drawn = space.to_poincare(torch.tensor([m.point for m in measure_means(example_points())[1:]]))
    assert torch.pdist(drawn).min() > 0.1
