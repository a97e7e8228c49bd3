"""Squared distances of pairs of nodes against plain torch in double precision."""

import math
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from torch.func import vmap

from hyperboloid.errors import InputError
from hyperboloid.geometry import Lorentz
from hyperboloid.kernels import cpu_pairs, pair_sqdist, use_backend

PAIRS = torch.tensor([[0, 1, 2, 3, 5, 6, 4, 4, 7, 1], [1, 0, 7, 3, 6, 5, 2, 2, 0, 6]])  # twice, reversed, to itself


def nodes(d, scale, seed=0):
    """Random nodes; 0 is the origin, 5 and 6 coincide, 3 is almost the origin."""
    z = scale / d**0.5 * torch.randn(8, d, generator=torch.Generator().manual_seed(seed))
    z[0], z[6], z[3] = 0, z[5], 1e-12
    return z


@pytest.fixture(params=["cpu", "triton"])
def fast(request):
    """Those backends that have loops of their own; without a GPU, Triton's run in its interpreter."""
    if request.param == "triton" and (find_spec("triton") is None or torch.cuda.is_available()):
        pytest.skip("triton is not installed, or compiles for a GPU: see test_gpu.py")
    return request.param


def both(z, pairs, beta, lorentz, fast):
    """Values and gradients in z and β: ours in float32, plain torch's in float64."""
    found = []
    for dtype, backend in ((torch.float32, fast), (torch.float64, "reference")):
        x, b = z.to(dtype).requires_grad_(), torch.tensor(beta, dtype=torch.float32).to(dtype).requires_grad_()
        with use_backend(backend):
            out = pair_sqdist(x, pairs, b, lorentz=lorentz)
            probe = torch.linspace(-1, 2, pairs.size(1), dtype=dtype)
            found.append([out.detach(), *torch.autograd.grad((out * probe).sum(), (x, b))])
    return zip(*found, strict=True)


@pytest.mark.parametrize("lorentz", [True, False])
@pytest.mark.parametrize("scale", [1e-4, 0.3, 1.0, 4.0])
@pytest.mark.parametrize(("d", "beta"), [(1, 1.0), (5, 0.3), (16, 7.0)])
def test_values_and_gradients(d, beta, scale, lorentz, fast):
    (mine, exact), (to_z, z_exact), (to_beta, beta_exact) = both(nodes(d, scale), PAIRS, beta, lorentz, fast)
    torch.testing.assert_close(mine.double(), exact, rtol=2e-6, atol=1e-30)
    assert (to_z.double() - z_exact).norm() <= 1e-6 * z_exact.norm()
    # the gradient in β is what is left of sums of squares where space is almost flat
    assert abs(to_beta.double() - beta_exact) <= 2e-6 * max(beta_exact.abs(), exact.sum() / beta)


@pytest.mark.parametrize("lorentz", [True, False])
@pytest.mark.parametrize("radius", [3, 6, 9, 12])
def test_siblings_far_out(radius, lorentz, fast):
    """Where Minkowski space cancels even in double precision, the forms that do not take over."""
    generator = torch.Generator().manual_seed(radius)
    centre = torch.nn.functional.normalize(torch.randn(4, generator=generator, dtype=torch.float64), dim=0)
    steps = torch.nn.functional.normalize(torch.randn(8, 4, generator=generator, dtype=torch.float64))
    z = Lorentz(1.0).normal.exp_at((radius * centre).expand(8, 4), 0.1 * steps).float()
    z[0], z[1] = 0.5 * centre.float(), -z[2]  # among them two that are far away
    (mine, exact), (to_z, z_exact), _ = both(z, PAIRS, 1.0, lorentz, fast)
    torch.testing.assert_close(mine.double(), exact, rtol=2e-6, atol=1e-30)
    for i in range(8):
        assert (to_z[i].double() - z_exact[i]).norm() <= 2e-6 * z_exact[i].norm()


@pytest.mark.parametrize("lorentz", [True, False])
@pytest.mark.parametrize("aside", [0, 1e-6, 1e-4, 1e-2])
def test_nodes_on_almost_the_same_ray(aside, lorentz, fast):
    """Where hardly anything of ‖u − v‖² is left without (‖u‖ − ‖v‖)²: a node, its parent, and so on."""
    ray = torch.nn.functional.normalize(torch.tensor([1.0, -2.0, 0.5, 3.0, 1.5]), dim=0)
    off = aside * torch.randn(8, 5, generator=torch.Generator().manual_seed(1))
    z = torch.linspace(2, 9, 8)[:, None] * ray + off
    (mine, exact), (to_z, z_exact), _ = both(z, PAIRS, 1.0, lorentz, fast)
    torch.testing.assert_close(mine.double(), exact, rtol=2e-6, atol=1e-30)
    for i in range(8):
        assert (to_z[i].double() - z_exact[i]).norm() <= 2e-6 * z_exact[i].norm()


@pytest.mark.parametrize("d", [3, 8, 32])
def test_sorted_pairs(d, fast):
    """Long runs of pairs begin at the same node; a program that has only such ones adds them up by itself."""
    z = torch.randn(100, d, generator=torch.Generator().manual_seed(0)) / d**0.5
    first = torch.arange(4).repeat_interleave(torch.tensor([3, 97, 40, 1]))
    pairs = torch.stack([first, torch.arange(141) % 96 + 4])
    (mine, exact), (to_z, z_exact), _ = both(z, pairs, 1.0, True, fast)
    torch.testing.assert_close(mine.double(), exact, rtol=2e-6, atol=1e-30)
    assert (to_z.double() - z_exact).norm() <= 1e-6 * z_exact.norm()


def test_far_beyond_float32_squares_are_cut_off(fast):
    z = torch.tensor([[60.0], [-60.0], [59.0]], requires_grad=True)
    with use_backend(fast):
        square = pair_sqdist(z, torch.tensor([[0, 0], [1, 2]]), torch.tensor(1.0), lorentz=True)
        (grad,) = torch.autograd.grad(square.sum(), z)
        intrinsic = pair_sqdist(z, torch.tensor([[0], [1]]), torch.tensor(1.0))
    torch.testing.assert_close(square, torch.tensor([1e30, 4 * torch.sinh(torch.tensor(0.5)).item() ** 2]))
    torch.testing.assert_close(grad, torch.tensor([[2.0], [0.0], [-2.0]]) * torch.sinh(torch.tensor(1.0)))
    assert intrinsic.item() == pytest.approx(120**2)


@pytest.mark.parametrize("lorentz", [True, False])
def test_tiny_vectors(lorentz, fast):
    """One over their length is no float32."""
    z = torch.tensor([[1e-40, 2e-40], [0.1, -0.05]])
    _, (to_z, z_exact), _ = both(z, torch.tensor([[0], [1]]), 1.0, lorentz, fast)
    torch.testing.assert_close(to_z.double(), z_exact, rtol=2e-6, atol=1e-30)


def models(count):
    """Three models with their own nodes, pairs and β."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(3, 500, 16, generator=generator)
    return z, torch.randint(500, (3, 2, count), generator=generator), torch.tensor([0.5, 1.0, 2.0])


def values_and_gradients(z, pairs, beta, *, batched):
    """Of all models, as one program or one by one; pairs ``(2, P)`` are those of all."""
    x, b = z.clone().requires_grad_(), beta.clone().requires_grad_()
    if batched:
        out = vmap(pair_sqdist, in_dims=(0, None if pairs.dim() == 2 else 0, 0))(x, pairs, b)
    else:
        each = pairs.expand(3, *pairs.shape[-2:])
        out = torch.stack([pair_sqdist(*one) for one in zip(x, each, b, strict=True)])
    return [out.detach(), *torch.autograd.grad(out.square().sum(), (x, b))]


@pytest.mark.parametrize("shared", [True, False])
def test_a_batch_of_models(shared, fast):
    z, pairs, beta = models(700)
    pairs = pairs[0] if shared else pairs
    with use_backend(fast):
        found = [values_and_gradients(z, pairs, beta, batched=batched) for batched in (True, False)]
    for batched, alone in zip(*found, strict=True):
        assert torch.equal(batched, alone)


@pytest.mark.parametrize("flat", [True, False])
def test_pairs_of_four_bytes(flat, fast):
    """Those of training, on a GPU; a node's place among all numbers is larger than four bytes hold."""
    z, pairs, beta = models(700)
    found = []
    for given in (pairs, pairs.int()):
        x = z.clone().requires_grad_()
        with use_backend(fast):
            out = vmap(lambda z, p, b: pair_sqdist(z, p, None if flat else b))(x, given, beta)
            found.append([out.detach(), *torch.autograd.grad(out.square().sum(), x)])
    for wide, narrow in zip(*found, strict=True):
        assert torch.equal(wide, narrow)


def test_any_number_of_threads():
    threads, results = torch.get_num_threads(), []
    for count in (1, 3):
        torch.set_num_threads(count)
        results.append(values_and_gradients(*models(20_000), batched=True))
    torch.set_num_threads(threads)
    for one, three in zip(*results, strict=True):
        assert torch.equal(one, three)


@pytest.mark.parametrize("shared", [True, False])
def test_flat_space(shared, fast):
    z, pairs, _ = models(700)
    pairs = pairs[0] if shared else pairs
    x = z.clone().requires_grad_()
    with use_backend(fast):
        out = vmap(lambda z, p: pair_sqdist(z, p, None), in_dims=(0, None if shared else 0))(x, pairs)
        (grad,) = torch.autograd.grad(out.square().sum(), x)
    y = z.double().requires_grad_()
    each = pairs.expand(3, *pairs.shape[-2:])
    exact = torch.stack([(a[i] - a[j]).square().sum(-1) for a, (i, j) in zip(y, each, strict=True)])
    torch.testing.assert_close(out, exact.float())
    (its,) = torch.autograd.grad(exact.square().sum(), y)
    assert (grad - its).norm() <= 1e-6 * its.norm()


def test_no_pairs(fast):
    z = torch.randn(3, 2, requires_grad=True)
    with use_backend(fast):
        out = pair_sqdist(z, torch.empty(2, 0, dtype=torch.long), torch.tensor(1.0))
        assert out.shape == (0,)
        assert torch.autograd.grad(out.sum(), z)[0].eq(0).all()


def test_arsinh_by_a_polynomial():
    t = np.concatenate([[0.0], np.geomspace(1e-12, 1e140, 20_000)])
    found = np.array([cpu_pairs._asinh(x) for x in t])
    assert np.abs(found - np.arcsinh(t)).max() <= 1e-9
    assert np.abs(found[1:] / np.arcsinh(t[1:]) - 1).max() <= 1e-12


@pytest.mark.parametrize("lorentz", [True, False])
def test_what_is_no_number_shows(lorentz, fast):
    z = torch.ones(600, 2)
    z[599, 1] = torch.nan
    pairs = torch.stack([torch.arange(600), torch.arange(600).roll(1)])
    with use_backend(fast):
        out = pair_sqdist(z, pairs, torch.tensor(1.0), lorentz=lorentz)
    assert out.isnan().nonzero().flatten().tolist() == [0, 599]


@pytest.mark.parametrize("radius", [9.3, 14.3, 18.3, 25.3, 30.3])
def test_gradients_of_points_on_one_ray(radius, fast):
    """d_L² = 2 cosh(r_u − r_v) − 2, and nothing across."""
    z = torch.zeros(40, 3)
    z[:, 1] = radius + torch.rand(40, generator=torch.Generator().manual_seed(0))
    z.requires_grad_()
    with use_backend(fast):
        squares = pair_sqdist(z, torch.arange(40).view(2, 20), torch.tensor(1.0), lorentz=True)
        (grad,) = torch.autograd.grad(squares.sum(), z)
    apart = (z[:20, 1] - z[20:, 1]).double()
    exact = 2 * torch.sinh(torch.cat([apart, -apart]))
    torch.testing.assert_close(grad[:, 1].double(), exact, rtol=1e-6, atol=1e-7)
    assert not grad[:, [0, 2]].any()


@pytest.mark.parametrize("radius", [9.0, 16.0, 22.0, 30.0])
def test_gradients_of_points_on_one_slanting_ray(radius, fast):
    """Whole multiples of one vector: their directions are equal, and rounding counts for nothing."""
    ray = torch.tensor([1.0, 2.0, -5.0])
    steps = torch.tensor([1.0, 1 + 2**-6]) * torch.tensor(radius / 30**0.5 * 2**10).round() / 2**10
    z = (steps[:, None] * ray).requires_grad_()
    assert torch.equal(z[:, :2] * ray[2], z[:, 2:] * ray[:2])
    with use_backend(fast):
        (grad,) = torch.autograd.grad(pair_sqdist(z, torch.tensor([[0], [1]]), torch.tensor(1.0), lorentz=True), z)
    length = steps.double() * 30**0.5
    pull = 2 * torch.sinh(length[0] - length[1]) * ray.double() / 30**0.5
    torch.testing.assert_close(grad.double(), torch.stack([pull, -pull]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lorentz", [True, False])
def test_points_without_coordinates_are_at_the_origin(lorentz, fast):
    z = torch.ones(3, 0)
    torch.use_deterministic_algorithms(True)  # what nobody writes is no number then
    try:
        with use_backend(fast):
            found = pair_sqdist(z, torch.tensor([[0, 1], [1, 2]]), torch.tensor(1.0), lorentz=lorentz)
    finally:
        torch.use_deterministic_algorithms(False)
    assert found.tolist() == [0, 0]


def test_a_turn_in_a_tiny_coordinate_is_not_rounding(fast):
    """Far out an angle of 2.5e-16 is a distance."""
    z = torch.tensor([[40.0, 1e-14], [40.5, 0.0]])
    with use_backend(fast):
        found = pair_sqdist(z, torch.tensor([[0], [1]]), torch.tensor(1.0), lorentz=True)
    angle = float(z[0, 1].double()) / 40
    exact = 4 * math.sinh(0.25) ** 2 + math.sinh(40) * math.sinh(40.5) * angle**2
    assert float(found) == pytest.approx(exact, rel=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of Triton's interpreter, which is numpy
@pytest.mark.parametrize("lorentz", [True, False])
@pytest.mark.parametrize("other", [[0.5, 0.3], [0.0, 0.0], [torch.inf, 0.0], [torch.inf, torch.inf]])
def test_points_at_infinity_have_no_distance(lorentz, other, fast):
    z = torch.tensor([[torch.inf, 0.0], other])
    with use_backend(fast):
        assert pair_sqdist(z, torch.tensor([[0], [1]]), torch.tensor(1.0), lorentz=lorentz).isnan()


@pytest.mark.parametrize("beta", [None, torch.tensor(1.0)])
@pytest.mark.parametrize("last", [-1, 4, 10**9])
def test_pairs_of_nodes_that_are_not_there_are_refused_on_a_cpu(beta, last):
    with pytest.raises(InputError, match=r"the pairs name nodes (-1 to 2|0 to \d+), and there are nodes 0 to 3\."):
        pair_sqdist(torch.ones(4, 2), torch.tensor([[0, 1], [2, last]]), beta)


@pytest.mark.parametrize("beta", [None, torch.tensor(1.0)])
@pytest.mark.parametrize("pairs", [torch.tensor([[0, 1]]), torch.zeros(3, 5).long(), torch.zeros(2, 3), torch.zeros(2)])
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_what_are_no_pairs_is_refused(pairs, beta, backend):
    with use_backend(backend), pytest.raises(InputError, match=r"pairs must be \(2, P\) int32 or int64, not \("):
        pair_sqdist(torch.ones(4, 2), pairs, beta)
