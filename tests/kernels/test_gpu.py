"""The compiled kernels on a GPU against the CPU; skipped where there is none."""

import pytest
import torch

from hyperboloid.geometry import Lorentz
from hyperboloid.graphs.splits import NegativeSampler, pair_of_rank
from hyperboloid.kernels import (
    Adjacency,
    additive_attention,
    edge_loss,
    frechet_aggregate,
    lorentz_aggregate,
    lorentz_attention,
    pair_sqdist,
    row_normalize,
    row_softmax,
    tangent_aggregate,
    use_backend,
    weighted_sum,
)

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def outputs_and_gradients(device, dtype, d):
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(500, (2, 3000), generator=generator).to(device)
    adj = Adjacency.from_edges(edges[0], edges[1], (500, 500), self_loops=True)
    u = (1.5 / d**0.5 * torch.randn(500, d, generator=generator, dtype=torch.float64)).to(device, dtype)
    weight = torch.rand(adj.row.numel(), generator=generator).to(device, dtype)
    beta = torch.tensor(1.2, device=device, dtype=dtype)
    inputs = [t.requires_grad_() for t in (u, weight, beta)]
    space, alpha = Lorentz(beta).normal, lorentz_attention(0.3 * u, 0.3 * u, adj, beta)
    outputs = [
        lorentz_aggregate(u, adj, beta, alpha * weight),
        tangent_aggregate(u, u.roll(1, 0), adj, beta, weight),
        weighted_sum(u, adj, weight),
        row_softmax(10 * weight, adj),
        additive_attention(u[:, 0], u[:, -1], adj, slope=0.2),
        edge_loss(3 * u.T),
        row_normalize(weight, adj),
        frechet_aggregate(u, adj, beta, weight),
        space.exp_at(u, u.roll(2, 0)),
        space.dist(u, u.roll(3, 0)),
        space.sqdist(u, u.roll(4, 0)),
        pair_sqdist(u, edges, beta),
        pair_sqdist(u, edges, beta, lorentz=True),
        pair_sqdist(u, edges.int(), None),
    ]
    probes = [torch.linspace(-1, 1, o.numel(), device=device, dtype=dtype).view(o.shape) for o in outputs]
    total = sum((o * p).sum() for o, p in zip(outputs, probes, strict=True))
    return [t.detach().cpu() for t in (*outputs, *torch.autograd.grad(total, inputs))]


@pytest.mark.parametrize("d", [1, 5, 16, 64, 200])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
def test_same_values_and_gradients_as_on_the_cpu(d, dtype, tolerance):
    # the gradient in β, the last one, is a sum that cancels: at d = 1 space is flat, and it is next to nothing
    pairs = list(zip(outputs_and_gradients("cuda", dtype, d), outputs_and_gradients("cpu", dtype, d), strict=True))
    for ours, theirs in pairs[:-1]:
        assert (ours - theirs).abs().max() < tolerance * theirs.abs().max()
    scale = max(1.0, pairs[-2][1].abs().sum().item())
    assert (pairs[-1][0] - pairs[-1][1]).abs() < tolerance * scale


@pytest.mark.parametrize("d", [4, 64])
@pytest.mark.parametrize("apart", [0.0, 1e-6, 1.0])
@pytest.mark.parametrize("radius", [2, 15, 40])
def test_points_in_about_the_same_direction(radius, apart, d):
    """See test_fused.py, of which this is the compiled twin; the graph has a hub in several pieces."""
    draws = torch.Generator().manual_seed(radius)
    edges = torch.cat([torch.randint(3000, (2, 9000), generator=draws), torch.zeros(2, 3000, dtype=torch.long)], 1)
    edges[0, 9000:] = torch.arange(3000)
    around = torch.randn(1, d, generator=draws) + apart * torch.randn(3000, d, generator=draws)
    u = torch.nn.functional.normalize(around) * (radius + torch.rand(3000, 1, generator=draws))
    found = []
    for device, dtype in (("cuda", torch.float32), ("cpu", torch.float64)):
        adj = Adjacency.from_edges(*edges.to(device), (3000, 3000), self_loops=True)
        inputs = [t.to(device, dtype).requires_grad_() for t in (u, 0.02 * u, torch.tensor(1.0))]
        x, key, beta = inputs
        with use_backend("triton" if device == "cuda" else "reference"):
            out = lorentz_aggregate(x, adj, beta, attention=(key, key))
            probe = torch.linspace(-1, 1, out.numel(), device=device, dtype=dtype).view(out.shape)
            gradients = torch.autograd.grad((out * probe).sum(), inputs)
        found.append([t.detach().cpu().double() for t in (out, *gradients)])
    for mine, exact in list(zip(*found, strict=True))[:3]:
        assert (mine - exact).norm() <= 5e-5 * exact.norm()


@pytest.mark.parametrize("d", [16, 64])
@pytest.mark.parametrize("shared", [True, False])
def test_a_few_features_far_out_and_close(shared, d):
    """See test_fused.py, of which this is the compiled twin."""
    draws = torch.Generator().manual_seed(0)
    edges = torch.randint(3000, (2, 9000), generator=draws)
    edges = torch.cat([edges, edges.flip(0)], 1)
    query, key = torch.nn.functional.normalize(torch.randn(2, 3000, d, generator=draws), dim=-1) * 11
    query = key if shared else query
    query[edges[1, :10]] = 1.01 * key[edges[0, :10]]
    u, found = torch.randn(3000, 8, generator=draws), []
    for device, dtype in (("cuda", torch.float32), ("cpu", torch.float64)):
        adj = Adjacency.from_edges(*edges.to(device), (3000, 3000), self_loops=True)
        inputs = [t.to(device, dtype).requires_grad_() for t in (u, key, query)]
        attention = (inputs[1] if shared else inputs[2], inputs[1])
        with use_backend("triton" if device == "cuda" else "reference"):
            out = lorentz_aggregate(inputs[0], adj, torch.tensor(1.0).to(device, dtype), attention=attention, cap=1.0)
            probe = torch.linspace(-1, 1, out.numel(), device=device, dtype=dtype).view(out.shape)
            gradients = torch.autograd.grad((out * probe).sum(), inputs[: 2 if shared else 3])
        found.append([t.detach().cpu().double() for t in (out, *gradients)])
    for mine, exact in zip(*found, strict=True):
        assert (mine - exact).norm() <= 1e-5 * exact.norm()


@pytest.mark.parametrize(("n", "k", "own_weights"), [(2500, 3, True), (3, 2500, False)])
def test_weighted_sums_of_many_models(n, k, own_weights):
    """See test_sums.py, of which this is the compiled twin: long rows or columns, in several pieces."""
    draws = torch.Generator().manual_seed(0)
    x = torch.randn(n, k, generator=draws)
    x[1:, 1:] *= torch.rand(n - 1, k - 1, generator=draws) < 0.1
    row, col = x.nonzero(as_tuple=True)
    value = torch.randn(5, row.numel(), generator=draws) if own_weights else x[row, col]
    w, grad = torch.randn(5, k, 7, generator=draws), torch.randn(5, n, 7, generator=draws)
    dense = torch.zeros(5, n, k).index_put((torch.arange(5)[:, None], row, col), value).double()
    pattern = Adjacency.from_edges(col.cuda(), row.cuda(), (k, n), self_loops=False)
    ours = w.cuda().requires_grad_()
    in_dims = (0, 0 if own_weights else None)
    found = torch.func.vmap(lambda w, v: weighted_sum(w, pattern, v), in_dims)(ours, value.cuda())
    (to_w,) = torch.autograd.grad(found, ours, grad.cuda())
    for mine, exact in ((found, dense @ w.double()), (to_w, dense.mT @ grad.double())):
        assert (mine.detach().cpu() - exact).norm() <= 1e-5 * exact.norm()


def test_the_same_pairs_as_on_the_cpu():
    edges = pair_of_rank(torch.randperm(60_000, generator=torch.Generator().manual_seed(0))[:3000])
    keys = torch.tensor([5, -6], dtype=torch.int32)
    ours, theirs = (NegativeSampler(edges.to(d), 500).with_edges(keys.to(d)) for d in ("cuda", "cpu"))
    assert torch.equal(ours.cpu().long(), theirs)


def test_what_is_no_number_shows():
    """Where the compiled minimum of a number and none would be the number; the interpreter's is none."""
    u = torch.randn(4, 3, device="cuda")
    u[0, 0] = torch.nan
    adj = Adjacency.from_edges(*torch.tensor([[0, 2], [1, 3]], device="cuda"), (4, 4), self_loops=True)
    beta = torch.tensor(1.0, device="cuda")
    pairs = torch.tensor([[0, 2], [1, 3]], device="cuda")
    found = [
        pair_sqdist(u, pairs, beta),
        pair_sqdist(u, pairs, beta, lorentz=True),
        Lorentz(beta).normal.dist(u[::2], u[1::2]),
        lorentz_aggregate(u.nan_to_num(), adj, beta, attention=(u, u))[[1, 3]].sum(-1),
    ]
    for values in found:
        assert values.isnan().tolist() == [True, False]
