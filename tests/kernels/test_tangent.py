"""Sums of logarithms and Fréchet means over a graph's rows, for every backend."""

import math
from contextlib import nullcontext

import pytest
import torch
from torch.func import vmap

from hyperboloid.geometry import Lorentz
from hyperboloid.kernels import Adjacency, frechet_aggregate, tangent_aggregate, use_backend

BETAS = [0.3, 1.0, 7.0]

pytestmark = pytest.mark.usefixtures("backend")


def to_point(v, beta):
    root, length = beta.sqrt(), v.norm()
    return torch.cat([(root * torch.cosh(length / root)).view(1), root * torch.sinh(length / root) * v / length])


def inner(x, y):
    return (x[1:] * y[1:]).sum() - x[0] * y[0]


def textbook_log(u, v, beta):
    """log_x(y) (Eq. 6) in Minkowski space, parallel transported to the origin."""
    x, y = to_point(u, beta), to_point(v, beta)
    origin = torch.cat([beta.sqrt().view(1), torch.zeros_like(u)])
    direction = y + inner(x, y) / beta * x
    tangent = beta.sqrt() * torch.acosh(-inner(x, y) / beta) * direction / inner(direction, direction).sqrt()
    return (tangent + inner(origin, tangent) / (beta - inner(x, origin)) * (x + origin))[1:]


def bipartite(rows=7, cols=9, entries=30):
    generator = torch.Generator().manual_seed(0)
    target, source = (
        torch.randint(rows - 1, (entries,), generator=generator),
        torch.randint(cols, (entries,), generator=generator),
    )
    return Adjacency.from_edges(source, target, (cols, rows), self_loops=False)  # the last row is empty


def inputs(adj, d=3, scale=1.0, beta=1.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    target, u = (
        scale * torch.randn(n, d, generator=generator, dtype=torch.float64) for n in (adj.num_rows, adj.num_cols)
    )
    weight = torch.rand(adj.row.numel(), generator=generator, dtype=torch.float64)
    return [t.to(dtype).requires_grad_() for t in (target, u, weight, torch.tensor(beta, dtype=torch.float64))]


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_values_and_gradients_against_minkowski_space(beta, d):
    adj = bipartite()
    ours, theirs = inputs(adj, d, beta=beta), inputs(adj, d, beta=beta)
    target, u, weight, b = ours
    out = tangent_aggregate(target, u, adj, b, weight)
    target, u, weight, b = theirs
    expected = torch.zeros_like(out)
    for i in range(adj.num_rows):
        for e in (adj.row == i).nonzero().flatten():
            expected[i] = expected[i] + weight[e] * textbook_log(target[i], u[adj.col[e]], b)
    torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-9)
    probe = torch.randn(out.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    for a, c in zip(
        torch.autograd.grad((out * probe).sum(), ours),
        torch.autograd.grad((expected * probe).sum(), theirs),
        strict=True,
    ):
        torch.testing.assert_close(a, c, rtol=1e-7, atol=1e-8)


def single_and_double(given, adj):
    """Values and gradients in float32 by the backend at hand, and in float64 by plain torch."""
    found = []
    for dtype, name in ((torch.float32, None), (torch.float64, "reference")):
        own = [t.detach().to(dtype).requires_grad_() for t in given]
        target, u, weight, beta = own
        with nullcontext() if name is None else use_backend(name):
            out = tangent_aggregate(target, u, adj, beta, weight)
            probe = torch.randn(out.shape, generator=torch.Generator().manual_seed(2)).to(dtype)
            found.append([out.detach(), *torch.autograd.grad((out * probe).sum(), own)])
    return list(zip(*found, strict=True))


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("scale", [1e-4, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("d", [1, 5, 16])
def test_single_precision(d, scale, beta):
    """Among random points: two origins, two that coincide, one almost at the origin."""
    adj = bipartite(entries=60)
    given = [t.detach().float() for t in inputs(adj, d, scale / d**0.5, beta)]
    target, u = given[:2]
    target[0], u[1], target[2], u[3] = 0, 0, u[adj.col[adj.row == 2][0]], 1e-12
    for name, (mine, exact) in zip(("value", "target", "u", "weight"), single_and_double(given, adj), strict=False):
        assert (mine.double() - exact).norm() <= 2e-6 * exact.norm(), name
    (to_beta, beta_exact), (_, values), (_, to_u) = (single_and_double(given, adj)[k] for k in (4, 0, 2))
    # where space is almost flat this is next to nothing, as all of its terms add up to
    assert abs(to_beta - beta_exact) <= 2e-6 * max(abs(beta_exact), to_u.norm() * u.norm() / beta + values.norm())


def test_rows_and_columns_in_several_pieces(monkeypatch):
    monkeypatch.setattr("hyperboloid.kernels.adjacency.PIECE", 3)
    adj = bipartite(entries=60)
    for mine, exact in single_and_double(inputs(adj), adj):
        assert (mine.double() - exact).norm() <= 2e-6 * exact.norm()


@pytest.mark.parametrize("radius", [3, 6, 9, 12])
def test_single_precision_of_siblings_far_out(radius):
    generator = torch.Generator().manual_seed(radius)
    centre = torch.nn.functional.normalize(torch.randn(4, generator=generator, dtype=torch.float64), dim=0)
    steps = torch.nn.functional.normalize(torch.randn(9, 4, generator=generator, dtype=torch.float64))
    u = Lorentz(1.0).normal.exp_at((radius * centre).expand(9, 4), 0.1 * steps).float()
    adj = bipartite()
    weight = torch.rand(adj.row.numel(), generator=generator)
    found = single_and_double([u[:7].flip(0), u, weight, torch.tensor(1.0)], adj)
    for name, (mine, exact) in zip(("value", "target", "u", "weight"), found, strict=False):
        assert (mine.double() - exact).norm() <= 2e-6 * exact.norm(), name


@pytest.mark.parametrize("scale", [1e-3, 1.0, 4.0])
def test_gradients_at_the_origin_and_at_coinciding_points(scale):
    adj = bipartite()
    target, u, weight, b = inputs(adj, scale=scale)
    with torch.no_grad():
        target[0], u[1] = 0, 0
        entry = int((adj.row == 2).nonzero()[0])
        target[2] = u[adj.col[entry]]
    # ⊖u ⊕ v is smooth everywhere, so differences know nothing of special cases
    assert torch.autograd.gradcheck(
        lambda x, y, w, b: tangent_aggregate(x, y, adj, b, w), (target, u, weight, b), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("radius", [6.0, 9.0])
def test_float32_far_out_is_as_good_as_float64(radius):
    """Siblings 0.25 apart, where ambient coordinates lose everything."""
    adj = bipartite()
    generator = torch.Generator().manual_seed(3)
    steps = torch.nn.functional.normalize(torch.randn(9 + 7, 4, generator=generator, dtype=torch.float64))
    centre = radius * torch.nn.functional.normalize(torch.ones(4, dtype=torch.float64), dim=0)
    points = Lorentz(1.0).normal.exp_at(centre.expand(16, 4), 0.25 * steps).float()
    weight, beta = torch.ones(adj.row.numel()), torch.tensor(1.0)
    single = tangent_aggregate(points[:7], points[7:], adj, beta, weight)
    double = tangent_aggregate(points[:7].double(), points[7:].double(), adj, beta.double(), weight.double())
    assert (single - double).abs().max() < 1e-5 * math.exp(radius - 6)


@pytest.mark.parametrize("radius", [0.0, 30.0, 80.0, 1e4])
def test_finite_at_any_radius(radius):
    adj = bipartite()
    target, u, weight, b = inputs(adj, scale=radius, dtype=torch.float32)
    for operation in (
        lambda: tangent_aggregate(target, u, adj, b, weight),
        lambda: frechet_aggregate(u, adj, b, weight),
    ):
        out = operation()
        gradients = torch.autograd.grad(out.sum(), [u, weight, b])
        for t in (out, *gradients):
            assert torch.isfinite(t).all()


# ---- the Fréchet mean


@pytest.mark.parametrize("beta", BETAS)
def test_the_mean_of_a_row_is_that_of_its_points(beta):
    adj = bipartite()
    _, u, weight, b = inputs(adj, beta=beta)
    out = frechet_aggregate(u, adj, b, weight)
    probe = torch.randn(out.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    rows = []
    for i in range(adj.num_rows):
        members = (adj.row == i).nonzero().flatten()
        mean = Lorentz(b).normal.frechet(u[adj.col[members]], weight[members]) if len(members) else torch.zeros(3)
        rows.append(mean.double())
    expected = torch.stack(rows)
    torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-9)
    ours = torch.autograd.grad((out * probe).sum(), (u, weight, b), retain_graph=True)
    theirs = torch.autograd.grad((expected * probe).sum(), (u, weight, b))
    for a, c in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, c, rtol=1e-6, atol=1e-8)


def test_float32_means_lie_within_1e_5_of_float64_ones_up_to_radius_6(backend):
    n = 80 if backend == "triton" else 300  # its interpreter takes seconds for every hundred
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(n, (2, 5 * n), generator=generator)
    adj = Adjacency.from_edges(edges[0], edges[1], (n, n), self_loops=True)
    v = torch.nn.functional.normalize(torch.randn(n, 8, generator=generator, dtype=torch.float64))
    u = (6 * torch.rand(n, 1, generator=generator, dtype=torch.float64) * v).float()
    weight = torch.rand(adj.row.numel(), generator=generator)
    single = frechet_aggregate(u, adj, torch.tensor(1.0), weight)
    double = frechet_aggregate(u.double(), adj, torch.tensor(1.0).double(), weight.double())
    assert Lorentz(1.0).normal.dist(single.double(), double).max() < 1e-5
    pull = tangent_aggregate(double, u.double(), adj, torch.tensor(1.0).double(), weight.double())
    assert pull.abs().max() < 1e-7  # what defines the mean


def test_rows_without_members_or_weight_give_the_origin_and_pass_no_gradient():
    adj = bipartite()
    _, u, weight, b = inputs(adj)
    with torch.no_grad():
        weight[adj.row == 0] = 0
    out = frechet_aggregate(u, adj, b, weight)
    assert torch.equal(out[[0, -1]], torch.zeros(2, 3, dtype=torch.float64))
    for g in torch.autograd.grad(out[[0, -1]].sum(), (u, weight, b)):
        assert torch.equal(g, torch.zeros_like(g))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_batch_of_models_equals_the_models_one_by_one(dtype):
    adj = bipartite()
    target, u, weight, _ = inputs(adj, dtype=dtype)
    betas = torch.tensor([0.5, 1.0, 3.0], dtype=dtype, requires_grad=True)
    given = (betas, target, u, weight)
    many = vmap(lambda b: tangent_aggregate(b * target, b * u, adj, b, b * weight))(betas)
    alone = torch.stack([tangent_aggregate(b * target, b * u, adj, b, b * weight) for b in betas])
    torch.testing.assert_close(many, alone)
    gradients = (torch.autograd.grad(out.square().sum(), given) for out in (many, alone))
    for batched, single in zip(*gradients, strict=True):
        torch.testing.assert_close(batched, single)


def test_rows_that_are_the_columns():
    """The gradient in a tensor that is given twice is the sum of those in two."""
    adj = bipartite(9, 9, 60)
    _, u, weight, _ = inputs(adj, dtype=torch.float32)
    betas = torch.tensor([0.5, 1.0, 3.0], requires_grad=True)

    def of_model(b, twice):
        points = b * u
        return tangent_aggregate(points if twice else points.clone(), points, adj, b, weight)

    given = (betas, u, weight)
    twice, apart = (vmap(lambda b, flag=flag: of_model(b, flag))(betas) for flag in (True, False))
    torch.testing.assert_close(twice, apart)
    gradients = (torch.autograd.grad(out.square().sum(), given) for out in (twice, apart))
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_no_edges_have_no_gradient():
    adj = Adjacency.from_edges(*torch.zeros(2, 0, dtype=torch.long), (4, 4), self_loops=False)
    u = torch.randn(4, 3, requires_grad=True)
    out = tangent_aggregate(u, u, adj, torch.tensor(1.0), torch.zeros(0))
    (gradient,) = torch.autograd.grad(out.sum(), u)
    assert out.count_nonzero() == gradient.count_nonzero() == 0


def test_what_is_no_number_shows():
    adj = Adjacency.from_edges(*torch.tensor([[0, 2], [1, 3]]), (4, 4), self_loops=True)
    u, ones = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), torch.ones(4, 3)
    u[0, 0] = torch.nan
    at_nan, to_nan = (
        tangent_aggregate(*ends, adj, torch.tensor(1.0), torch.ones(6)) for ends in ((u, ones), (ones, u))
    )
    assert at_nan.isnan().any(1).tolist() == [True, False, False, False]
    assert to_nan.isnan().any(1).tolist() == [True, True, False, False]


@pytest.mark.parametrize("radius", [9.0, 15.0, 18.0, 20.0])
def test_gradients_far_out_with_self_loops(radius, backend):
    """A node's logarithm of itself is 0, and its parts along both must not leave rounding times e^r."""
    if backend != "triton":
        pytest.skip("rounds the gradients in both ends of a logarithm before they are added up")
    generator = torch.Generator().manual_seed(0)
    adj = Adjacency.from_edges(*torch.randint(40, (2, 200), generator=generator), (40, 40), self_loops=True)
    unit = torch.nn.functional.normalize(torch.randn(40, 3, generator=generator))
    probe, weight = torch.randn(40, 3, generator=generator), torch.rand(adj.row.numel(), generator=generator)
    found = []
    for dtype, backend in ((torch.float32, nullcontext()), (torch.float64, use_backend("reference"))):
        u = (radius * unit).to(dtype).requires_grad_()
        with backend:
            out = tangent_aggregate(u, u, adj, torch.tensor(1.0, dtype=dtype), weight.to(dtype))
            found.append(torch.autograd.grad((out * probe.to(dtype)).sum(), u)[0])
    assert (found[0] - found[1]).norm() <= 1e-6 * found[1].norm()
