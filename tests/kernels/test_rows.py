"""Chords, squared distances and gyrovector sums of rows, by every backend, where float32 is hard put to it."""

import math

import mpmath
import pytest
import torch
from torch.func import vmap

from hyperboloid.geometry import Lorentz
from hyperboloid.geometry.chord import chord, square_by_kernel
from hyperboloid.geometry.gyro import gyro_sum
from hyperboloid.kernels import use_backend

pytestmark = pytest.mark.usefixtures("backend")


def rows(d, scale):
    """Among random rows: the origin on either side and on both, coinciding points, one almost at the origin."""
    generator = torch.Generator().manual_seed(d)
    u, v = scale * torch.randn(2, 3, 8, d, generator=generator)
    u[:, 0], v[:, 1], u[:, 2], v[:, 2] = 0, 0, 0, 0
    v[:, 3] = u[:, 3]
    u[:, 4] = 1e-12
    return u, v, torch.tensor([[0.5], [1.0], [3.0]])


def gyro_difference(u, v, beta):
    return gyro_sum(-u, v, beta)


@pytest.mark.parametrize("operation", [chord, square_by_kernel, gyro_difference])
@pytest.mark.parametrize("d", [1, 5, 8, 16, 40])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 4.0])
def test_single_precision_against_double(operation, d, scale):
    inputs = rows(d, scale / d**0.5)
    single = [t.clone().requires_grad_() for t in inputs]
    out = operation(*single)
    probe = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    ours = [out.detach(), *torch.autograd.grad((out * probe).sum(), single)]
    with use_backend("reference"):
        double = [t.double().requires_grad_() for t in inputs]
        exact = operation(*double)
        theirs = [exact.detach(), *torch.autograd.grad((exact * probe.double()).sum(), double)]
    for name, a, b in zip(("value", "u", "v"), ours, theirs, strict=False):
        assert torch.isfinite(a).all(), name
        assert (a.double() - b).abs().max() <= 2e-5 * b.abs().max(), name
    # the gradient in β is a sum that cancels where space is almost flat
    assert (ours[3].double() - theirs[3]).abs().max() <= 2e-5 * max(
        theirs[3].abs().max(), theirs[1].abs().max() * scale
    )


def far_out(radius, angle, count=300):
    """Points of about this radius, in pairs in about the same direction."""
    generator = torch.Generator().manual_seed(radius)
    first, change, probe = torch.randn(3, count, 3, generator=generator, dtype=torch.float64)
    first = torch.nn.functional.normalize(first)
    second = torch.nn.functional.normalize(first + angle * change)
    length = radius * (1 + 0.1 * torch.rand(2, count, 1, generator=generator, dtype=torch.float64))
    return length[0] * first, length[1] * second, probe


def gyro_gradients(u, v, probe):
    u, v = u.clone().requires_grad_(), v.clone().requires_grad_()
    return torch.autograd.grad((gyro_difference(u, v, torch.ones((), dtype=u.dtype)) * probe).sum(), (u, v))


@pytest.mark.parametrize("angle", [1.0, 1e-3, 1e-6])
def test_gyrovectors_far_out_in_single_precision(angle):
    u, v, probe = (t.float() for t in far_out(18, angle))
    with use_backend("reference"):
        exact = gyro_gradients(u.double(), v.double(), probe.double())
    for ours, theirs in zip(gyro_gradients(u, v, probe), exact, strict=True):
        assert ((ours.double() - theirs).norm(dim=1) <= 1e-5 * theirs.norm(dim=1)).all()


def test_gyrovectors_far_out_in_double_precision():
    """Products of the gradient with both points are large there, and their difference is not."""
    points = far_out(16, 1e-6)
    with use_backend("reference"):
        exact = gyro_gradients(*points)
    for ours, theirs in zip(gyro_gradients(*points), exact, strict=True):
        assert ((ours - theirs).norm(dim=1) <= 1e-10 * theirs.norm(dim=1)).all()


def exact_distance(u, v):
    """Of points with these very coordinates, to 80 digits."""
    with mpmath.workdps(80):
        u, v = ([mpmath.mpf(float(c)) for c in t] for t in (u, v))
        n_u, n_v = (mpmath.sqrt(mpmath.fdot(t, t)) for t in (u, v))
        across = mpmath.sinh(n_u) * mpmath.sinh(n_v) * mpmath.fdot(u, v) / (n_u * n_v)
        return float(mpmath.acosh(mpmath.cosh(n_u) * mpmath.cosh(n_v) - across))


@pytest.mark.parametrize("angle", [0.0, 1e-6, 1.0])
@pytest.mark.parametrize("radius", [20, 40, 70])
def test_distances_far_out_are_what_the_coordinates_say(radius, angle, backend):
    """Also on about one ray, where float32 coordinates no longer say what was meant."""
    if backend == "reference":
        pytest.skip("plain torch computes in single precision, which tells a turn from rounding no further out")
    u, v = (t.float() for t in far_out(radius, angle, count=20)[:2])
    found = Lorentz(1.0).normal.dist(u, v)
    exact = torch.tensor([exact_distance(*pair) for pair in zip(u, v, strict=True)])
    torch.testing.assert_close(found, exact, rtol=1.2e-7, atol=0)


@pytest.mark.parametrize("radius", [9.0, 16.0, 22.0, 30.0])
@pytest.mark.parametrize("operation", [chord, square_by_kernel])
def test_gradients_of_points_on_one_slanting_ray(operation, radius, backend):
    """Whole multiples of one vector: d_L = 2 sinh(Δr/2), d_H² = Δr², and nothing across."""
    if backend == "reference" and radius > 9:
        pytest.skip("plain torch computes in single precision, which tells a turn from rounding no further out")
    ray = torch.tensor([1.0, 2.0, -5.0])
    steps = torch.tensor([1.0, 1 + 2**-6]) * torch.tensor(radius / 30**0.5 * 2**10).round() / 2**10
    u, v = (steps[:, None] * ray).requires_grad_()
    found = torch.autograd.grad(operation(u, v, torch.tensor(1.0)), (u, v))
    apart = float(steps[0].double() - steps[1].double()) * 30**0.5
    slope = -math.cosh(apart / 2) if operation is chord else 2 * apart  # of d in r_u
    pull = slope / 30**0.5 * ray
    torch.testing.assert_close(found, (pull, -pull), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("angle", [1e-3, 1e-6, 1e-9, 1e-12])
def test_no_gradient_explodes_where_no_digit_is_right(angle):
    u, v, probe = (t.float() for t in far_out(40, angle, 1000))
    with use_backend("reference"):
        largest = max(t.abs().max() for t in gyro_gradients(u, v, probe))
    for gradient in gyro_gradients(u, v, probe):
        assert gradient.abs().max() <= 100 * largest


def test_a_vector_whose_square_is_nothing():
    u, v = torch.tensor([[1e-24, 0.0, 0.0]], requires_grad=True), torch.tensor([[0.0, 1.0, 0.0]])
    for square in (Lorentz(1.0).normal.sqdist(u, v), Lorentz(1.0).normal.lorentz_sqdist(u, v)):
        (grad,) = torch.autograd.grad(square.sum(), u)
        torch.testing.assert_close(grad, torch.tensor([[0.0, float(grad[0, 1]), 0.0]]))
        assert -3 < float(grad[0, 1]) < -1


def test_the_slope_of_a_distance_that_no_longer_grows():
    """A chord of e^150 is more than float32 holds: beyond 163 all distances count as that."""
    u, v = torch.tensor([[150.0, 0.0]], requires_grad=True), torch.tensor([[0.0, 150.0]])
    distance = Lorentz(1.0).normal.dist(u, v)
    assert distance.item() > 160
    (grad,) = torch.autograd.grad(distance.sum(), u)
    # far out d = r_u + r_v + 2 log sin(φ/2), here for φ = π/2; for plain torch radii end at 82
    assert grad[0, 0].item() == pytest.approx(1)
    assert -1 / 81 < grad[0, 1].item() < -1 / 151


@pytest.mark.parametrize("operation", [chord, gyro_difference])
@pytest.mark.parametrize("shape", [(0, 3), (4, 0)])
def test_nothing_has_no_gradient(operation, shape):
    u, v, beta = torch.randn(shape, requires_grad=True), torch.randn(shape), torch.tensor(1.5, requires_grad=True)
    for gradient in torch.autograd.grad(operation(u, v, beta).sum(), (u, beta)):
        assert gradient.count_nonzero() == 0


def test_squared_distances_can_be_differentiated_twice(backend):
    u, v = (torch.randn(4, 3, generator=torch.Generator().manual_seed(k), dtype=torch.float64) for k in (1, 2))
    inputs = [u.requires_grad_(), v.requires_grad_(), torch.tensor(1.3, dtype=torch.float64, requires_grad=True)]
    assert torch.autograd.gradcheck(square_by_kernel, inputs)
    assert torch.autograd.gradgradcheck(square_by_kernel, inputs)


def test_squared_distances_of_a_batch_of_models():
    u, v = torch.randn(2, 3, 7, 5, generator=torch.Generator().manual_seed(0))
    beta = torch.tensor([0.5, 1.0, 3.0])
    mine = vmap(lambda u, v, b: Lorentz(b).normal.sqdist(u, v))(u, v, beta)
    alone = [Lorentz(float(b)).normal.dist(x, y).square() for x, y, b in zip(u, v, beta, strict=True)]
    torch.testing.assert_close(mine, torch.stack(alone))


@pytest.mark.parametrize("operation", [chord, square_by_kernel, gyro_difference])
@pytest.mark.parametrize("side", [0, 1])
def test_what_is_no_number_shows(operation, side):
    ends = list(torch.randn(2, 40, 3, generator=torch.Generator().manual_seed(0)))
    ends[side][7, 1] = torch.nan
    out = operation(*ends, torch.tensor(1.5)).reshape(40, -1)
    assert out.isnan().any(1).nonzero().flatten().tolist() == [7]
