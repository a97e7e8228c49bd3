"""The picture's geometry."""

import torch

from hyperboloid.analysis.disk import disk_coordinates, geodesic, plane_coordinates
from hyperboloid.geometry import Lorentz, PoincareBall

BALL = PoincareBall(1.0)


def cloud(n, d, beta, seed=0):
    return 2 * beta**0.5 * torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_points_keep_their_distance_from_the_middle_of_all():
    for d, beta in ((2, 1.0), (3, 0.3), (16, 4.0)):
        v = cloud(50, d, beta)
        points = disk_coordinates(v, beta)
        middle = Lorentz(beta).normal.centroid(v)
        expected = Lorentz(beta).normal.dist(middle.expand_as(v), v) / beta**0.5
        torch.testing.assert_close(BALL.dist(torch.zeros_like(points), points), expected)


def test_two_dimensions_are_drawn_without_distortion():
    v = cloud(30, 2, 1.0)
    points = disk_coordinates(v, 1.0)
    torch.testing.assert_close(
        BALL.dist(points[:15], points[15:]), Lorentz(1.0).normal.dist(v[:15], v[15:]), rtol=1e-8, atol=1e-8
    )


def test_one_dimension_lies_on_a_diameter():
    points = disk_coordinates(cloud(10, 1, 1.0), 1.0)
    assert torch.equal(points[:, 1], torch.zeros(10, dtype=torch.float64))


def test_arcs_are_geodesics_at_constant_speed():
    a, b = BALL.from_normal(cloud(20, 2, 1.0, seed=1)), BALL.from_normal(cloud(20, 2, 1.0, seed=2))
    arcs = torch.as_tensor(geodesic(a.numpy(), b.numpy(), steps=9))
    torch.testing.assert_close(arcs[:, 0], a)
    torch.testing.assert_close(arcs[:, -1], b, rtol=1e-8, atol=1e-8)
    steps = BALL.dist(arcs[:, :-1], arcs[:, 1:])
    whole = BALL.dist(a, b)
    torch.testing.assert_close(steps, (whole / 8).unsqueeze(1).expand_as(steps), rtol=1e-6, atol=1e-8)


def test_the_plane_keeps_the_two_largest_variances():
    v = cloud(200, 5, 1.0) * torch.tensor([1.0, 0.1, 3.0, 0.2, 0.3])
    points = plane_coordinates(v)
    torch.testing.assert_close(points.mean(0), torch.zeros(2, dtype=torch.float64), rtol=0, atol=1e-12)
    expected = torch.linalg.eigvalsh(torch.cov(v.T)).flip(0)[:2]
    torch.testing.assert_close(torch.cov(points.T), torch.diag(expected))


def test_the_plane_takes_two_dimensions_as_they_are():
    v = cloud(20, 2, 1.0)
    torch.testing.assert_close(plane_coordinates(v), v - v.mean(0))
