"""What float32 promises: accuracy where float32 can hold the points, finite numbers everywhere else."""

import math
from itertools import product

import pytest
import torch
from mpmath import mpf

from hyperboloid.geometry import Klein, Lorentz, PoincareBall

from . import reference

DIMENSIONS = (2, 3, 16, 64)
BETAS = (1e-3, 0.3, 1.0, 1e3)
CONFIGURATIONS = list(product(DIMENSIONS, BETAS))


def single(beta):
    """β as float32 holds it: a tensor, and the same number exactly."""
    tensor = torch.tensor(beta, dtype=torch.float32)
    return tensor, mpf(tensor.item())


# ---- accuracy, against 50 digits, for the inputs as float32 rounds them


@pytest.mark.parametrize(("radius", "bound"), [(0.1, 2e-6), (1, 2e-6), (3, 2e-6), (6, 2e-6), (9, 3e-5), (12, 1e-3)])
def test_distance_of_neighbours(radius, bound):
    for seed, (d, beta) in enumerate(CONFIGURATIONS):
        b, exact_beta = single(beta)
        u, v = (x.float() for x in reference.around(radius, beta, 20, d, seed))
        ours = Lorentz(b).normal.dist(u, v)
        for i in range(20):
            exact = reference.dist(reference.numbers(u[i]), reference.numbers(v[i]), exact_beta)
            assert abs(ours[i].item() / exact - 1) < bound, (d, beta)


@pytest.mark.parametrize("radius", [0.5, 3, 6, 9])
def test_centroid_of_neighbours(radius):
    for seed, (d, beta) in enumerate(CONFIGURATIONS):
        b, exact_beta = single(beta)
        generator = torch.Generator().manual_seed(seed)
        for m in (2, 5, 30):
            centre, _ = reference.around(radius, beta, 3, d, seed)
            steps = 0.125 * math.sqrt(beta) * reference.sphere(3 * m, d, seed + m).view(3, m, d)
            members = Lorentz(beta).normal.exp_at(centre.unsqueeze(1).expand(3, m, d), steps).float()
            weight = torch.rand(3, m, generator=generator)
            ours = Lorentz(b).normal.centroid(members, weight).double()
            for i in range(3):
                exact = reference.to_tensor(
                    reference.centroid(
                        [reference.numbers(x) for x in members[i]], reference.numbers(weight[i]), exact_beta
                    )
                )
                assert (ours[i] - exact).norm() / exact.norm() < 1e-5, (d, beta, m)


@pytest.mark.parametrize(("radius", "bound"), [(3, 2e-6), (6, 2e-6), (9, 5e-6), (12, 5e-6)])
def test_log_at_a_neighbour(radius, bound):
    for seed, (d, beta) in enumerate(CONFIGURATIONS):
        b, exact_beta = single(beta)
        u, v = (x.float() for x in reference.around(radius, beta, 20, d, seed))
        ours = Lorentz(b).normal.log_at(u, v).double()
        for i in range(20):
            exact = reference.to_tensor(reference.log_at(reference.numbers(u[i]), reference.numbers(v[i]), exact_beta))
            assert (ours[i] - exact).norm() / exact.norm() < bound, (d, beta)


@pytest.mark.parametrize(("d", "beta"), CONFIGURATIONS)
def test_log0_undoes_exp0(d, beta):
    b, _ = single(beta)
    space = Lorentz(b)
    r = torch.logspace(-6, math.log10(80), 60)
    v = r.unsqueeze(-1) * b.sqrt() * reference.sphere(60, d, d, torch.float32)
    there_and_back = space.log0(space.exp0(v))
    assert ((there_and_back - v).norm(dim=-1) / v.norm(dim=-1)).max() < 1e-6
    jacobian = torch.func.vmap(torch.func.jacrev(lambda w: space.log0(space.exp0(w))))(v)
    assert (jacobian - torch.eye(d)).abs().max() < 1e-4


# ---- finite, up to r = 80 in float32 and r = 300 in float64


def pairs(d, beta, dtype, furthest):
    """Pairs of all kinds, each kind at many radii: ``{kind: (u, v)}``."""
    radii = torch.tensor([1e-30, 1e-12, 1e-6, 1e-3, 0.1, 1, 1.001, 6, 20, 40, 0.5, 0.9, 1], dtype=torch.float64)
    radii[-3:] *= furthest

    def at(r, seed):
        return (r * math.sqrt(beta) * reference.sphere(len(radii), d, seed)).to(dtype)

    r = radii.unsqueeze(-1)
    u, zero = at(r, 0), torch.zeros(len(radii), d, dtype=dtype)
    step = torch.nextafter(u, zero)
    jitter = (u.double() * (1 + 1e-6 * reference.sphere(len(radii), d, 2))).to(dtype)
    return {
        "random": (u, at(r, 1)),
        "equal": (u, u.clone()),
        "one ulp apart": (u, step),
        "nearly equal": (u, jitter),
        "from the origin": (zero, u),
        "to the origin": (u, zero),
        "both the origin": (zero, zero.clone()),
        "antipodal": (u, -u),
        "on one ray": (u, u / 2),
        "on opposite rays": (u, -u / 2),
        "huge and tiny": (u, at(1e-20, 3)),
        "tiny and huge": (at(1e-20, 3), u),
        "far and middling": (u, at(2, 4)),
        "middling and far": (at(2, 4), u),
    }


def two_members(space, u, v, weight):
    return space.normal.centroid(torch.stack([u, v], dim=-2), weight)


FUNCTIONS = {
    "dist": lambda space, u, v, weight: space.normal.dist(u, v),
    "sqdist": lambda space, u, v, weight: space.normal.sqdist(u, v),
    "lorentz_sqdist": lambda space, u, v, weight: space.normal.lorentz_sqdist(u, v),
    "log_at": lambda space, u, v, weight: space.normal.log_at(u, v),
    "exp_at": lambda space, u, v, weight: space.normal.exp_at(u, v),
    "centroid": two_members,
    "exp0": lambda space, u, v, weight: space.exp0(u),
    "log0": lambda space, u, v, weight: space.log0(space.exp0(u)),
}


@pytest.mark.parametrize("d", [1, 3, 64])
@pytest.mark.parametrize(("dtype", "furthest"), [(torch.float32, 80), (torch.float64, 300)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_finite_with_finite_gradients(name, dtype, furthest, d):
    for beta in (1e-3, 1.0, 1e3):
        for kind, (u, v) in pairs(d, beta, dtype, furthest).items():
            u, v = u.clone().requires_grad_(), v.clone().requires_grad_()
            weight = torch.linspace(0, 1, 2 * len(u), dtype=dtype).view(-1, 2).requires_grad_()
            b = torch.tensor(beta, dtype=dtype, requires_grad=True)
            result = FUNCTIONS[name](Lorentz(b), u, v, weight)
            assert result.isfinite().all(), (kind, beta)
            if "dist" in name:
                assert (result >= 0).all(), (kind, beta)
            slopes = torch.linspace(0.5, 1, result.size(-1), dtype=dtype)
            gradients = torch.autograd.grad((result * slopes).sum(), [u, v, weight, b], allow_unused=True)
            for gradient, of in zip(gradients, ("u", "v", "weight", "beta"), strict=True):
                assert gradient is None or gradient.isfinite().all(), (kind, beta, of)


def test_lorentz_sqdist_saturates():
    """e^160 does not fit a float32: the value stays at 1e30 and the gradient is 0."""
    u = torch.tensor([80.0, 0.0], requires_grad=True)
    v = torch.tensor([-80.0, 0.0])
    value = Lorentz(1.0).normal.lorentz_sqdist(u, v)
    assert value.item() == pytest.approx(1e30, rel=1e-6)
    (gradient,) = torch.autograd.grad(value, u)
    assert (gradient == 0).all()


@pytest.mark.parametrize(
    ("dtype", "far", "near"),
    [(torch.float32, 80.0, 2.0), (torch.float32, 12.0, 10.0), (torch.float64, 300.0, 2.0), (torch.float64, 25.0, 23.0)],
)
def test_on_one_ray(dtype, far, near):
    """There hyperbolic space is a line, however far out."""
    space = Lorentz(1.0).normal
    axis = torch.tensor([0.0, 1.0], dtype=dtype)
    u, v, gap = far * axis, near * axis, far - near
    torch.testing.assert_close(space.dist(u, v), torch.tensor(gap, dtype=dtype), rtol=1e-5, atol=0)
    torch.testing.assert_close(space.log_at(u, v), -gap * axis, rtol=1e-5, atol=0)
    torch.testing.assert_close(space.log_at(v, u), gap * axis, rtol=1e-5, atol=0)
    torch.testing.assert_close(space.exp_at(v, gap * axis), u, rtol=1e-5, atol=0)
    middle = space.centroid(torch.stack([u, v]), torch.tensor([1e-3, 1.0], dtype=dtype))
    assert near < middle[1] < far
    assert middle[0] == 0


#: how far out the two balls tell points apart in float32; further out everything is there
BALLS = {"poincare": 16.0, "klein": 7.5}


@pytest.mark.parametrize("beta", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("ball", BALLS)
def test_balls_are_finite_at_their_boundary(ball, beta):
    """Rounding puts far points on it, where textbook formulas have none."""
    space = Lorentz(beta)
    there, back, model = {
        "poincare": (space.to_poincare, space.from_poincare, PoincareBall(beta)),
        "klein": (space.to_klein, space.from_klein, Klein(beta)),
    }[ball]
    r = torch.linspace(0, 80, 161).unsqueeze(-1)
    v = (beta**0.5 * r * reference.sphere(161, 5, 1).float()).requires_grad_()
    u = model.from_normal(v)
    found = (
        model.to_normal(u), model.dist(u, u.flip(0)), back(there(space.exp0(v))), back(u),
        model.midpoint(torch.stack([u, u.flip(0)], -2)),
    )  # fmt: skip
    for value in found:
        assert torch.isfinite(value).all()
        assert torch.isfinite(torch.autograd.grad(value.sum(), v, retain_graph=True)[0]).all()
    told = (v.norm(dim=-1) / beta**0.5) < BALLS[ball]
    torch.testing.assert_close(found[0][told], v[told], rtol=0.1, atol=1e-6)


@pytest.mark.parametrize("radius", [10.0, 20.0, 40.0, 60.0, 80.0])
def test_logarithms_of_far_points_lead_back_by_the_distance(radius):
    """The way from one far point to another passes the origin: log_x(y) is about −θx."""
    space, (u, v) = Lorentz(1.0), (radius * reference.sphere(50, 4, seed).float() for seed in (1, 2))
    x, y = space.exp0(u.requires_grad_()), space.exp0(v)
    log = space.log(x, y)
    torch.testing.assert_close(log[..., 0] / x[..., 0], -space.normal.dist(u, v), rtol=1e-2, atol=0)
    assert torch.isfinite(log).all()
    assert torch.isfinite(torch.autograd.grad((log / x).sum(), u)[0]).all()
